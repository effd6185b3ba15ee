"""What a query sees of its lake: one moment of it, whatever happens meanwhile."""

from typing import Any

import pytest
from support.logs import FakeClock, memory_lake, values

from tidelog.log.base.errors import (
    InvalidTopicError,
    NotATopicError,
    StorageUnavailableError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.sources.catalog import Catalog
from tidelog.sources.limits import AtOffsets, AtTimestamp, Earliest, Latest, NoMatch
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.options import parse_batch

T0, T1, T9 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 9)


def catalog(lake: Lake, **options: Any) -> Catalog:
    return Catalog(lake, parse_batch({"lake": "/unused", **options}, None))


@pytest.fixture
def lake() -> Lake:
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=2)
    for _ in range(3):
        lake.topic("t").append(values("a", "b", partition=[0, 1]))
    return lake


def test_all_answers_are_of_one_moment(lake: Lake) -> None:
    """The lake's own state moves on under it: by appends, deletions, and the topic's end."""
    seen = catalog(lake, subscribe="t")
    seen.refresh()
    segments = seen.segments([T0])[T0]
    found = seen.resolved(AtTimestamp(0, NoMatch.ERROR), "start", streaming=False)

    lake.topic("t").append(values("c", partition=[0]))
    lake.delete_records("t", {0: 2, 1: 3})
    lake.alter_topic("t", partitions=3)
    lake.offsets("t")
    assert seen.bounds() == {T0: (0, 3), T1: (0, 3)}
    assert seen.segments([T0])[T0][:3] == segments[:3]
    lake.delete_topic("t")
    lake.topics()

    assert seen.bounds() == {T0: (0, 3), T1: (0, 3)}
    assert [s.base_offset for s in seen.segments([T1])[T1]][:3] == [0, 1, 2]
    assert found == {T0: 0, T1: 0} == seen.resolved(AtTimestamp(0, NoMatch.ERROR), "start", streaming=False)
    seen.refresh()
    assert seen.assigned() == frozenset()


def test_a_time_is_looked_up_in_the_same_moment(lake: Lake) -> None:
    """An end past what the query may see would look like lost records."""
    seen = catalog(lake, subscribe="t")
    seen.refresh()
    lake.clock.sleep(100)
    later_ms = lake.clock.now_ms()
    lake.topic("t").append(values("late", partition=[0]))

    assert seen.resolved(AtTimestamp(later_ms, NoMatch.ERROR), "end", streaming=False) == {T0: 3, T1: 3}


def test_limits_become_offsets(lake: Lake) -> None:
    lake.delete_records("t", {1: 2})
    seen = catalog(lake, subscribe="t")
    seen.refresh()
    assert seen.resolved(Earliest(), "start", streaming=False) == {T0: 0, T1: 2}
    assert seen.resolved(Latest(), "end", streaming=False) == {T0: 3, T1: 3} == seen.ends()
    assert seen.resolved(Latest(), "end", streaming=False, of={T1, T9}) == {T1: 3}
    limit = AtOffsets({T0: 1, T1: -1})
    assert seen.resolved(limit, "start", streaming=True, of={T0}) == {T0: 1}


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b"])
def test_names_that_no_topic_can_have_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidTopicError):
        catalog(lake, assign=f'{{"{name}":[0]}}').refresh()


def test_a_topic_that_is_subscribed_to_must_be_there_at_the_start(lake: Lake) -> None:
    seen = catalog(lake, subscribe="t,u")
    with pytest.raises(UnknownTopicError, match="Topic 'u' does not exist in the lake memory:"):
        seen.refresh(required=True)
    seen.refresh()
    assert seen.assigned() == {T0, T1}


@pytest.mark.parametrize("assigned", ['{"u":[0]}', '{"t":[0],"u":[0]}'])
def test_a_topic_that_is_assigned_must_be_there_at_the_start(lake: Lake, assigned: str) -> None:
    seen = catalog(lake, assign=assigned)
    with pytest.raises(UnknownTopicError, match=r"Topic 'u' does not exist .* correct option 'assign'"):
        seen.refresh(required=True)
    seen.refresh()
    assert seen.assigned() <= {T0}


def test_of_assigned_partitions_those_are_read_that_are_there(lake: Lake) -> None:
    """As Kafka's source does, which refuses none that is missing."""
    seen = catalog(lake, assign='{"t":[1,2,-1]}')
    seen.refresh(required=True)
    assert seen.assigned() == {T1}
    lake.alter_topic("t", partitions=3)
    seen.refresh()
    assert seen.assigned() == {T1, TopicPartition("t", 2)}


def test_a_pattern_looks_at_the_topics_that_match_and_at_new_ones_once_a_second() -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("in.a")
    lake.create_topic("__in.b")
    storage.put("in.table/_delta_log/00000000000000000000.json", b'{"commitInfo":{}}\n')
    storage.put("out.broken/_delta_log/00000000000000000000.json", b"garbage")
    seen = catalog(lake, subscribePattern=r"in\.")
    seen.refresh()
    lake.create_topic("in.c")
    seen.refresh()
    assert {tp.topic for tp in seen.assigned()} == {"in.a"}

    clock.pass_s(1)
    seen.refresh()
    assert {tp.topic for tp in seen.assigned()} == {"in.a", "in.c"}
    with pytest.raises(NotATopicError):
        catalog(lake, subscribe="in.table").refresh()


@pytest.mark.parametrize(("attempts", "enough"), [("3", True), ("2", False)])
def test_a_store_that_is_away_for_a_while_is_asked_again(attempts: str, enough: bool) -> None:
    """`fetchOffset.numRetries` and `fetchOffset.retryIntervalMs`, as in Kafka's source: attempts, not repeats."""
    away: list[str] = []

    def hook(method: str, path: str, phase: str) -> None:
        if away and phase == "before" and method == "get":
            raise StorageUnavailableError(away.pop())

    clock = FakeClock()
    lake, _, _ = memory_lake(hook, clock)
    lake.create_topic("t")
    away += ["no answer"] * 2
    options = {"fetchOffset.numRetries": attempts, "fetchOffset.retryIntervalMs": "700"}
    seen, began = catalog(lake, subscribe="t", **options), clock.elapsed_s()

    if enough:
        seen.refresh()
        assert clock.elapsed_s() - began == pytest.approx(1.4)
    else:
        with pytest.raises(StorageUnavailableError):
            seen.refresh()
