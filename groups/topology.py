"""What an application of Kafka Streams does, as its group's log says it (KIP-1071): its topology, and its tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class StreamsTask(NamedTuple):
    """A part of an application's work: one partition of the topics that a subtopology reads."""

    subtopology: str
    partition: int


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks by what a member does with them: it runs them, keeps copies of their state, or comes to have one."""

    active: frozenset[StreamsTask] = frozenset()
    standby: frozenset[StreamsTask] = frozenset()
    warmup: frozenset[StreamsTask] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def __and__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def __or__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def __sub__(self, other: "Tasks") -> "Tasks":
        return Tasks(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    @property
    def every(self) -> frozenset[StreamsTask]:
        """All of them, whatever is done with them."""
        return self.active | self.standby | self.warmup


NO_TASKS = Tasks()


@dataclass(frozen=True, slots=True, order=True)
class InnerTopic:
    """A topic that an application writes for itself. `partitions`: 0 where the group decides that.

    `replication_factor`: below 1 for the brokers' default. `config`: (key, value), sorted.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Subtopology:
    """A part of a topology that exchanges records with others by topics only.

    `sources`: topics of others that it reads; `repartition_sources`: those of the application's own, which some part
    writes, as one of its `repartition_sinks`. `changelogs`: what its state is rebuilt from; with one it is stateful.
    `copartitioned`: sets of topics that have equally many partitions.
    """

    name: str
    sources: tuple[str, ...] = ()
    repartition_sources: tuple[InnerTopic, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    changelogs: tuple[InnerTopic, ...] = ()
    copartitioned: tuple[tuple[str, ...], ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """The topics that it reads."""
        return (*self.sources, *(topic.name for topic in self.repartition_sources))


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """What an application does, as its members say it. `epoch`: its version. All is sorted."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @property
    def inner(self) -> Mapping[str, InnerTopic]:
        """The topics that are made for it, by name."""
        return {
            topic.name: topic for part in self.subtopologies for topic in (*part.repartition_sources, *part.changelogs)
        }

    @property
    def sources(self) -> frozenset[str]:
        """The topics of others that it reads."""
        return frozenset(name for part in self.subtopologies for name in part.sources)

    def inputs(self, tasks: Iterable[StreamsTask]) -> list[tuple[str, int]]:
        """The partitions that tasks read, (topic, number), sorted; a topic of fewer partitions has not all of them."""
        by_name = {part.name: part.inputs for part in self.subtopologies}
        return sorted((topic, task.partition) for task in tasks for topic in by_name.get(task.subtopology, ()))

    @property
    def required(self) -> frozenset[str]:
        """All topics that must be there before it runs."""
        return self.sources | self.inner.keys()
