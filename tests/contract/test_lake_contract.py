"""A topic from its creation to its deletion, the same over every store."""

from pathlib import Path

import pyarrow as pa
import pytest
from support.logs import CountingIds, FakeClock, read_offsets, values
from support.storage_adapters import ADAPTERS

from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import OffsetOutOfRangeError, TopicChangedError, TopicExistsError, UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.storage import Storage
from tidelog.log.upkeep.trim import trim


@pytest.fixture(params=ADAPTERS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return ADAPTERS[request.param](tmp_path)


def another(storage: Storage, clock: FakeClock, first_id: int = 0) -> Lake:
    return Lake("", storage=storage, clock=clock, ids=CountingIds(first_id))


def test_a_topics_life(storage: Storage) -> None:
    clock = FakeClock(SystemClock().now_ms())
    lake, other = another(storage, clock), another(storage, clock, 10_000)
    lake.create_topic("t", partitions=2)
    with pytest.raises(TopicExistsError):
        other.create_topic("t")
    mine, theirs = lake.topic("t"), other.topic("t")
    assert mine.append(values("a", "b", partition=[0, 1])) == {0: (0, 1), 1: (0, 1)}
    assert theirs.append(values("c", "d", partition=[0, 0]), acks=1) == {0: (1, 3)}
    assert mine.append(values("e", partition=[0])) == {0: (3, 4)}
    assert read_offsets(other, "t") == [(0, "a"), (1, "c"), (2, "d"), (3, "e")]
    assert other.delete_records("t", {0: 2}) == {0: 2}
    assert read_offsets(lake, "t") == [(2, "d"), (3, "e")]
    with pytest.raises(OffsetOutOfRangeError):
        mine.read(0, 1)
    assert len(other.alter_topic("t", partitions=3, config={"retention.ms": "5"}).partitions) == 3
    assert mine.append(values("f", partition=[2])) == {2: (0, 1)}
    lake.delete_topic("t")
    with pytest.raises(UnknownTopicError):
        other.describe_topic("t")
    other.create_topic("t")
    with pytest.raises(TopicChangedError):
        mine.append(values("x"))
    assert other.topic("t").append(values("g")) == {0: (0, 1)}
    assert read_offsets(another(storage, clock, 20_000), "t") == [(0, "g")]


def test_checkpoints_and_trimming(storage: Storage) -> None:
    clock = FakeClock(SystemClock().now_ms())
    with another(storage, clock) as lake:
        lake.create_topic("t", config={"log.checkpoint.interval": "10"})
        for i in range(25):
            lake.topic("t").append(values(f"{i}"))
    trim(storage, "t", 0)
    kept = [o.path for o in storage.list_after("t/_delta_log")]
    assert len(kept) < 20
    fresh = another(storage, clock, 10_000)
    assert read_offsets(fresh, "t") == [(i, f"{i}") for i in range(25)]
    assert fresh.topic("t").append(values("more")) == {0: (25, 26)}


def test_large_segments_are_written_as_they_come(storage: Storage) -> None:
    lake = another(storage, FakeClock(SystemClock().now_ms()))
    rows = [b"%07d" % i * 100 for i in range(40_000)]  # 28 MB
    lake.topic("t").append(pa.table({"value": rows}))
    read = [v for b in lake.topic("t").read(0) for v in b.column("value").to_pylist()]
    assert read == rows
    assert [b.column("value").to_pylist() for b in lake.topic("t").read(0, 39_999)] == [[rows[-1]]]


def test_times_to_offsets(storage: Storage) -> None:
    lake = another(storage, FakeClock(SystemClock().now_ms()))
    for times in ([10, 30, 20], [5], [40, 40]):
        lake.topic("t").append(values(*map(str, times), timestamp=times))
    asked = [0, 10, 11, 25, 31, 41]
    assert [lake.offsets_for_times("t", {0: ms})[0] for ms in asked] == [0, 0, 1, 1, 4, None]
