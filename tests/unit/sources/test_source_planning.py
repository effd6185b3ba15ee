"""Limits per trigger, new, deleted and lost data: each rule by a row, the whole by properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.base.errors import DataLossError, TopicChangedError
from tidelog.sources import kafka_messages
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import (
    Pace,
    Plan,
    Range,
    admit,
    check_available_now,
    judge_losses,
    plan_batch,
    plan_stream,
    rate_limit,
)

A, B, C = (TopicPartition("t", partition) for partition in range(3))
LOSS = (
    "tidelog: records that the query has yet to read are not in the lake any more. Retention or delete-records removed"
    " them, or their topic was deleted.\n"
    "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.\n"
    "Reason: "
)


@pytest.mark.parametrize(
    ("limit", "start", "latest", "earliest", "end"),
    [
        (10, {A: 0, B: 0}, {A: 100, B: 100}, {}, {A: 5, B: 5}),
        (10, {A: 0, B: 0}, {A: 100, B: 1}, {}, {A: 9, B: 1}),  # 9.9 down to 9; 0.099 up to 1
        (10, {A: 90, B: 5}, {A: 100, B: 5}, {}, {A: 100, B: 5}),
        (1000, {A: 0}, {A: 100}, {}, {A: 100}),
        (3, {A: 0, B: 0, C: 0}, {A: 10, B: 10, C: 10}, {}, {A: 1, B: 1, C: 1}),
        (1, {A: 0, B: 0, C: 0}, {A: 10, B: 10, C: 10}, {}, {A: 1, B: 1, C: 1}),
        (7, {A: 0, B: 0}, {A: 30, B: 70}, {}, {A: 2, B: 4}),  # 2.1 and 4.9 (in floats 4.89...) down
        (10, {A: 50}, {A: 60, B: 40}, {B: 30}, {A: 55, B: 35}),  # B is new and starts at 30
        (10, {A: 60}, {A: 50}, {}, {A: 50}),  # behind its start: left for the plan to report
        (10, {A: 0}, {A: 50, B: 9}, {}, {A: 10, B: 9}),  # B was deleted meanwhile
        (10, {A: 0}, {}, {}, {}),
    ],
)
def test_rate_limit_shares_by_what_there_is(
    limit: int,
    start: dict[TopicPartition, int],
    latest: dict[TopicPartition, int],
    earliest: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
) -> None:
    assert rate_limit(limit, start, latest, earliest) == end


spans = st.dictionaries(
    st.integers(0, 9), st.tuples(st.integers(0, 2**62), st.integers(0, 2**40)), min_size=1, max_size=10
)


@given(st.integers(1, 2**40), spans)
def test_rate_limit_moves_every_partition_on_and_keeps_to_the_limit(
    limit: int, spans: dict[int, tuple[int, int]]
) -> None:
    start = {TopicPartition("t", number): begin for number, (begin, _) in spans.items()}
    latest = {TopicPartition("t", number): begin + size for number, (begin, size) in spans.items()}
    end = rate_limit(limit, start, latest, {})
    assert all(start[partition] <= end[partition] <= latest[partition] for partition in latest)
    assert all(end[partition] > start[partition] for partition in latest if latest[partition] > start[partition])
    # each share is rounded up by less than 1, and floats are off by less than 1 in 2**50
    taken = sum(end[partition] - start[partition] for partition in latest)
    assert taken < limit + len(latest) + limit / 2**50


@pytest.mark.parametrize(
    ("pace", "waited_ms", "end", "let_through"),
    [
        (Pace(), 0, {A: 100, B: 10}, False),
        (Pace(max_offsets=11), 0, {A: 10, B: 1}, False),
        (Pace(min_offsets=110), 0, {A: 100, B: 10}, True),
        (Pace(min_offsets=111), 899_999, {A: 0}, False),
        (Pace(min_offsets=111), 900_000, {A: 100, B: 10}, True),
        (Pace(min_offsets=111, max_delay_ms=5), 5, {A: 100, B: 10}, True),
        (Pace(min_offsets=111, max_offsets=111), 0, {A: 0}, False),
        (Pace(min_offsets=11, max_offsets=11), 0, {A: 10, B: 1}, True),
        (Pace(min_offsets=111, max_offsets=11).for_available_now(), 0, {A: 10, B: 1}, False),
    ],
    ids=str,
)
def test_a_batch_waits_or_is_let_through(
    pace: Pace, waited_ms: int, end: dict[TopicPartition, int], let_through: bool
) -> None:
    now = 10_000_000
    admitted = admit({A: 0}, {A: 100, B: 10}, {B: 0}, pace, now_ms=now, last_trigger_ms=now - waited_ms)
    assert admitted.end == end
    assert admitted.last_trigger_ms == (now if let_through else now - waited_ms)


def plan(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    bounds: dict[TopicPartition, tuple[int, int]],
    *,
    custom_group_id: bool = False,
) -> Plan:
    return plan_stream(start, end, bounds, "group-7", custom_group_id=custom_group_id)


@pytest.mark.parametrize(
    ("start", "end", "bounds", "ranges", "error", "warning"),
    [
        ({A: 1, B: 5}, {A: 3, B: 5}, {A: (0, 9), B: (0, 9)}, [(0, 1, 3)], None, None),
        ({A: 1}, {A: 3, B: 4}, {A: (0, 9), B: (0, 9)}, [(0, 1, 3), (1, 0, 4)], None, None),
        (
            {A: 1},
            {A: 3, B: 4},
            {A: (0, 9), B: (2, 9)},
            [(0, 1, 3), (1, 2, 4)],
            "Added partition t-1 starts from 2 instead of 0.",
            "Added partition t-1 starts from 2 instead of 0. Some data may have been missed",
        ),
        (
            {A: 1},
            {A: 3, B: 4},
            {A: (0, 9)},
            [(0, 1, 3)],
            "Cannot find initial offsets for partitions Set(t-1). They may have been deleted.",
            "Cannot find earliest offsets of Set(t-1). Some data may have been missed",
        ),
        (
            {A: 1, B: 2, C: 3},
            {A: 3},
            {A: (0, 9)},
            [(0, 1, 3)],
            "Partitions Set(t-1, t-2) have been deleted.",
            "Set(t-1, t-2) are gone. Some data may have been missed.",
        ),
        (
            {A: 1, B: 2},
            {A: 3, B: 3},
            {A: (0, 9)},
            [(0, 1, 3)],
            "Partitions Set(t-1) have been deleted.",
            "Set(t-1) are gone. Some data may have been missed.",
        ),
        ({A: 1, B: 2}, {A: 3, B: 2}, {A: (0, 9)}, [(0, 1, 3)], None, None),  # nothing was to be read of it
        (
            {A: 5},
            {A: 3},
            {A: (0, 3)},
            [],
            "Partition t-0 offset was changed from 5 to 3.\n"
            "This could be either 1) a user error that the start offset is set beyond available offset when starting "
            "query, or 2) the topic was deleted and created again.",
            "Partition t-0's offset was changed from 5 to 3. This could be either 1) a user error that the start "
            "offset is set beyond available offset when starting query, or 2) the topic was deleted "
            "and created again.",
        ),
        (
            {A: 1},
            {A: 9},
            {A: (4, 9)},
            [(0, 4, 9)],
            "Could not read records in offset [1, 4) for topic partition t-0\nwith consumer group group-7.",
            "Skip missing records in [1, 4)(GroupId: group-7, TopicPartition: t-0)",
        ),
        (
            {A: 1},
            {A: 9},
            {A: (0, 4)},
            [(0, 1, 4)],
            "Could not read records in offset [4, 9) for topic partition t-0\nwith consumer group group-7.",
            "Skip missing records in [4, 9)(GroupId: group-7, TopicPartition: t-0)",
        ),
        (
            {A: 1},
            {A: 3},
            {A: (5, 9)},
            [],
            "Could not read records in offset [1, 3) for topic partition t-0\nwith consumer group group-7.",
            "Skip missing records in [1, 3)(GroupId: group-7, TopicPartition: t-0)",
        ),
    ],
)
def test_what_a_micro_batch_reads_and_misses(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    bounds: dict[TopicPartition, tuple[int, int]],
    ranges: list[tuple[int, int, int]],
    error: str | None,
    warning: str | None,
) -> None:
    planned = plan(start, end, bounds)
    assert [wanted[1:] for wanted in planned.ranges] == ranges
    warnings = judge_losses(planned.losses, fail_on_data_loss=False)
    if error is None:
        assert warnings == judge_losses(planned.losses, fail_on_data_loss=True) == []
        return
    assert warnings == [f"{warning}. {kafka_messages.DATA_LOSS_TIP}"]
    with pytest.raises(DataLossError) as failure:
        judge_losses(planned.losses, fail_on_data_loss=True)
    assert str(failure.value) == LOSS + error


def test_deleted_partitions_of_a_query_with_its_own_group_id() -> None:
    (loss,) = plan({A: 1}, {}, {}, custom_group_id=True).losses
    assert loss.error.startswith(
        LOSS
        + "Partitions Set(t-0) have been deleted.\nKafka option 'kafka.group.id' has been set on this query, it is\n"
    )
    assert loss.warning == f"Set(t-0) are gone.{kafka_messages.CUSTOM_GROUP_ID}"


@pytest.mark.parametrize(
    ("start", "end", "ranges", "losses"),
    [
        ({A: 2, B: 0}, {A: 9, B: 9}, [Range("t", 0, 2, 9), Range("t", 1, 3, 9)], 1),
        ({A: 9, B: 3}, {A: 9, B: 3}, [], 0),
        ({A: 0, B: 3}, {A: 99, B: 3}, [Range("t", 0, 0, 9)], 1),
    ],
)
def test_what_a_batch_query_reads(
    start: dict[TopicPartition, int], end: dict[TopicPartition, int], ranges: list[Range], losses: int
) -> None:
    planned = plan_batch(start, end, {A: (0, 9), B: (3, 9)}, "g", custom_group_id=False)
    assert list(planned.ranges) == ranges
    assert len(planned.losses) == losses


offsets = st.integers(0, 12)


@given(
    st.dictionaries(st.sampled_from([A, B, C]), offsets),
    st.dictionaries(st.sampled_from([A, B, C]), offsets),
    st.dictionaries(st.sampled_from([A, B, C]), st.tuples(offsets, offsets).map(lambda two: (min(two), max(two)))),
)
def test_nothing_is_missed_in_silence(
    start: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    bounds: dict[TopicPartition, tuple[int, int]],
) -> None:
    planned = plan(start, end, bounds)
    for wanted in planned.ranges:
        first, last = bounds[TopicPartition(wanted.topic, wanted.partition)]
        assert first <= wanted.start < wanted.end <= last
    asked = sum(max(end[key] - start.get(key, bounds[key][0] if key in bounds else 0), 0) for key in end)
    if sum(wanted.size for wanted in planned.ranges) < asked or start.keys() - end.keys():
        assert planned.losses


@pytest.mark.parametrize(
    ("prefetched", "end", "latest", "text"),
    [
        ({A: 5}, {A: 3}, {A: 9, B: 1}, None),
        (
            {A: 5},
            {A: 3, B: 1},
            {A: 9, B: 1},
            "tidelog's source in Trigger.AvailableNow should provide the same topic partitions in pre-fetched offset "
            "to end offset for each microbatch. The error could be transient - restart your query, and report if you "
            "still see the same issue.\ntopic-partitions for pre-fetched offset: Set(t-0), topic-partitions for end "
            "offset: Set(t-0, t-1).",
        ),
        (
            {A: 5},
            {A: 6},
            {A: 9},
            "For tidelog's source with Trigger.AvailableNow, end offset should have lower or equal offset per each "
            "topic partition than pre-fetched offset. The error could be transient - restart your query, and report "
            "if you still see the same issue.\npre-fetched offset: Map(t-0 -> 5), end offset: Map(t-0 -> 6).",
        ),
        (
            {A: 5},
            {A: 5},
            {B: 9},
            "Some of partitions in topic(s) have been lost during running query with Trigger.AvailableNow. The "
            "error could be transient - restart your query, and report if you still see the same issue.\n"
            "topic-partitions for latest offset: Set(t-1), topic-partitions for end offset: Set(t-0)",
        ),
        (
            {A: 5},
            {A: 5},
            {A: 4},
            "Some of partitions in topic(s) report available offset which is less than end offset during "
            "running query with Trigger.AvailableNow. The error could be transient - restart your query, and report "
            "if you still see the same issue.\nlatest offset: Map(t-0 -> 4), end offset: Map(t-0 -> 5)",
        ),
    ],
)
def test_available_now_has_a_fixed_target(
    prefetched: dict[TopicPartition, int],
    end: dict[TopicPartition, int],
    latest: dict[TopicPartition, int],
    text: str | None,
) -> None:
    if text is None:
        check_available_now(prefetched, end, latest)
        return
    with pytest.raises(TopicChangedError) as failure:
        check_available_now(prefetched, end, latest)
    assert str(failure.value) == text
