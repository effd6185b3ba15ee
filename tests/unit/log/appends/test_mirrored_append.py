"""Records of another log keep their offsets: what readers, checks and maintenance make of them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from support.logs import START_MS, memory_lake, read_offsets, values

from tidelog.check.lake import check_lake
from tidelog.log.appends.mirrored import CopiedRun, CopiedTopic
from tidelog.log.base.errors import InvalidRecordError, TopicChangedError
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain


def copied_run(partition: int, base: int, end: int, offsets: Sequence[int], kind: int = 0) -> CopiedRun:
    columns = {
        "key": [None if o % 2 else b"k" for o in offsets],
        "value": [None if o % 3 == 0 else f"v{o}".encode() for o in offsets],
        "headers": [[{"key": "h", "value": None}] if o % 2 else None for o in offsets],
        "timestamp": [(START_MS + o - 10_000) * 1000 for o in offsets],
        "timestamp_type": [kind] * len(offsets),
    }
    wanted = schema.SEGMENT.remove(0)
    arrays = [
        pa.array(columns[f.name], pa.int64()).cast(f.type)
        if f.name == "timestamp"
        else pa.array(columns[f.name], f.type)
        for f in wanted
    ]
    return CopiedRun(partition, base, end, np.array(offsets, np.int64), pa.Table.from_arrays(arrays, schema=wanted))


def rows(lake: Lake, partition: int = 0, **bounds: int) -> list[tuple[int, bytes | None, int]]:
    batches = lake.topic("t").read(partition, include_headers=True, **bounds)
    return [(row["offset"], row["value"], row["timestampType"]) for batch in batches for row in batch.to_pylist()]


def expected(offsets: Sequence[int], kind: int = 0) -> list[tuple[int, bytes | None, int]]:
    return [(o, None if o % 3 == 0 else f"v{o}".encode(), kind) for o in offsets]


def test_what_is_copied_is_read_at_its_offsets() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t", partitions=2)
    topic = CopiedTopic(lake.topic("t"), lake.ids)
    assert topic.positions() == {0: None, 1: None}
    sparse = [7001, 7004, 7005, 7300]
    topic.append([copied_run(0, 7000, 7301, sparse, kind=1), copied_run(1, 0, 3, [0, 1, 2])])
    topic.append([copied_run(0, 7301, 7302, [])])  # a transaction's marker
    topic.append([copied_run(0, 7302, 7304, [7302, 7303])])
    assert topic.positions() == {0: 7304, 1: 3}
    assert lake.offsets("t") == {0: (7000, 7304), 1: (0, 3)}
    assert rows(lake) == expected(sparse, 1) + expected([7302, 7303])
    assert rows(lake, start=7005, end=7303) == expected([7005, 7300], 1) + expected([7302])
    assert rows(lake, 1) == expected([0, 1, 2])
    assert lake.offsets_for_times("t", {0: START_MS + 7002 - 10_000}) == {0: 7004}
    report = check_lake(lake, deep=True)
    assert report.green, report.findings


def test_merging_keeps_the_offsets_of_a_copy() -> None:
    lake, _, clock = memory_lake()
    lake.create_topic("t")
    topic = CopiedTopic(lake.topic("t"), lake.ids)
    wanted = []
    for base in range(500, 600, 10):
        topic.append([copied_run(0, base, base + 10, [base + 1, base + 7])])
        wanted += [base + 1, base + 7]
    clock.pass_s(3600)
    maintain(lake, only=["merge"])
    assert len(lake.topic("t").state().live(0)) == 1
    assert rows(lake) == expected(wanted)
    topic.append([copied_run(0, 600, 602, [601])])
    assert rows(lake, start=597) == expected([597, 601])
    assert check_lake(lake, deep=True).green


def test_producers_go_on_where_a_copy_ended_and_the_copy_does_not() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t")
    topic = CopiedTopic(lake.topic("t"), lake.ids)
    topic.append([copied_run(0, 40, 50, [41])])
    assert lake.topic("t").append(values("own")) == {0: (50, 51)}
    with pytest.raises(Exception, match="was a copy up to offset 50, and got others"):
        topic.append([copied_run(0, 50, 51, [50])])
    assert read_offsets(lake, "t", start=42) == [(50, "own")]


def test_a_topic_of_another_life_gets_nothing() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t")
    topic = CopiedTopic(lake.topic("t"), lake.ids)
    topic.append([copied_run(0, 40, 50, [41])])
    lake.delete_topic("t")
    lake.create_topic("t")
    with pytest.raises(TopicChangedError):
        topic.append([copied_run(0, 50, 51, [50])])
    assert CopiedTopic(lake.topic("t"), lake.ids).positions() == {0: None}


@pytest.mark.parametrize("offsets", [[3, 3], [4, 3], [1, 3], [3, 9]])
def test_offsets_outside_of_a_run_are_refused(offsets: list[int]) -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t")
    with pytest.raises(InvalidRecordError, match="which don't rise within 2 to 9"):
        CopiedTopic(lake.topic("t"), lake.ids).append([copied_run(0, 2, 9, offsets)])
    assert lake.offsets("t") == {0: (0, 0)}
