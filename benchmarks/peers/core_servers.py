"""tidelog's brokers and Kafka, each on one core, and a load on another: what a record costs in processor time."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import broker as kafka_broker
import brokers
import kafka_load
import proc_times
import workspace
from bench import Bench
from figures import interleaved
from kafka_load import Done, Load
from measures import Measure
from peer import KAFKA, TIDELOG, Peer
from runner import CaseError

PARTITIONS = 12
MEMORY = Path("/dev/shm")
_WARM_S, _WARM_QUICK_S = 15.0, 4.0
_WARM_TIDELOG_S = 2.0
# What is deleted is gone at once, not in a minute.
_AT_ONCE = {"log.segment.delete.delay.ms": 0}
_LOAD = Path(kafka_load.__file__)
_ROUNDS, _ROUNDS_QUICK = 3, 1
_numbers = count()


@dataclass(frozen=True)
class Server:
    """A broker, or several processes of it; `root` has started all of them. `lake`: tidelog's folder.

    `others`: what has started more processes of it: other brokers, a store's nodes. `replicas`: of a topic's records.
    """

    system: str
    address: str
    root: int
    lake: Path | None = None
    others: tuple[int, ...] = ()
    replicas: int = 1

    @property
    def pids(self) -> set[int]:
        """All of its processes."""
        return self.pids_of(proc_times.processes())

    def pids_of(self, found: Mapping[int, proc_times.Process]) -> set[int]:
        """Those of its processes among all that were found."""
        return {pid for root in (self.root, *self.others) for pid in proc_times.family(found, root)}

    @property
    def memory_mib(self) -> float:
        """Of its largest process."""
        return proc_times.memory_mib(self.pids)

    def new_topic(self, partitions: int = PARTITIONS) -> str:
        """A topic that only one load has."""
        name = f"core-{next(_numbers):05d}"
        Peer(KAFKA, self.address).create_topic(name, partitions, replicas=self.replicas)
        return name

    def drop(self, topic: str) -> None:
        """Delete a topic and its bytes at once: the memory that holds them is not large."""
        Peer(KAFKA, self.address).delete_topic(topic)
        if self.lake is not None:
            shutil.rmtree(self.lake / topic, ignore_errors=True)


@dataclass(frozen=True)
class Cost:
    """What a load was and did to a server: its `done`, the server's processor time, and what else ran, in cores."""

    done: Done
    used_s: float
    beside: Mapping[str, float]

    @property
    def us(self) -> float:
        """The server's processor time for each record."""
        return self.used_s * 1e6 / self.done.records

    @property
    def cores(self) -> float:
        """The server's."""
        return self.used_s / self.done.seconds

    @property
    def load_cores(self) -> float:
        """The load's own."""
        return self.done.own_s / self.done.seconds


@dataclass
class Loads:
    """The process that makes loads, and the extremes of what it and all others used meanwhile."""

    process: "subprocess.Popen[str]"
    most_cores: float = 0.0
    beside: dict[str, float] = field(default_factory=dict)

    def run(self, server: Server, load: Load) -> Cost:
        """A load on the server. Raises `CaseError` when the server refuses it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(kafka_load.as_line(replace(load, address=server.address)))
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            raise CaseError(f"The load failed at {server.system}.")
        before, began = proc_times.processes(), time.monotonic()
        line = self.process.stdout.readline()
        after, took_s = proc_times.processes(), time.monotonic() - began
        if not line:
            raise CaseError(f"The load failed at {server.system}.")
        own = server.pids_of(after)
        known = own | {self.process.pid, os.getpid()}
        cost = Cost(
            kafka_load.from_line(line),
            proc_times.used_s(before, after, own),
            proc_times.others(before, after, known, took_s),
        )
        if not cost.done.records:
            raise CaseError(f"{server.system} took no record of {load}.")
        self.most_cores = max(self.most_cores, cost.load_cores)
        for command, cores in cost.beside.items():
            self.beside[command] = max(cores, self.beside.get(command, 0.0))
        return cost

    def on_new_topic(self, server: Server, load: Load) -> Cost:
        """A load on a topic of its own, which is gone afterwards."""
        topic = server.new_topic(load.partitions)
        try:
            return self.run(server, replace(load, topic=topic))
        finally:
            server.drop(topic)

    def note(self) -> str:
        """What ran meanwhile, for people."""
        busy = sorted(self.beside.items(), key=lambda item: -item[1])[:5]
        named = ", ".join(f"{command} {cores:.2f}" for command, cores in busy if cores >= 0.05)
        return f"the load took {self.most_cores:.2f} of a core at most; beside it ran {named or 'nothing'}"


def cores() -> tuple[list[int], list[int]]:
    """(those of servers, that of the load): the last one is the load's, and all are where there is only one."""
    own = sorted(os.sched_getaffinity(0))
    return own[:-1] or own, own[-1:]


