"""`tidelog mirror start` as real processes: two on one follower, and metrics while one runs."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from support.logs import values
from support.nursery import ForkedPython, run_forked
from support.waiting import eventually

from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.mirror.comparison import differences
from tidelog.operations.mirrors import read_status


def command(source: Path, follower: Path, *options: str) -> list[str]:
    words = [sys.executable, "-m", "tidelog", "mirror", "start", *options]
    return [*words, "--from", str(source), "--to", str(follower)]


@contextmanager
def started(words: list[str], start: Any = ForkedPython) -> Iterator["subprocess.Popen[str]"]:
    """A mirror that has begun, killed at the end."""
    with start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def head(follower: Path) -> int:
    status = read_status(open_storage(str(follower)))
    return -1 if status is None or "t" not in status.tables else status.tables["t"].follower


def test_two_mirrors_on_one_follower_are_kept_apart(tmp_path: Path) -> None:
    source, follower = tmp_path / "source", tmp_path / "follower"
    with Lake(str(source)) as lake:
        lake.create_topic("t", 1)
        with started(command(source, follower), subprocess.Popen) as first:
            assert first.stdout is not None
            assert "follows" in first.stdout.readline()
            eventually(lambda: head(follower) == 0, "the first mirror's entries")
            refused = run_forked(command(source, follower, "--once"))
            assert refused.returncode != 0
            assert f"Another mirror writes to the follower file://{follower}: process {first.pid} on" in refused.stderr
            # One that is frozen for too long loses the follower, and ends by itself when it wakes up.
            os.kill(first.pid, signal.SIGSTOP)
            lake.topic("t").append(values("a"))
            with started(command(source, follower)) as second:
                assert second.stdout is not None
                assert "follows" in second.stdout.readline()
                eventually(lambda: head(follower) == 1, "the second mirror's entries")
                os.kill(first.pid, signal.SIGCONT)
                assert "Another mirror has taken the follower" in first.communicate(timeout=60)[1]
                assert first.returncode != 0
                lake.topic("t").append(values("b"))
                eventually(lambda: head(follower) == 2, "more of the second mirror's entries")
                second.terminate()
                assert second.wait(60) == 0
        with Lake(str(follower)) as copy:
            assert list(differences(lake, copy)) == []


def test_metrics_tell_the_lag_while_a_mirror_runs(tmp_path: Path) -> None:
    source, follower = tmp_path / "source", tmp_path / "follower"
    with Lake(str(source)) as lake:
        lake.create_topic("t", 1)
        with started(command(source, follower, "--metrics-listener", "127.0.0.1:0")) as mirror:
            assert mirror.stdout is not None
            found = re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)", mirror.stdout.readline())
            assert found is not None
            lake.topic("t").append(values("a"))

            def metrics() -> str:
                with urlopen(found[1]) as answer:
                    return str(answer.read().decode())

            eventually(lambda: "tidelog_mirror_shipped_entries_total 2" in metrics(), "two entries in the metrics")
            text = metrics()
    for line in (
        "tidelog_mirror_lag_entries 0",
        "tidelog_mirror_lag_bytes 0",
        "tidelog_mirror_lag_seconds 0",
        "tidelog_mirror_whole 1",
        'tidelog_mirror_table_lag_entries{table="t"} 0',
    ):
        assert line in text
