"""Python processes that Spark starts to plan queries are forks, and end with what began them."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import eventually

from tidelog.spark import python_processes
from tidelog.spark.forked_python import SOCKET, plans
from tidelog.spark.python_processes import forking_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has what it takes")
# Writes its port, four bytes, and ends when its stdin does.
DAEMON = ("-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source")
BEGIN = "from tidelog.spark.python_processes import forking_python; print(forking_python(), flush=True); input()"


@pytest.mark.parametrize(
    ("arguments", "planner"),
    [
        (DAEMON, True),
        (("-m", "pyspark.sql.streaming.python_streaming_source_runner"), True),
        (("-m", "pyspark.daemon", "pyspark.worker"), False),
        (("-m", "pyspark.daemon"), False),
        (("-m", "tidelog.sources.worker_daemon", "pyspark.worker"), False),
        (("-m", "pip", "pyspark.sql.worker.create_data_source"), False),
        (("-c", "pyspark.sql.worker.create_data_source"), False),
        ((), False),
    ],
)
def test_processes_that_plan_are_forked_and_no_others(arguments: tuple[str, ...], planner: bool) -> None:
    assert plans([*arguments]) is planner


class Beginner:
    """A program that has asked for Spark's Python, as `tidelog.spark.session` does."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.program = Path(self.process.stdout.readline().strip())
        self.folder = self.program.parent

    def listens(self) -> bool:
        return (self.folder / SOCKET).exists()

    def server(self) -> int:
        (pid,) = children(self.process.pid)
        return pid


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def beginner() -> Iterator[Beginner]:
    begun = Beginner()
    eventually(begun.listens, "a socket to ask for forks")
    yield begun
    begun.process.kill()
    begun.process.communicate()
    eventually(lambda: not begun.folder.exists(), "its folder to go")


def start(beginner: Beginner) -> "subprocess.Popen[bytes]":
    daemon = subprocess.Popen([beginner.program, *DAEMON], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert daemon.stdout is not None
    (port,) = struct.unpack(">i", daemon.stdout.read(4))
    assert port > 0
    return daemon


def test_a_fork_does_the_work_and_ends_with_its_stdin(beginner: Beginner) -> None:
    daemon = start(beginner)
    assert len(children(beginner.server())) == 1
    daemon.communicate()
    eventually(lambda: children(beginner.server()) == [], "the fork to end")


def test_what_stops_the_process_stops_its_fork(beginner: Beginner) -> None:
    daemon = start(beginner)
    daemon.terminate()
    daemon.communicate()
    eventually(lambda: children(beginner.server()) == [], "the fork to end")


def test_a_process_that_is_killed_takes_its_fork_along(beginner: Beginner) -> None:
    """Its streams end with it."""
    daemon = start(beginner)
    daemon.kill()
    daemon.communicate()
    eventually(lambda: children(beginner.server()) == [], "the fork to end")


def test_where_there_is_nothing_to_fork_from_python_starts(beginner: Beginner) -> None:
    os.kill(beginner.server(), signal.SIGKILL)
    daemon = start(beginner)
    assert Path(f"/proc/{daemon.pid}/cmdline").read_bytes().split(b"\0")[1:4] == [word.encode() for word in DAEMON]
    daemon.communicate()
    for path in (beginner.folder / SOCKET, beginner.program):
        path.unlink()
    beginner.folder.rmdir()  # as the process that would have has been killed


def test_all_else_is_python(beginner: Beginner) -> None:
    program = "import os, sys; print(sys.executable, sys.argv[1:], os.getpid())"
    process = subprocess.Popen([beginner.program, "-c", program, "a b", "é"], stdout=subprocess.PIPE, text=True)
    printed, _ = process.communicate()
    assert printed.split(" ", 1) == [sys.executable, f"['a b', 'é'] {process.pid}\n"]


def test_it_ends_with_the_program_that_began_it_and_leaves_no_file(beginner: Beginner) -> None:
    daemon = start(beginner)
    server = beginner.server()
    beginner.process.kill()
    beginner.process.wait()
    eventually(lambda: not beginner.folder.exists(), "its folder to go")
    eventually(lambda: not Path(f"/proc/{server}").exists(), "its process to go")
    daemon.communicate()  # what it has forked goes on until Spark ends it


def test_one_program_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert forking_python() == forking_python()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert python_processes.forking_python.__wrapped__() == sys.executable
