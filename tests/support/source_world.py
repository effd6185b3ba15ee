"""Topics that come, grow, shrink and go, and what a query has to see of them: a model of Kafka's source.

After `KafkaSourceStressSuite` and `KafkaSourceStressForDontFailOnDataLossSuite` of Spark 4.2's Kafka connector.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from support.logs import values

from tidelog.log.lake import Lake
from tidelog.sources.offset_json import Offsets, TopicPartition

NAMES = ("in.a", "in.b", "in.c", "out")


@dataclass
class Log:
    """A partition: all records that it ever had, and from which offset on they are there."""

    records: list[str] = field(default_factory=list)
    start: int = 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return len(self.records)


@dataclass(frozen=True)
class Reading:
    """What a batch gets, and the partitions of which something is gone that it should have got."""

    values: list[str]
    lost: frozenset[TopicPartition]


class World:
    """A lake and, beside it, what is in it. Each value is written once."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.topics: dict[str, list[Log]] = {}
        self._written = 0

    # --- what happens --------------------------------------------------------------------------------------

    def mutate(self, random: Random) -> str:
        """One thing that can happen now; says which."""
        there, absent = sorted(self.topics), [name for name in NAMES if name not in self.topics]
        can: list[tuple[int, Callable[[Random, str], str], list[str]]] = [
            (8, self._append, there),
            (2 if there else 8, self._create, absent),
            (1, self._delete, there),
            (1, self._widen, [name for name in there if len(self.topics[name]) < 5]),
            (2, self._cut, there),
        ]
        possible = [(weight, do, names) for weight, do, names in can if names]
        (_, do, names), *_ = random.choices(possible, [weight for weight, _, _ in possible])
        return do(random, random.choice(names))

    def _create(self, random: Random, name: str) -> str:
        partitions = random.randint(1, 3)
        self.lake.create_topic(name, partitions=partitions)
        self.topics[name] = [Log() for _ in range(partitions)]
        return f"create {name} with {partitions} partitions"

    def _delete(self, random: Random, name: str) -> str:
        self.lake.delete_topic(name)
        del self.topics[name]
        return f"delete {name}"

    def _widen(self, random: Random, name: str) -> str:
        self.topics[name].append(Log())
        self.lake.alter_topic(name, partitions=len(self.topics[name]))
        return f"{name} has {len(self.topics[name])} partitions"

    def _append(self, random: Random, name: str) -> str:
        logs = self.topics[name]
        partitions = sorted(random.choices(range(len(logs)), k=random.randint(1, 6)))
        texts = [str(self._written + n) for n in range(len(partitions))]
        self._written += len(texts)
        self.lake.topic(name).append(values(*texts, partition=partitions))
        for partition, text in zip(partitions, texts, strict=True):
            logs[partition].records.append(text)
        return f"append {texts} to partitions {partitions} of {name}"

    def _cut(self, random: Random, name: str) -> str:
        partition = random.randrange(len(self.topics[name]))
        log = self.topics[name][partition]
        log.start = random.randint(log.start, log.end)
        self.lake.delete_records(name, {partition: log.start})
        return f"{name}-{partition} starts at {log.start}"

    # --- what a query sees ---------------------------------------------------------------------------------

    def logs(self, reads: Callable[[TopicPartition], bool]) -> dict[TopicPartition, Log]:
        """The partitions that are there and that a query reads."""
        found = {TopicPartition(name, n): log for name, logs in self.topics.items() for n, log in enumerate(logs)}
        return {partition: log for partition, log in found.items() if reads(partition)}


def read(logs: Mapping[TopicPartition, Log], start: Offsets, end: Offsets) -> Reading:
    """What a batch from `start` to `end` reads of what is there when it is planned."""
    values: list[str] = []
    lost = set(start.keys() - end.keys())
    for partition, stop in end.items():
        log = logs.get(partition)
        is_new = partition not in start
        if log is None:
            if is_new or start[partition] != stop:
                lost.add(partition)
            continue
        begin = log.start if is_new else start[partition]
        first, last = max(begin, log.start), min(stop, log.end)
        if stop < begin or (is_new and begin > 0) or (begin < stop and (first, last) != (begin, stop)):
            lost.add(partition)
        values += log.records[first:last] if begin < stop else []
    return Reading(values, frozenset(lost))
