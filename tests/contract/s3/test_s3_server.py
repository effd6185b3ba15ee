"""The S3 server that tests run against."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support import versitygw
from support.versitygw import S3Place, in_environment
from support.waiting import eventually

from tidelog.log.storage import ObjectStorage

TESTS = Path(__file__).parents[2]


def test_a_place_is_empty_and_takes_conditional_puts(s3: S3Place):
    storage = s3.storage()
    assert list(storage.list_after("")) == []
    assert [storage.put_if_absent("a/1", data) for data in (b"first", b"second")] == [True, False]
    assert storage.get("a/1") == b"first"


def test_two_places_share_nothing(s3: S3Place):
    with versitygw.fresh_place() as other:
        assert other.uri != s3.uri
        s3.storage().put("a", b"1")
        assert list(other.storage().list_after("")) == []


def test_the_environment_is_enough(s3: S3Place):
    with in_environment(s3.environment):
        ObjectStorage(s3.uri).put("a", b"1")
    assert s3.storage().get("a") == b"1"


PROGRAM = """
import os
from support.versitygw import server
print(server().endpoint, server().root, flush=True)
input()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "terminated", "ends"])
def test_the_server_ends_with_the_process_that_started_it(s3: S3Place, end: signal.Signals | None):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        endpoint, root = process.stdout.readline().split()
        assert endpoint != s3.endpoint
        if end is None:
            process.stdin.write("\n")
            process.stdin.close()
        else:
            process.send_signal(end)
        process.wait(30)
    eventually(lambda: not answers(endpoint) and not Path(root).exists(), "the server and its folder are gone")


def answers(endpoint: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(endpoint.rpartition(":")[2]))) == 0


def test_without_go_tests_skip_and_with_go_they_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(versitygw, "BINARY", tmp_path / "versitygw")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match=r"'versitygw' is not there.*make setup"):
        versitygw.why_not()
    (tmp_path / "go").write_text("#!/bin/sh\n")
    (tmp_path / "go").chmod(0o755)
    with pytest.raises(pytest.fail.Exception, match=r"Go is there, but .*versitygw is not: run make setup"):
        versitygw.why_not()