@contextmanager
def loads() -> Iterator[Loads]:
    """The load's process, on a core of its own."""
    if not Path("/proc/self/stat").exists():
        raise CaseError("Processor times are read from Linux' /proc.")
    with proc_times.on_cores(cores()[1]):
        process = subprocess.Popen(
            [sys.executable, str(_LOAD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(_LOAD.parent)},
        )  # fmt: skip
    try:
        yield Loads(process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder in memory, gone afterwards. Raises `CaseError`."""
    if not MEMORY.is_dir():
        raise CaseError(f"There is no {MEMORY}.")
    with workspace.own(str(MEMORY)) as folder:
        yield folder


@contextmanager
def tidelog(folder: Path, processes: int = 1, **settings: Any) -> Iterator[Server]:
    """One broker on one core, or several processes on all cores but the load's, over a lake in a folder."""
    own, _ = cores()
    with ExitStack() as stack:
        with proc_times.on_cores(own if processes > 1 else own[:1]):
            (process,) = stack.enter_context(brokers.running(folder, processes=processes, **settings))
        yield Server(TIDELOG, process.address, process.pid, folder)


@contextmanager
def kafka(folder: Path) -> Iterator[Server]:
    """Kafka on one core, with its data in a folder."""
    with ExitStack() as stack:
        with proc_times.on_cores(cores()[0][:1]):
            found = stack.enter_context(kafka_broker.running(folder, _AT_ONCE))
        yield Server(KAFKA, found.address, found.pid)


@contextmanager
def both(folder: Path, bench: Bench, making: Loads) -> Iterator[dict[str, Server]]:
    """One of each in a folder, warmed up by a load of many sizes of batch."""
    with tidelog(folder / "lake") as own, kafka(folder / "kafka") as other:
        warm(own, making, _WARM_TIDELOG_S)
        warm(other, making, _WARM_QUICK_S if bench.quick else _WARM_S)
        yield {TIDELOG: own, KAFKA: other}


def warm(server: Server, making: Loads, seconds: float) -> None:
    """Let a server do for some seconds what it will be measured by."""
    shapes = [(1_000, "none"), (100, "lz4"), (10, "none"), (1, "none")]
    part_s = seconds / (len(shapes) + 2)
    for records, codec in shapes:
        load = Load("window", "", "", part_s, 0, PARTITIONS, records=records, codec=codec, most_records=4_000_000)
        making.on_new_topic(server, load)
    making.on_new_topic(server, Load("single", "", "", part_s, 0, PARTITIONS, clients=200))
    topic = server.new_topic()
    filled = Load("window", "", topic, part_s, 0, PARTITIONS, records=100, most_records=500_000)
    making.run(server, filled)
    making.run(server, Load("read", "", topic, part_s, 0, PARTITIONS))
    server.drop(topic)


def in_turns(bench: Bench, arms: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Every arm once a round; all is warm."""
    return interleaved(arms, _ROUNDS_QUICK if bench.quick else _ROUNDS, warmups=0)


def lower(case: str, system: str, metric: str, unit: str, rounds: Sequence[float]) -> Measure:
    """A measure of which less is better."""
    return Measure(case, system, metric, unit, "lower", list(rounds))


def processor_time(case: str, found: Mapping[str, list[float]]) -> list[Measure]:
    """Microseconds a record, by system."""
    return [lower(case, system, "processor time", "us a record", rounds) for system, rounds in found.items()]
