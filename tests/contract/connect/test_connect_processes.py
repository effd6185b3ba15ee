"""Workers as processes: they share connectors, one is killed, and each line is in the topic once."""

import json
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from support.broker_processes import broker_command, metrics
from support.waiting import eventually

from tidelog.log.lake import Lake

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRINGS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def worker(lake, *args, **more):
    """A worker; that it was killed is known by a session's end, which comes sooner than by itself."""
    if "--config" not in args:
        quick = lake.with_suffix(".properties")
        quick.write_text("session.timeout.ms=2000\nheartbeat.interval.ms=500\n")
        args = (*args, "--config", str(quick))
    return broker_command(lake, "--listener", "127.0.0.1:0", *args, family="connect", **more)


def answered(url, path, method="GET", body=None):
    """An answer of whatever status: a worker on a busy machine may take longer than httpx waits by itself."""
    return httpx.request(method, url + path, json=body, timeout=60)


def call(url, method, path, body=None):
    answer = answered(url, path, method, body)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def owners(url, name):
    """The workers of a connector's tasks that run, by the task's number."""
    found = answered(url, f"/connectors/{name}/status")
    tasks = found.json()["tasks"] if found.status_code == 200 else []
    return {one["id"]: one["worker_id"] for one in tasks if one["state"] == "RUNNING"}


def append(path, lines):
    with Path(path).open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def values(lake, topic):
    if lake.peek(topic) is None:
        return []
    batches = [one for p in lake.topic(topic).offsets() for one in lake.topic(topic).read(p)]
    return [value.decode() for one in batches for value in one.column("value").to_pylist()]


@pytest.fixture
def folder(tmp_path):
    with Lake(str(tmp_path / "lake"), True) as lake:
        lake.create_topic("lines", 1)
    return tmp_path


def test_two_workers_share_connectors_and_one_takes_over_when_the_other_is_killed(folder):
    names = [f"files-{number}" for number in range(4)]
    lake_folder = folder / "lake"
    with (
        worker(lake_folder, start=subprocess.Popen) as first,
        worker(lake_folder) as second,
        Lake(str(lake_folder)) as lake,
    ):
        urls = [first.ready()["url"], second.ready()["url"]]
        for number, name in enumerate(names):
            append(folder / f"in-{number}", [f"{name} {line}" for line in range(100)])
            config = {
                "name": name, "connector.class": FILE_SOURCE, "topic": "lines", "file": str(folder / f"in-{number}"),
                **STRINGS,
            }  # fmt: skip
            call(urls[number % 2], "POST", "/connectors", {"name": name, "config": config})
        for url in urls:
            assert call(url, "GET", "/connectors") == names
        eventually(lambda: len({owners(urls[1], name).get(0) for name in names} - {None}) == 2, "both workers run some")
        eventually(lambda: len(values(lake, "lines")) == 400, "all lines are there")
        first.stop(signal.SIGKILL)
        killed_s = time.monotonic()
        for number, name in enumerate(names):
            append(folder / f"in-{number}", [f"{name} {line}" for line in range(100, 200)])
        eventually(lambda: len(values(lake, "lines")) == 800, "the other one goes on with all")
        print(f"taken over and caught up within {time.monotonic() - killed_s:.1f} s")
        wanted = [f"{name} {line}" for name in names for line in range(200)]
        assert sorted(values(lake, "lines")) == sorted(wanted)
        host = urls[1].removeprefix("http://")
        eventually(lambda: {owners(urls[1], name).get(0) for name in names} == {host}, "statuses say so")
        assert second.stop() == 0
        assert any("Worker stopped" in line for line in second.log)


def test_a_source_that_is_killed_again_and_again_gives_each_line_once(folder):
    config = {
        "connector.class": FILE_SOURCE, "topic": "lines", "file": str(folder / "in"), "batch.size": "7", **STRINGS,
    }  # fmt: skip
    wanted = []
    for turn in range(3):
        with worker(folder / "lake") as process, Lake(str(folder / "lake")) as lake:
            url = process.ready()["url"]
            call(url, "PUT", "/connectors/one/config", config)
            lines = [f"{turn} {line}" for line in range(500)]
            append(folder / "in", lines)
            wanted += lines
            enough = 500 * turn + 150  # killed in the middle of it
            eventually(lambda at=enough, lake=lake: len(values(lake, "lines")) >= at, "some lines are there")
            process.stop(signal.SIGKILL)
    with worker(folder / "lake") as process, Lake(str(folder / "lake")) as lake:
        process.ready()
        eventually(lambda: len(values(lake, "lines")) >= len(wanted), "all lines are there")
        assert values(lake, "lines") == wanted


def test_a_sink_goes_on_after_a_kill_and_loses_nothing(folder):
    sink = {"connector.class": FILE_SINK, "topics": "lines", "file": str(folder / "out"), **STRINGS}
    wanted = {f"line {number}" for number in range(300)}

    def written():
        return (folder / "out").read_text().splitlines() if (folder / "out").exists() else []

    with Lake(str(folder / "lake")) as lake:
        with worker(folder / "lake") as process:
            url = process.ready()["url"]
            call(url, "PUT", "/connectors/out/config", sink)
            lake.topic("lines").append([{"value": f"line {number}"} for number in range(150)])
            eventually(lambda: len(written()) >= 150, "the sink has the first ones")
            process.stop(signal.SIGKILL)
        lake.topic("lines").append([{"value": f"line {number}"} for number in range(150, 300)])
        with worker(folder / "lake") as process:
            process.ready()
            eventually(lambda: set(written()) == wanted, "it has all")


def test_the_command_says_where_it_is_and_what_it_counts(folder):
    properties = folder / "worker.properties"
    properties.write_text("group.id=mine\noffset.flush.interval.ms=500\n")
    arguments = ("--metrics", "127.0.0.1:0", "--config", str(properties), "--advertised", "worker-1:8083")
    with worker(folder / "lake", *arguments) as process:
        found = process.ready()
        assert found["group"] == "mine"
        call(found["url"], "PUT", "/connectors/c/config",
             {"connector.class": FILE_SOURCE, "topic": "lines", "file": str(folder / "in"), **STRINGS})  # fmt: skip
        eventually(lambda: owners(found["url"], "c") == {0: "worker-1:8083"}, "it runs under its own name")
        eventually(lambda: answered(found["url"], "/health").status_code == 200, "it is healthy")
        counted = ("kafka_connect_connect_worker_metrics_task_count", ())
        # A worker that was not heard of for a session gives its task up, and takes it again.
        eventually(lambda: metrics(found["metrics"])[counted] == 1.0, "it counts its task")
        assert answered(found["url"], "/nowhere").json() == {"error_code": 404, "message": "HTTP 404 Not Found"}
        assert process.stop() == 0, process.log
    assert any("Worker started: listener=127.0.0.1:" in line for line in process.log), process.log
    json.dumps(found)
