"""`--metrics` at each command that runs for long: one listener with metrics, /healthz and /readyz, while it runs."""

import json
import re
import shutil
import signal
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from support.broker_processes import metrics
from support.cli_calls import lines_of, process
from support.waiting import PATIENCE_S, eventually

from tidelog.log.lake import Lake

# Each command, what of its own it counts, and the stream on which it names its listener.
COMMANDS = {
    "broker": (["broker", "start", "--listener", "127.0.0.1:0"], "kafka_server_kafkaserver_brokerstate", "stdout"),
    "registry": (["registry", "start", "--listener", "127.0.0.1:0"], "", "stdout"),
    "connect": (["connect", "start", "--listener", "127.0.0.1:0"], "kafka_connect_connect_worker_metrics_", "stdout"),
    "console": (["console", "--listener", "127.0.0.1:0"], "tidelog_console_looks_total", "stdout"),
    "maintain": (["maintain", "--every", "1h"], "tidelog_maintain_runs_total", "stderr"),
    "consume": (["consume", "orders"], "tidelog_consume_records_total", "stderr"),
    "consume-group": (["consume", "orders", "--group", "g"], "tidelog_consume_records_total", "stderr"),
    "mirror": (["mirror", "start", "--from", "LAKE", "--to", "COPY"], "tidelog_mirror_lag_entries", "stdout"),
    "perf": (["perf", "consume", "--topic", "orders", "--messages", "100", "--timeout", "600000"], "", "stderr"),
}


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("orders", 2)
        opened.topic("orders").append([{"value": "1", "partition": 0}, {"value": "2", "partition": 0}])
        yield opened


@contextmanager
def listening(lake, folder, words, stream):
    """The command as a process, and the address of its listener."""
    named = [{"LAKE": lake.uri, "COPY": str(folder / "copy")}.get(word, word) for word in words]
    whose = [] if "mirror" in words else ["--lake", lake.uri]
    as_json = ["--format", "json"] if stream == "stdout" and "mirror" not in words else []
    with process(*whose, *as_json, *named, "--metrics", "127.0.0.1:0") as running:
        try:
            for line in lines_of(getattr(running, stream)):
                if as_json:
                    yield json.loads(line)["metrics"]
                    break
                if found := re.search(r"metrics at http://(.*)/metrics", line):
                    yield found[1]
                    break
            else:
                raise AssertionError(f"no listener was named: {running.communicate()}")
        finally:
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=PATIENCE_S)


def asked(address, path):
    """(status, what is said) of a path."""
    try:
        with urlopen(f"http://{address}{path}", timeout=PATIENCE_S) as answer:
            return answer.status, json.load(answer)
    except HTTPError as e:
        return e.code, json.load(e)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_process_tells_metrics_and_health(lake, tmp_path, name):
    words, own, stream = COMMANDS[name]
    with listening(lake, tmp_path, words, stream) as address:
        assert asked(address, "/healthz") == (200, {"status": "ok"})
        eventually(lambda: asked(address, "/readyz")[0] == 200, "it is ready")
        eventually(lambda: any(key[0].startswith(own) for key in metrics(address)), f"metrics {own}*")
        assert any(key[0] == "process_cpu_seconds_total" for key in metrics(address))
        shutil.move(tmp_path / "lake" / "__lake.json", tmp_path / "kept")
        status, said = asked(address, "/readyz")
        assert (status, said["status"]) == (503, "not ready") or name == "mirror"  # whose store is the follower's
        assert asked(address, "/healthz")[0] == 200
        shutil.move(tmp_path / "kept", tmp_path / "lake" / "__lake.json")
        assert asked(address, "/readyz")[0] == 200


def test_what_is_consumed_is_counted(lake, tmp_path):
    words, _, stream = COMMANDS["consume"]
    with listening(lake, tmp_path, words, stream) as address:
        counted = ("tidelog_consume_records_total", ("0", "orders"))
        eventually(lambda: metrics(address).get(counted) == 2, "both records")
        lake.topic("orders").append([{"value": "3", "partition": 0}])
        eventually(lambda: metrics(address).get(counted) == 3, "the third one")
        assert metrics(address)["tidelog_consume_offset", ("0", "orders")] == 3


def test_runs_of_maintenance_are_counted(lake, tmp_path):
    with listening(lake, tmp_path, ["maintain", "--every", "100ms"], "stderr") as address:
        done = ("tidelog_maintain_runs_total", ("done",))
        eventually(lambda: metrics(address).get(done, 0) >= 2, "two runs")
        (tmp_path / "lake" / "orders" / "_delta_log" / f"{2:020}.json").write_text("no entry")
        failed = ("tidelog_maintain_runs_total", ("failed",))
        eventually(lambda: metrics(address).get(failed, 0) >= 1, "a run that failed")
        assert metrics(address)["tidelog_maintain_failures", ()] >= 1


def test_metrics_of_one_run_are_refused(lake):
    with process("--lake", lake.uri, "maintain", "--metrics", "127.0.0.1:0") as running:
        _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 2
    assert b"give --every, too" in said
