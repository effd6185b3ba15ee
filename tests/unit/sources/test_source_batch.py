"""Batch queries as Spark drives them, without Spark: where they start and end, what is lost, which files are read."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan
from support.logs import values
from support.queries_without_spark import rows, tasks

from tidelog.log.base.errors import (
    CorruptSegmentError,
    DataLossError,
    InvalidOptionError,
    InvalidTopicError,
    NotATopicError,
    TidelogError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.operations.cuts import create_cut

HOUR_MS = 3_600_000
NOON_MS = 1_700_000_000_000
ALL = {0: [0, 1, 2, 3, 4, 5], 1: [0, 1, 2, 3, 4, 5]}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path / "lake")) as opened:
        yield opened


@pytest.fixture
def timed(lake: Lake) -> Lake:
    """Topic `t` with two partitions of six records each, an hour apart, each partition in three segments."""
    lake.create_topic("t", partitions=2)
    for partition in (0, 1):
        for first in (0, 2, 4):
            at = [NOON_MS + n * HOUR_MS for n in (first, first + 1)]
            written = [f"{partition}{first}", f"{partition}{first + 1}"]
            lake.topic("t").append(values(*written, partition=[partition] * 2, timestamp=at))
    return lake


def named(**offsets: Any) -> str:
    """Kafka's JSON for topic `t`: named(p0=1) is {"t": {"0": 1}}."""
    return json.dumps({"t": {name[1:]: offset for name, offset in offsets.items()}})


def by_partition(found: list[dict[str, Any]]) -> dict[int, list[int]]:
    """{partition: offsets}."""
    offsets: dict[int, list[int]] = {}
    for row in sorted(found, key=lambda row: (row["partition"], row["offset"])):
        offsets.setdefault(row["partition"], []).append(row["offset"])
    return offsets


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ALL),
        ({"startingOffsets": "EARLIEST ", "endingOffsets": "latest"}, ALL),
        ({"startingOffsets": named(p0=-2, p1=4), "endingOffsets": named(p0=2, p1=-1)}, {0: [0, 1], 1: [4, 5]}),
        ({"startingTimestamp": NOON_MS + 4 * HOUR_MS - 1}, {0: [4, 5], 1: [4, 5]}),
        ({"endingTimestamp": NOON_MS + HOUR_MS}, {0: [0], 1: [0]}),
        ({"endingTimestamp": NOON_MS + 99 * HOUR_MS}, ALL),
        (
            {
                "startingOffsetsByTimestamp": named(p0=NOON_MS + 5 * HOUR_MS, p1=NOON_MS + 99 * HOUR_MS),
                "startingOffsetsByTimestampStrategy": "Latest",
            },
            {0: [5]},
        ),
        ({"endingOffsetsByTimestamp": named(p0=0, p1=NOON_MS + HOUR_MS)}, {1: [0]}),
        ({"startingTimestamp": NOON_MS + 5 * HOUR_MS, "startingOffsets": "earliest"}, {0: [5], 1: [5]}),
    ],
)
def test_starts_and_ends(timed: Lake, options: dict[str, Any], expected: Any) -> None:
    assert by_partition(rows(timed, subscribe="t", **options)) == expected


def test_what_came_between_two_cuts(timed: Lake) -> None:
    create_cut(timed, "thursday")
    timed.topic("t").append(values("new", "newer", partition=[0, 0]))
    create_cut(timed, "friday")
    timed.topic("t").append(values("newest", partition=[1]))
    timed.delete_records("t", {0: 2})
    read = {
        name: by_partition(rows(timed, subscribe="t", **limits))
        for name, limits in (
            ("between", {"startingCut": "thursday", "endingCut": "friday"}),
            ("after", {"startingCut": " friday "}),
            ("up to", {"endingCut": "thursday"}),
        )
    }
    assert read == {"between": {0: [6, 7]}, "after": {1: [6]}, "up to": {0: [2, 3, 4, 5], 1: [0, 1, 2, 3, 4, 5]}}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"startingOffsets": "latest"},
            InvalidOptionError,
            "starting offset can't be latest for batch queries on Kafka",
        ),
        (
            {"startingOffsets": named(p0=0)},
            InvalidOptionError,
            "Partitions specified for Kafka start offsets don't match",
        ),
        (
            {"startingTimestamp": NOON_MS + 99 * HOUR_MS},
            InvalidOptionError,
            "No offset matched from request of topic-partition t-0",
        ),
        (
            {"startingOffsets": named(p0=5, p1=0), "endingOffsets": named(p0=1, p1=-1)},
            InvalidOptionError,
            "The specified start offset 5",
        ),
        (
            {"startingOffsets": named(p0=6, p1=7)},
            InvalidOptionError,
            "The resolved start offset 7 is greater than the resolved end offset 6 for topic t partition 1.",
        ),
        (
            {"startingTimestamp": NOON_MS + 5 * HOUR_MS, "endingOffsets": named(p0=6, p1=2), "failOnDataLoss": "false"},
            InvalidOptionError,
            "The resolved start offset 5 is greater than the resolved end offset 2 for topic t partition 1.",
        ),
        ({"subscribe": "t,nope"}, UnknownTopicError, "Topic 'nope' does not exist in the lake"),
        ({"subscribe": "../t"}, InvalidTopicError, "Topic name is invalid: '../t'"),
        ({"assign": '{"t":[0]}'}, InvalidOptionError, "Only one of the following options can be specified"),
        (
            {"kafka.auto.offset.reset": "latest"},
            InvalidOptionError,
            "Kafka option 'auto.offset.reset' is not supported",
        ),
    ],
)
def test_bad_options_are_refused(timed: Lake, options: dict[str, Any], error: type[TidelogError], words: str) -> None:
    with pytest.raises(error) as refused:
        rows(timed, **{"subscribe": "t", **options})
    assert words in str(refused.value)


