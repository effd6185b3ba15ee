"""What a topology needs of its topics: how many partitions inner ones get, which are missing, which are wrong. Pure.

Source: `InternalTopicManager`, `RepartitionTopics`, `CopartitionedTopicsEnforcer` (kafka 4.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from tidelog.groups.assignors.sticky_tasks import Workload
from tidelog.groups.rules.modern.topics import Topics
from tidelog.groups.topology import InnerTopic, StreamsTopology, Subtopology
from tidelog.log.base.errors import InvalidTopologyError

# The most tasks that a topology may have: each is a row's part, and each member's answer.
MOST_TASKS = 100_000


class Status(IntEnum):
    """What a member is notified of, by Kafka's numbers. Source: `StreamsGroupHeartbeatResponse.Status`."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class Configured:
    """A topology over the topics as they are. `problem`: why it can't run yet, in words.

    `workloads`: the tasks of each subtopology, none while topics are wrong. `missing`: inner topics to be made.
    """

    workloads: Mapping[str, Workload] = field(default_factory=dict)
    missing: tuple[InnerTopic, ...] = ()
    problem: tuple[Status, str] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the application may run."""
        return self.problem is None


class _WrongTopicsError(Exception):
    """Topics have numbers of partitions that the topology can't have."""


def configure(topology: StreamsTopology, topics: Topics) -> Configured:
    """The topology over these topics, of which all that it requires are keys.

    Raises `InvalidTopologyError` where no topics could make it run.
    """
    gone = sorted(name for name in topology.sources if topics[name] is None)
    if gone:
        return Configured(problem=(Status.MISSING_SOURCE_TOPICS, f"Source topics {_listed(gone)} are missing."))
    try:
        counts = _partition_counts(topology, topics)
        tasks = {part.name: max((counts[name] for name in part.inputs), default=0) for part in topology.subtopologies}
        missing = _missing(topology, topics, counts, tasks)
    except _WrongTopicsError as e:
        return Configured(problem=(Status.INCORRECTLY_PARTITIONED_TOPICS, str(e)))
    workloads = {part.name: Workload(tasks[part.name], bool(part.changelogs)) for part in topology.subtopologies}
    if sum(one.tasks for one in workloads.values()) > MOST_TASKS:
        raise InvalidTopologyError(f"The topology has more than {MOST_TASKS} tasks. Give its topics fewer partitions.")
    names = [topic.name for topic in missing]
    problem = (Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {_listed(names)}") if missing else None
    return Configured(workloads, missing, problem)


def _partition_counts(topology: StreamsTopology, topics: Topics) -> dict[str, int]:
    """{topic: how many partitions it has, or is to have} of all that parts of the topology read."""
    counts = {name: facts.partitions for name, facts in topics.items() if facts is not None}
    flexible: set[str] = set()
    for part in topology.subtopologies:
        for topic in part.repartition_sources:
            if topic.name in counts:
                continue
            if topic.partitions:
                counts[topic.name] = topic.partitions
            else:
                flexible.add(topic.name)
    _decide_flexible(topology.subtopologies, counts, flexible)
    for part in topology.subtopologies:
        for names in part.copartitioned:
            _copartition(names, counts, flexible)
    return counts


def _decide_flexible(parts: Iterable[Subtopology], counts: dict[str, int], flexible: Iterable[str]) -> None:
    """A topic that parts write has as many partitions as the largest that they read."""
    inputs = {part.name: part.inputs for part in parts if part.inputs}
    sinks = {part.name: part.repartition_sinks for part in parts}
    writers, readers = _by_topic({name: sinks[name] for name in inputs}), _by_topic(inputs)
    needs = {name: {topic for topic in topics if topic not in counts} for name, topics in inputs.items()}
    open_ones, fresh = set(flexible), [name for name in inputs if not needs[name]]
    largest: dict[str, int] = {}  # by part, once all that it reads is known
    while open_ones:
        largest |= {name: max(counts[topic] for topic in inputs[name]) for name in fresh}
        decided = {
            topic: max(largest[name] for name in writers[topic])
            for topic in open_ones.intersection(topic for name in fresh for topic in sinks[name])
            if all(name in largest for name in writers[topic])
        }
        if not decided:  # of topics that feed each other, those that are known decide
            fed = {
                name: max(counts[topic] for topic in topics if topic in counts)
                for name, topics in inputs.items()
                if any(topic in counts for topic in topics)
            }
            decided = {
                topic: max(fed[name] for name in writers[topic] if name in fed)
                for topic in open_ones
                if any(name in fed for name in writers.get(topic, ()))
            }
        if not decided:
            raise InvalidTopologyError(
                f"Failed to compute number of partitions for all repartition topics: {_listed(sorted(open_ones))}. Each"
                " is to be written by a part of the topology that reads a topic which is there."
            )
        counts |= decided
        open_ones -= decided.keys()
        readers_of_these = {name for topic in decided for name in readers.get(topic, ())}
        for name in readers_of_these:
            needs[name] -= decided.keys()
        fresh = [name for name in readers_of_these if not needs[name]]


def _by_topic(of_parts: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """{topic: names of parts} of the topics of parts."""
    by_topic: dict[str, list[str]] = {}
    for name, topics in of_parts.items():
        for topic in topics:
            by_topic.setdefault(topic, []).append(name)
    return by_topic


def _copartition(names: Iterable[str], counts: dict[str, int], flexible: set[str]) -> None:
    """Topics that are joined have equally many partitions: those that are not made yet follow the others."""
    fixed = {name: counts[name] for name in sorted(names) if name not in flexible}
    if len(set(fixed.values())) > 1:
        shown = ", ".join(f"{name}={count}" for name, count in fixed.items())
        raise _WrongTopicsError(f"Following topics do not have the same number of partitions: [{{{shown}}}]")
    follow = [name for name in names if name in flexible]
    count = next(iter(fixed.values()), None) or max((counts[name] for name in follow), default=0)
    counts |= dict.fromkeys(follow, count)


def _missing(
    topology: StreamsTopology, topics: Topics, counts: Mapping[str, int], tasks: Mapping[str, int]
) -> tuple[InnerTopic, ...]:
    """The inner topics that are to be made. A changelog has as many partitions as its part has tasks."""
    of_changelogs: dict[InnerTopic, int] = {}
    for part in topology.subtopologies:
        for topic in part.changelogs:
            of_changelogs.setdefault(topic, tasks[part.name])
    missing: list[InnerTopic] = []
    for name, topic in sorted(topology.inner.items()):
        facts = topics[name]
        wanted = topic.partitions or (of_changelogs[topic] if topic in of_changelogs else counts[name])
        if facts is None:
            missing.append(replace(topic, partitions=wanted))
        elif facts.partitions != wanted:
            raise _WrongTopicsError(
                f"Existing topic {name} has different number of partitions: expected {wanted}, found {facts.partitions}"
            )
    return tuple(missing)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
