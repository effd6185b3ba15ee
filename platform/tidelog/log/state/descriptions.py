"""What a topic's state holds, for people and programs that list topics."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.log.state.topic_state import TopicState


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition: its log start and end offset, and its live segments' number and bytes."""

    partition: int
    start: int
    end: int
    segments: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic: its id, configuration (own overrides in `config`) and partitions."""

    name: str
    id: str
    partitions: tuple[PartitionDescription, ...]
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic in a list of topics; `offsets` is how many lie between start and end, over all partitions."""

    name: str
    partitions: int
    offsets: int
    segments: int
    bytes: int


def describe(state: TopicState, name: str) -> TopicDescription:
    """A topic with each of its partitions."""
    partitions = []
    for p in range(state.partitions):
        live = state.live(p)
        partitions.append(PartitionDescription(p, state.start(p), state.end(p), len(live), sum(s.size for s in live)))
    return TopicDescription(name, state.topic_id, tuple(partitions), state.overrides)


def summarize(state: TopicState, name: str) -> TopicSummary:
    """A topic in all, at a cost that partitions without records add nothing to."""
    sizes = [segment.size for segment in state.all_segments()]
    offsets = sum(end - state.start(p) for p, end in state.ends.items())
    return TopicSummary(name, state.partitions, offsets, len(sizes), sum(sizes))
