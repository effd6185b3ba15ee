"""A group of real processes, killed and frozen while it reads: nothing that was acknowledged is lost."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import support.consumer_member
from support.nursery import ForkedPython
from support.waiting import eventually

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

PARTITIONS = 8
RECORDS = 120_000
PER_ENTRY = 1_000


class Members:
    """The processes, each with the file of what it read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> int:
        """Start one; returns its number."""
        number = len(self.processes)
        script = str(support.consumer_member.__file__)
        command = [sys.executable, script, str(self.folder / "lake"), str(self.folder / f"read-{number}")]
        with (self.folder / f"log-{number}").open("wb") as told:
            self.processes.append(ForkedPython(command, stdout=told, stderr=told))
        return number

    def send(self, number: int, what: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.processes[number].pid, what)

    def read_by(self, number: int) -> int:
        """How many bytes of records one has read."""
        path = self.folder / f"read-{number}"
        return path.stat().st_size if path.exists() else 0

    def read(self) -> list[int]:
        """What all of them have read, each as often as it was."""
        return [int(line) for path in self.folder.glob("read-*") for line in path.read_text().splitlines()]

    def kill_all(self) -> None:
        """End them all."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    made = Members(tmp_path)
    yield made
    made.kill_all()


def test_members_killed_and_frozen_lose_nothing(members: Members, tmp_path: Path) -> None:
    with Lake(str(tmp_path / "lake")) as lake:
        lake.create_topic("t", partitions=PARTITIONS)
        topic, log = lake.topic("t"), GroupLog(lake)
        written = 0

        def write(count: int) -> None:
            nonlocal written
            for first in range(written, written + count, PER_ENTRY):
                numbers = range(first, first + PER_ENTRY)
                columns = {"value": [str(n) for n in numbers], "partition": [n % PARTITIONS for n in numbers]}
                topic.append(pa.table(columns), acks=1)
            written += count

        def come(condition: Callable[[], bool], what: str) -> None:
            """Wait for it while records go on coming: earlier members may have read the others."""

            def look() -> bool:
                write(PER_ENTRY)
                return condition()

            eventually(look, what)

        for _ in range(3):
            members.start()
        write(RECORDS // 4)
        come(lambda: all(members.read_by(n) for n in range(3)), "record for each member")

        group = log.group("g")
        assert group is not None
        members.send(0, signal.SIGKILL)
        write(RECORDS // 4)
        members.send(1, signal.SIGSTOP)
        frozen = members.read_by(1)
        members.start()
        write(RECORDS // 4)

        def moved_on() -> bool:
            now = log.group("g")
            return now is not None and now.generation > group.generation and len(now.members) == 2

        eventually(moved_on, "generation without those that are gone")
        members.send(1, signal.SIGCONT)  # it thinks that it owns what others read by now
        come(lambda: members.read_by(1) > frozen, "record for the one that was frozen")
        write(RECORDS // 4)
        ends = {("t", p): end for p, (_, end) in lake.offsets("t").items()}
        eventually(lambda: {place: o.offset for place, o in log.offsets("g").items()} == ends, "commit of the ends")

    read = members.read()
    assert written >= RECORDS
    assert set(read) == set(range(written))
    assert len(read) < 2 * written
    assert [p.poll() for p in members.processes[1:]] == [None, None, None]
