"""From limits to offsets: which timestamps to look up, what is refused, and the log's bounds at the end."""

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.sources.limits import (
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    Limit,
    NoMatch,
    bind,
    check_resolved_order,
    depends_on_now,
    resolve,
    times_wanted,
)
from tidelog.sources.offset_json import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ASSIGNED = frozenset({A, B})


@pytest.mark.parametrize(
    ("limit", "found", "start", "end"),
    [
        (Earliest(), {}, {A: -2, B: -2}, {A: -2, B: -2}),
        (Latest(), {}, {A: -1, B: -1}, {A: -1, B: -1}),
        (AtOffsets({A: 5, B: -1}), {}, {A: 5, B: -1}, {A: 5, B: -1}),
        (AtTimestamp(9, NoMatch.LATEST), {A: 7, B: None}, {A: 7, B: -1}, {A: 7, B: -1}),
        (AtTimestamp(9, NoMatch.ERROR), {A: 7, B: None}, "t-1 and timestamp 9", {A: 7, B: -1}),
        (AtTimestamps({A: 8, B: 9}, NoMatch.ERROR), {A: 7, B: None}, "t-1 and timestamp 9", {A: 7, B: -1}),
        (AtTimestamps({A: 8, B: 9}, NoMatch.ERROR), {A: 7, B: 0}, {A: 7, B: 0}, {A: 7, B: 0}),
    ],
    ids=str,
)
def test_limits_become_offsets(
    limit: Limit,
    found: dict[TopicPartition, int | None],
    start: dict[TopicPartition, int] | str,
    end: dict[TopicPartition, int],
) -> None:
    assert times_wanted(limit, ASSIGNED).keys() == found.keys()
    assert resolve(limit, ASSIGNED, found, "end", streaming=False) == end
    if isinstance(start, dict):
        assert resolve(limit, ASSIGNED, found, "start", streaming=True) == start
    else:
        with pytest.raises(InvalidOptionError) as refusal:
            resolve(limit, ASSIGNED, found, "start", streaming=True)
        assert str(refusal.value) == f"No offset matched from request of topic-partition {start}."


def test_times_wanted_are_each_partitions_own() -> None:
    assert times_wanted(AtTimestamps({A: 8, B: 9}, NoMatch.ERROR), ASSIGNED) == {A: 8, B: 9}
    assert times_wanted(AtTimestamp(9, NoMatch.ERROR), ASSIGNED) == {A: 9, B: 9}


SETS = "\nSpecified: Set(t-0) Assigned: Set(t-0, t-1)"


@pytest.mark.parametrize(
    ("limit", "position", "streaming", "text"),
    [
        (
            AtOffsets({A: 0}),
            "start",
            False,
            "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic partitions are "
            "created \nor deleted while the query is running. Use -1 for latest, -2 for earliest." + SETS,
        ),
        (
            AtOffsets({A: 0}),
            "start",
            True,
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions.\n"
            "Use -1 for latest, -2 for earliest, if you don't care." + SETS,
        ),
        (
            AtTimestamps({A: 0}, NoMatch.ERROR),
            "end",
            False,
            "Partitions specified for Kafka timestamp based end offsets don't match what are assigned. Maybe topic "
            "partitions are created \nor deleted while the query is running, or you didn't specify all the "
            "partitions." + SETS,
        ),
    ],
    ids=str,
)
def test_every_assigned_partition_must_be_named(limit: Limit, position: str, streaming: bool, text: str) -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        resolve(limit, ASSIGNED, {}, "end" if position == "end" else "start", streaming=streaming)
    assert str(refusal.value) == text


def test_open_offsets_are_bound_to_the_logs_ends() -> None:
    assert bind({A: -2, B: -1}, {A: (3, 9), B: (4, 8)}) == {A: 3, B: 8}
    assert bind({A: 100, B: 0}, {A: (3, 9), B: (4, 8)}) == {A: 100, B: 0}


def test_resolved_start_after_end() -> None:
    check_resolved_order({A: 5, B: 9}, {A: 5, B: 10})
    with pytest.raises(InvalidOptionError) as refusal:
        check_resolved_order({A: 5}, {A: 4})
    assert str(refusal.value).startswith(
        "The resolved start offset 5 is greater than the resolved end offset 4 for topic t partition 0.\n"
        "Please investigate in this order:\n1. Check whether start offset is set beyond the end offset"
    )


@pytest.mark.parametrize(
    ("limit", "depends"),
    [
        (Latest(), True),
        (Earliest(), False),
        (AtOffsets({A: 5, B: -1}), True),
        (AtOffsets({A: 5, B: -2}), False),
        (AtTimestamp(5, NoMatch.LATEST), True),
        (AtTimestamp(5, NoMatch.ERROR), False),
        (AtTimestamps({A: 5}, NoMatch.LATEST), True),
        (AtTimestamps({A: 5}, NoMatch.ERROR), False),
    ],
    ids=str,
)
def test_whether_a_start_moves_when_asked_again(limit: Limit, depends: bool) -> None:
    assert depends_on_now(limit) is depends
