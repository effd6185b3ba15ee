"""Copiers: consume, transform, produce in transactions, as Kafka's own system test does, while all around them dies.

Two copiers of one group read a topic and write what they read to another one, offsets in the same transactions; each
fifth transaction is aborted. Meanwhile a copier or one of three brokers is killed with SIGKILL and started again, in
turn. In the end each record is there once, and each partition in its order.
"""

import itertools
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from compat.suite import FAILED, PASSED, SKIPPED, Outcome, built
from confluent_kafka import Producer
from support.cluster_processes import BrokerProcess
from support.kafka_clients import NEWEST, SOURCES, install
from support.transactional_clients import read
from support.waiting import eventually

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

SUITE = "copier"
RECORDS, PARTITIONS, AT_ONCE = 12_000, 4, 50
COPIERS, BROKERS = 2, 3
# The first kills come when the copiers have begun, the others that long after one another.
KILLED_EVERY_S = 4.0
_LIMIT_S = 400.0
_JAVA = next(client for client in NEWEST if client.name == "java")

Command = Sequence[str | Path]


def _java(folder: Path) -> Command:
    install(_JAVA)
    jars = f"{_JAVA.folder}/*"
    built(
        ["javac", "-cp", jars, "-d", str(folder), str(SOURCES / "java/Copier.java")], folder / "javac.log", cwd=folder
    )
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{folder}:{jars}", "Copier"]


def _librdkafka(_folder: Path) -> Command:
    return [sys.executable, SOURCES / "python/confluent_copier.py"]


# By name: the program that must be there, and what makes the command.
CLIENTS: dict[str, tuple[str, Callable[[Path], Command]]] = {
    "librdkafka": (sys.executable, _librdkafka),
    "java": ("javac", _java),
}


class World(AbstractContextManager["World"]):
    """Brokers over a lake, and copiers from topic `in` to `out`. Logs go to the folder."""

    def __init__(self, lake: Lake, command: Command, folder: Path) -> None:
        self._lake, self._command = lake, command
        self._brokers = [BrokerProcess(lake.uri, id=number + 1) for number in range(BROKERS)]
        self._copiers: dict[int, subprocess.Popen[bytes]] = {}
        self._logs = [folder / f"copier-{number}.log" for number in range(COPIERS)]
        self.killed = 0

    def __enter__(self) -> "World":
        for broker in self._brokers:
            broker.ready()
        return self

    def __exit__(self, *_: object) -> None:
        for copier in self._copiers.values():
            copier.kill()
            copier.wait()
        for broker in self._brokers:
            broker.__exit__()

    @property
    def address(self) -> str:
        """For bootstrap.servers."""
        return ",".join(broker.address for broker in self._brokers)

    def fill(self) -> None:
        """Send what is to be copied."""
        producer = Producer({"bootstrap.servers": self.address, "enable.idempotence": True})
        for number in range(RECORDS):
            producer.produce("in", str(number), partition=number % PARTITIONS)
            producer.poll(0)
        assert producer.flush(60) == 0

    def copied(self) -> int:
        """How many records are committed in `out`."""
        state = self._lake.topic("out").state()
        return sum(state.end(partition) for partition in range(PARTITIONS))

    def run(self) -> None:
        """Copy all, and kill one after another meanwhile. Raises `AssertionError` where it takes too long."""
        kill_s: float | None = None
        victims = itertools.cycle([self._kill_copier(0), self._kill_broker(1), self._kill_copier(1),
                                   self._kill_broker(2), self._kill_broker(0)])  # fmt: skip

        def done() -> bool:
            nonlocal kill_s
            self._start_copiers()
            copied, now_s = self.copied(), time.monotonic()
            if kill_s is None and copied:
                kill_s = now_s
            if kill_s is not None and now_s >= kill_s:
                next(victims)()
                self.killed += 1
                kill_s = time.monotonic() + KILLED_EVERY_S
            return copied >= RECORDS

        eventually(done, "all records are copied", _LIMIT_S)

    def _start_copiers(self) -> None:
        """Those that have ended, too: one that is fenced says so and ends."""
        for number, path in enumerate(self._logs):
            if number not in self._copiers or self._copiers[number].poll() is not None:
                command = [*self._command, self.address, "in", "out", "g", f"copier-{number}", str(AT_ONCE)]
                with open(path, "ab") as log:
                    self._copiers[number] = subprocess.Popen(
                        list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )

    def _kill_copier(self, number: int) -> Callable[[], None]:
        def kill() -> None:
            self._copiers[number].kill()
            self._copiers[number].wait()

        return kill

    def _kill_broker(self, number: int) -> Callable[[], None]:
        def kill() -> None:
            old = self._brokers[number]
            old.kill()
            old.__exit__()
            self._brokers[number] = BrokerProcess(self._lake.uri, id=old.id, port=old.port).ready()

        return kill


def outcomes(work: Path, only: str = "") -> Iterator[Outcome]:
    """Run each client's copiers. `only`: a part of a name."""
    for name, (program, command) in CLIENTS.items():
        if only not in name:
            continue
        if shutil.which(program) is None:
            yield Outcome(SUITE, name, SKIPPED, 0.0, f"'{program}' is not there")
            continue
        began_s, state, words = time.monotonic(), PASSED, ""
        try:
            folder = work / name
            folder.mkdir(parents=True)
            words = f"{copy(command(folder), folder)} kills"
        except (AssertionError, RuntimeError) as error:
            state, words = FAILED, " ".join(str(error).split())[:600]
        yield Outcome(SUITE, name, state, time.monotonic() - began_s, words)


def copy(command: Command, folder: Path) -> int:
    """Have copiers copy all; how many processes were killed meanwhile. Raises `AssertionError` for what is wrong."""
    with Lake(str(folder / "lake")) as lake:
        for topic in ("in", "out"):
            lake.create_topic(topic, PARTITIONS)
        with World(lake, command, folder) as world:
            world.fill()
            world.run()
            read_by_kafka = read(world.address, "read_committed")
        wanted = {partition: _values(lake, "in", partition) for partition in range(PARTITIONS)}
        for partition, values in wanted.items():
            assert _values(lake, "out", partition) == values, f"partition {partition} is not as it was sent"
        assert read_by_kafka == sorted(value.decode() for values in wanted.values() for value in values)
        committed = {place[1]: one.offset for place, one in GroupLog(lake).stable_offsets("g", 60.0).items()}
        assert committed == {partition: len(values) for partition, values in wanted.items()}, (
            f"it goes on at {committed}"
        )
        assert world.killed >= BROKERS + COPIERS, f"only {world.killed} processes were killed: give it more to copy"
        return world.killed


def _values(lake: Lake, topic: str, partition: int) -> list[bytes]:
    return [value for batch in lake.topic(topic).read(partition) for value in batch.column("value").to_pylist()]