def test_subscribe_pattern_and_assign(lake: Lake) -> None:
    for topic in ("orders", "reorders", "other"):
        lake.create_topic(topic, partitions=2)
        for partition in (0, 1):
            lake.topic(topic).append(values(f"{topic}-{partition}", partition=[partition]))
    lake.create_topic("__internal")
    lake.topic("__internal").append(values("hidden"))
    # Another table beside the topics, which a pattern may match.
    lake.storage.put("table/_delta_log/00000000000000000000.json", b'{"commitInfo":{"operation":"WRITE"}}\n')

    def read(**options: str) -> list[str]:
        return sorted(row["value"].decode() for row in rows(lake, **options))

    assert read(subscribe=" orders , other") == ["orders-0", "orders-1", "other-0", "other-1"]
    assert read(subscribePattern="ord") == ["orders-0", "orders-1", "reorders-0", "reorders-1"]
    assert len(read(subscribePattern=".*")) == 6
    assert read(subscribePattern="nothing") == []
    assert read(subscribe="__internal") == []
    assert read(assign='{"orders":[1],"other":[0],"__internal":[0]}') == ["orders-1", "other-0"]
    with pytest.raises(UnknownTopicError, match="Topic 'nope' does not exist"):
        read(assign='{"orders":[1],"nope":[0]}')
    assert read(assign='{"orders":[1,7]}') == ["orders-1"]
    assert read(assign='{"orders":[7]}') == []
    with pytest.raises(InvalidOptionError, match=r"Specified: Set\(orders-1, orders-7\) Assigned: Set\(orders-1\)"):
        read(assign='{"orders":[1,7]}', startingOffsets='{"orders":{"1":0,"7":0}}')
    with pytest.raises(NotATopicError, match="'table' is a Delta table but not a topic"):
        read(subscribe="table")


@pytest.mark.parametrize("lost", [named(p0=0, p1=0), named(p0=1, p1=3)])
def test_fail_on_data_loss(timed: Lake, lost: str) -> None:
    timed.delete_records("t", {0: 3})

    with pytest.raises(DataLossError, match=r"Could not read records in offset \[") as refused:
        rows(timed, subscribe="t", startingOffsets=lost)
    assert "for topic partition t-0" in str(refused.value)
    assert "failOnDataLoss" in str(refused.value)
    assert by_partition(rows(timed, subscribe="t", startingOffsets=lost, failOnDataLoss="false"))[0] == [3, 4, 5]
    assert by_partition(rows(timed, subscribe="t"))[0] == [3, 4, 5]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 1),
        ({"minPartitions": 6}, 6),
        ({"maxRecordsPerPartition": 4}, 4),
        ({"maxRecordsPerPartition": 4, "minPartitions": 8}, 8),
    ],
)
def test_options_cut_tasks(timed: Lake, options: dict[str, int], count: int) -> None:
    found = tasks(timed, subscribe="t", **options)
    assert (len(found), by_partition([row for task in found for row in task])) == (count, ALL)


def hours(count: int) -> datetime:
    return datetime.fromtimestamp(NOON_MS / 1000 + 3600 * count, UTC)


@pytest.mark.parametrize(
    ("filters", "needed"),
    [
        ([EqualTo(("partition",), 1), GreaterThanOrEqual(("offset",), 4)], {(1, 4)}),
        ([EqualTo(("offset",), 2)], {(0, 2), (1, 2)}),
        ([LessThan(("offset",), 2), EqualTo(("topic",), "t")], {(0, 0), (1, 0)}),
        ([In(("partition",), (0,)), GreaterThan(("offset",), 3)], {(0, 4)}),
        ([GreaterThanOrEqual(("timestamp",), hours(4))], {(0, 4), (1, 4)}),
        ([EqualTo(("partition",), 0), LessThan(("timestamp",), hours(1))], {(0, 0)}),
        ([EqualTo(("topic",), "another")], set()),
    ],
)
def test_filters_read_only_the_segments_that_can_match(
    timed: Lake, filters: list[Filter], needed: set[tuple[int, int]]
) -> None:
    """Every other segment's file is gone, and the query does not miss it."""
    root = Path(timed.uri.removeprefix("file://")) / "t"
    for segment in timed.topic("t").state().all_segments():
        if (segment.partition, segment.base_offset) not in needed:
            (root / segment.path).unlink()

    found = {(row["partition"], row["offset"] // 2 * 2) for row in rows(timed, filters, subscribe="t")}
    assert found == needed


def test_a_missing_segment_is_an_error_that_names_it(timed: Lake) -> None:
    segment = timed.topic("t").state().live(1)[1]
    (Path(timed.uri.removeprefix("file://")) / "t" / segment.path).unlink()

    with pytest.raises(CorruptSegmentError, match=r"offsets 2 to 4.*is missing") as refused:
        rows(timed, subscribe="t")
    assert segment.path in str(refused.value)


def test_an_empty_topic_has_no_rows(lake: Lake) -> None:
    lake.create_topic("t", partitions=3)
    assert rows(lake, subscribe="t") == []
