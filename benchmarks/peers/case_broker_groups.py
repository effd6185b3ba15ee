"""Groups of the consumer protocol (KIP-848): a member joins a hundred, what those notice, and a thousand idle ones."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import Any

import confluent_kafka
import proc_times
from bench import Bench
from core_servers import Server, cores, in_turns, kafka, lower, tidelog
from figures import percentile
from idle_members import idle_group
from measures import Measure
from peer import KAFKA
from runner import CaseError

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

TITLE = "Groups of the consumer protocol"
CASE = "broker groups"
_MEMBERS, _PARTITIONS = 100, 1_000
_IDLE, _IDLE_QUICK = 1_000, 100
_IDLE_S, _IDLE_QUICK_S = 30.0, 5.0
_SETTLED_WITHIN_S = 180.0
# How long a group is left alone before one joins: what its members' gaps are by themselves.
_ALONE_S, _ALONE_QUICK_S = 10.0, 3.0
_RATE = 200
_PAUSE_S = 0.005


def run(bench: Bench) -> list[Measure]:
    """Unmodified librdkafka at a broker on one core: 1,000 partitions, 100 members, and one that comes and goes.

    A join lasts until all of the 101 members are assigned their shares. One member reads 200 records a second: its
    longest gap meanwhile, of the partitions that it keeps, by the p99 of its gaps in ten seconds in which nothing
    happens; the longest gap of those is measured, too, as no join is needed for one. Idle members send heartbeats
    alone, as often as the broker asks for. The other system has no group meanwhile: a hundred members that read take
    most of the core.
    """
    idle, idle_s = (_IDLE_QUICK, _IDLE_QUICK_S) if bench.quick else (_IDLE, _IDLE_S)
    joins: dict[str, list[_Join]] = {}
    rests: dict[str, list[_Rest]] = {}
    with (
        tidelog(bench.work / "lake") as own,
        kafka(bench.work / "kafka") as other,
        proc_times.on_cores(cores()[1]),
    ):
        servers = {one.system: one for one in (own, other)}

        def join(system: str) -> float:
            with _group(servers[system]) as group:
                joins.setdefault(system, []).append(group.join(_ALONE_QUICK_S if bench.quick else _ALONE_S))
            return joins[system][-1].took_s

        in_turns(bench, {system: partial(join, system) for system in servers})

        def rest(system: str) -> float:
            rests.setdefault(system, []).append(asyncio.run(_rest(servers[system], idle, idle_s)))
            return rests[system][-1].cores

        in_turns(bench, {system: partial(rest, system) for system in servers})
    measures = []
    for system in servers:
        measures += [
            lower(CASE, system, "join", "s", [one.took_s for one in joins[system]]),
            lower(CASE, system, "longest gap by p99", "x", [one.gap for one in joins[system]]),
            lower(CASE, system, "longest gap before by p99", "x", [one.gap_before for one in joins[system]]),
            lower(CASE, system, "idle members", "cores", [one.cores for one in rests[system]]),
        ]
        if system != KAFKA:
            entries = [float(one.entries) for one in rests[system]]
            measures.append(lower(CASE, system, "idle members' entries", "entries", entries))
    return measures


# --- members that read -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Join:
    """How long it took; the longest gap of a member meanwhile, and before, both by the p99 of its gaps before."""

    took_s: float
    gap: float
    gap_before: float


@contextmanager
def _group(server: Server) -> Iterator["_Group"]:
    topic = server.new_topic(_PARTITIONS)
    group = _Group(server.address, topic)
    try:
        group.settle()
        yield group
    finally:
        group.close()
        server.drop(topic)


class _Member:
    """A member, and the partitions that it is assigned: `Consumer.assignment` would stop all threads while it waits."""

    def __init__(self, conf: dict[str, Any], topic: str) -> None:
        self.partitions: set[int] = set()
        self._consumer = confluent_kafka.Consumer(conf)
        self._consumer.subscribe([topic], on_assign=self._gains, on_revoke=self._loses, on_lost=self._loses)
        self.poll, self.close = self._consumer.poll, self._consumer.close

    def _gains(self, _: object, places: list[confluent_kafka.TopicPartition]) -> None:
        self.partitions |= {place.partition for place in places}

    def _loses(self, _: object, places: list[confluent_kafka.TopicPartition]) -> None:
        self.partitions -= {place.partition for place in places}


class _Group:
    """A hundred members in this process. The first one is polled by a thread of its own, and says when records come."""

    def __init__(self, address: str, topic: str) -> None:
        self._topic = topic
        self._conf: dict[str, Any] = {
            "bootstrap.servers": address,
            "group.id": f"readers-{topic}",
            "group.protocol": "consumer",
            "enable.auto.commit": False,
            "log_level": 3,
        }
        self._members = [_Member(self._conf, topic) for _ in range(_MEMBERS)]
        self._arrived: list[tuple[int | None, float]] = []
        self._over = Event()
        self._threads = [Thread(target=self._watch), Thread(target=self._produce)]
        for thread in self._threads:
            thread.start()

    def settle(self) -> float:
        """Wait until all have their shares; the seconds that took. Raises `CaseError`."""
        began = time.monotonic()
        share = (_PARTITIONS // len(self._members), -(-_PARTITIONS // len(self._members)))
        while time.monotonic() - began < _SETTLED_WITHIN_S:
            for member in self._members[1:]:
                member.poll(0)
            counts = [len(member.partitions) for member in self._members]
            if sum(counts) == _PARTITIONS and all(count in share for count in counts):
                return time.monotonic() - began
            time.sleep(_PAUSE_S)
        raise CaseError(f"{len(self._members)} members did not get their shares in {_SETTLED_WITHIN_S:g} s: {counts}")

    def join(self, alone_s: float) -> _Join:
        """One more joins, and leaves again."""
        before = time.monotonic()
        while time.monotonic() - before < alone_s:
            for member in self._members[1:]:
                member.poll(0)
            time.sleep(_PAUSE_S)
        began = time.monotonic()
        self._members.append(_Member(self._conf, self._topic))
        took_s = self.settle()
        kept, ended = set(self._members[0].partitions), time.monotonic()
        time.sleep(1.0)  # what it read until then has arrived
        times = [at for partition, at in self._arrived if partition in kept]
        self._members.pop().close()
        self.settle()
        alone = _gaps([at for at in times if before <= at < began])
        meanwhile = _gaps([at for at in times if began - alone_s / 10 <= at < ended + alone_s / 10])
        if not alone or not meanwhile:
            raise CaseError("The member that is watched has read nothing.")
        usual = percentile(alone, 99)
        return _Join(took_s, max(meanwhile) / usual, max(alone) / usual)

    def close(self) -> None:
        """All leave."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        for member in self._members:
            member.close()
        self._members.clear()

    def _watch(self) -> None:
        while not self._over.is_set():
            message = self._members[0].poll(0.2)
            if message is not None and message.error() is None:
                self._arrived.append((message.partition(), time.monotonic()))

    def _produce(self) -> None:
        """Records for the partitions of the first member, in turns."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self._conf["bootstrap.servers"], "log_level": 3})
        number, next_s = 0, time.monotonic()
        while not self._over.wait(max(0.0, next_s - time.monotonic())):
            next_s += 1 / _RATE
            if own := sorted(self._members[0].partitions):
                producer.produce(self._topic, b"x" * 100, partition=own[number % len(own)])
                number += 1
            producer.poll(0)
        producer.flush()


def _gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


# --- members that are idle ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rest:
    """What idle members cost the broker: cores, and entries of the groups' table."""

    cores: float
    entries: int


async def _rest(server: Server, members: int, seconds: float) -> _Rest:
    topic = server.new_topic(members)
    group = f"idle-{topic}"
    async with idle_group(server.address, group, topic, members, members):
        entries, before, began = _entries(server, group), proc_times.processes(), time.monotonic()
        await asyncio.sleep(seconds)
        after, took_s = proc_times.processes(), time.monotonic() - began
        used_s = proc_times.used_s(before, after, server.pids_of(after))
        found = _Rest(used_s / took_s, _entries(server, group) - entries)
    server.drop(topic)
    return found


def _entries(server: Server, group: str) -> int:
    """How many the group's table has; 0 of Kafka."""
    if server.lake is None:
        return 0
    with Lake(str(server.lake), create=False) as lake:
        log = GroupLog(lake)
        log.group(group)  # a look
        return log.version(group)
