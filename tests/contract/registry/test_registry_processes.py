"""`tidelog registry start` as processes: ready, stopped, killed while clients register."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress

import httpx
import pytest
from support.nursery import ForkedPython


def tidelog(*arguments, start=ForkedPython, **options):
    return start([sys.executable, "-m", "tidelog", *map(str, arguments)], text=True, **options)


@contextmanager
def registry_process(lake, *arguments, start=ForkedPython):
    """A registry's process and what it said when it was ready."""
    process = tidelog(
        "--lake",
        lake,
        "registry",
        "start",
        "--format",
        "json",
        "--listener",
        "127.0.0.1:0",
        *arguments,
        start=start,
        stdout=subprocess.PIPE,
    )
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_registry_starts_serves_and_stops(tmp_path):
    with registry_process(tmp_path / "lake", "--topic", "_team", start=subprocess.Popen) as (process, ready):
        assert ready["schemas"] == 0
        answer = httpx.post(f"{ready['url']}/subjects/a/versions", json={"schema": '"int"'}, timeout=None)
        assert answer.json()["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    with registry_process(tmp_path / "lake", "--topic", "_team") as (_, ready):
        assert ready["schemas"] == 1
    with registry_process(tmp_path / "lake") as (_, ready):
        assert ready["schemas"] == 0


@pytest.mark.parametrize("listener", ["nowhere", "127.0.0.1:99999"])
def test_a_listener_that_is_none_is_refused(tmp_path, listener):
    process = tidelog("--lake", tmp_path / "lake", "registry", "start", "--listener", listener, stderr=subprocess.PIPE)
    _, errors = process.communicate()
    assert process.returncode != 0
    assert "is no listener" in errors
    assert "Traceback" not in errors


def registered(urls, subject, schema):
    """The id of a schema, asked of one registry after another until one answers."""
    while True:
        for url in urls:
            with suppress(httpx.TransportError):
                answer = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema}, timeout=None)
                assert answer.status_code == 200, answer.text
                return answer.json()["id"]


def test_ids_stay_unique_and_dense_while_a_registry_is_killed(tmp_path):
    """Eight clients register twelve schemas each, all twelve the same; one of two registries dies on the way."""
    with registry_process(tmp_path / "lake") as (victim, one), registry_process(tmp_path / "lake") as (_, other):
        half = threading.Barrier(9)
        answers, failures = [{} for _ in range(8)], []

        def work(number):
            try:
                urls = [one["url"], other["url"]][:: 1 if number % 2 else -1]
                for i in range(12):
                    if i == 4:
                        half.wait()
                    size = (i * 5 + number) % 12 + 1
                    schema = f'{{"type":"fixed","name":"f{size}","size":{size}}}'
                    answers[number][size] = registered(urls, f"s{number}-{size}", schema)
            except BaseException as error:
                failures.append(error)
                half.abort()
                raise

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        half.wait()
        victim.kill()
        for thread in threads:
            thread.join()
    assert failures == []
    assert all(found == answers[0] for found in answers)
    assert sorted(answers[0].values()) == list(range(1, 13))
    with registry_process(tmp_path / "lake") as (_, again):
        assert again["schemas"] == 8 * 12
        for size, number in answers[0].items():
            found = httpx.get(f"{again['url']}/schemas/ids/{number}", timeout=None).json()
            assert json.loads(found["schema"])["size"] == size
