"""Topologies over their topics: how many partitions inner topics get, and how much work that is for large ones."""

import sys
from collections.abc import Callable

import pytest

from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.rules.streams.configuring import Configured, configure
from tidelog.groups.topology import InnerTopic, StreamsTopology, Subtopology


def configured(parts: list[Subtopology]) -> Configured:
    """The parts over a source of three partitions, and no inner topic."""
    topology = StreamsTopology(0, tuple(parts))
    return configure(topology, {name: AssignableTopic(name, 3) if name == "s" else None for name in topology.required})


def with_states(size: int) -> list[Subtopology]:
    """Parts with ten changelogs each."""
    return [
        Subtopology(f"{part}", sources=("s",), changelogs=tuple(InnerTopic(f"c{part}-{n}") for n in range(10)))
        for part in range(size // 10)
    ]


def in_a_chain(size: int) -> list[Subtopology]:
    """Parts that read what the one before them writes."""
    return [
        Subtopology(
            f"{part}",
            sources=() if part else ("s",),
            repartition_sources=(InnerTopic(f"r{part - 1}"),) if part else (),
            repartition_sinks=(f"r{part}",),
        )
        for part in range(size)
    ]


def in_a_ring(size: int) -> list[Subtopology]:
    """The same, the first of which reads what the last one writes, too."""
    first, *others = in_a_chain(size)
    ring = Subtopology("0", ("s",), (InnerTopic(f"r{size - 1}"),), first.repartition_sinks)
    return [ring, *others]


def through_many(size: int) -> list[Subtopology]:
    """Two parts with as many topics between them."""
    names = [f"r{n:04}" for n in range(size)]
    return [
        Subtopology("0", sources=("s",), repartition_sinks=tuple(names)),
        Subtopology("1", repartition_sources=tuple(map(InnerTopic, names)), repartition_sinks=("s2", *names)),
    ]


SHAPES = [with_states, in_a_chain, in_a_ring, through_many]


@pytest.mark.parametrize("shape", SHAPES)
def test_inner_topics_have_as_many_partitions_as_what_is_read(shape: Callable[[int], list[Subtopology]]) -> None:
    missing = configured(shape(20)).missing
    assert len(missing) >= 19
    assert {topic.partitions for topic in missing} == {3}


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_topics_are_ten_times_the_work(shape: Callable[[int], list[Subtopology]]) -> None:
    """A broker's loop does it, while inner topics are missing at each heartbeat."""
    assert calls(lambda: configured(shape(1000))) < 20 * calls(lambda: configured(shape(100)))


def calls(work: Callable[[], object]) -> int:
    """How often a function was called, or a generator went on, in some work."""
    count = 0

    def see(_frame: object, _event: str, _arg: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
