"""Fetch: any range over many segments, and offsets by time, against a list."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, Calls, add, apply_all, created, end_txn, entry, memory_lake, values
from support.parquet import sealed_file

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.records.checks import to_records
from tidelog.log.segments.fetch import fetch, find_latest, find_record, overlapping, plan_fetch
from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage import MemoryStorage

ANY_TIME = TopicConfig.parse({"message.timestamp.after.max.ms": str(2**63 - 1)})


def put_segment(storage: MemoryStorage, path: str, rows: list[tuple[int, int]]) -> int:
    """A file with records at the given (position, timestamp in ms), in this order; the value says both. Its size."""
    made = to_records(
        pa.table({"value": [b"%d@%d" % row for row in rows], "timestamp": pa.array([t for _, t in rows], pa.int64())}),
        "t",
        ANY_TIME,
        START_MS,
    )
    columns = [pa.array([p for p, _ in rows], pa.int64()), *(made.column(n) for n in schema.SEGMENT.names[1:])]
    data = sealed_file(pa.Table.from_arrays(columns, schema=schema.SEGMENT), 4, store_schema=False)
    storage.put(f"t/{path}", data)
    return len(data)


# A partition: segments of (records as gaps of positions and timestamps).
RECORDS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50)), min_size=1, max_size=6)
SEGMENTS = st.lists(st.tuples(RECORDS, st.sampled_from(["dense", "compacted"])), max_size=6)


class Partition:
    """Segments as a history may have left them, and the list that says what is in them."""

    def __init__(self, segments: list[Any], start: int) -> None:
        self.storage = MemoryStorage("m")
        self.records: list[tuple[int, int]] = []
        entries = [created(partitions=1)]
        base = 0
        for i, (rows, kind) in enumerate(segments):
            position, placed = -1, []
            for gap, at in rows:
                position += 1 if kind == "dense" else gap
                placed.append((position, at))
            end = base + position + 1
            times = [t for _, t in placed]
            stats = stats_json(len(placed), position, min(times), max(times))
            own = add(0, base, end, f"f{i}", stats=stats, size=put_segment(self.storage, f"f{i}", placed))
            entries.append(entry(len(entries), own, end_txn(0, end)))
            self.records += [(base + p, t) for p, t in placed]
            base = end
        self.end = base
        self.start = min(start, base)
        self.state = apply_all(TopicState(), entries)
        self.state.starts[0] = self.start
        self.records = [(o, t) for o, t in self.records if o >= self.start]

    def fetch(self, start: int | None, end: int | None, batch_records: int = 1 << 20) -> list[pa.RecordBatch]:
        plan = plan_fetch(self.state, "t", 0, start, end)
        return list(fetch(self.storage, "t", "t", plan, batch_records=batch_records))


@given(SEGMENTS, st.integers(0, 10), st.data())
def test_any_range_over_any_segments(segments: list[Any], start: int, data: st.DataObject) -> None:
    p = Partition(segments, start)
    low = data.draw(st.integers(p.start, p.end))
    high = data.draw(st.integers(low, p.end + 5))
    size = data.draw(st.integers(1, 5))
    batches = p.fetch(low, high, size)
    assert all(0 < b.num_rows <= size and b.schema == schema.RECORDS for b in batches)
    found = [
        (o, t // 1000)
        for b in batches
        for o, t in zip(b.column("offset").to_pylist(), b.column("timestamp").cast(pa.int64()).to_pylist(), strict=True)
    ]
    assert found == [(o, t) for o, t in p.records if low <= o < high]


@given(SEGMENTS, st.integers(0, 10), st.integers(-3, 55))
def test_the_first_offset_at_or_after_a_time(segments: list[Any], start: int, time_ms: int) -> None:
    p = Partition(segments, start)
    wanted = next(((o, t) for o, t in p.records if t >= time_ms), None)
    assert find_record(p.storage, "t", plan_fetch(p.state, "t", 0, None, None), time_ms) == wanted


@given(SEGMENTS, st.integers(0, 10))
def test_the_first_of_the_largest_timestamps(segments: list[Any], start: int) -> None:
    p = Partition(segments, start)
    wanted = max(p.records, key=lambda record: (record[1], -record[0]), default=None)
    assert find_latest(p.storage, "t", plan_fetch(p.state, "t", 0, None, None)) == wanted


@pytest.mark.parametrize(("time_ms", "wanted"), [(2**63, None), (2**62, None), (-(2**63), 0), (-1, 0)])
def test_times_beyond_what_a_long_of_microseconds_holds(time_ms: int, wanted: int | None) -> None:
    lake = topic_of([1])
    assert lake.offsets_for_times("t", {0: time_ms}) == {0: wanted}


def test_a_time_between_two_milliseconds() -> None:
    lake, _, _ = memory_lake()
    lake.topic("t").append(values("a", timestamp=pa.array([1500], pa.timestamp("us"))))
    assert [lake.offsets_for_times("t", {0: ms})[0] for ms in (1, 2)] == [0, None]


def topic_of(*segments: list[int]) -> Lake:
    """A topic of one partition; each list is an append of records with these timestamps."""
    lake, _, _ = memory_lake()
    for times in segments:
        lake.topic("t").append(values(*map(str, times), timestamp=times))
    return lake


def test_segments_that_statistics_rule_out_are_not_opened() -> None:
    lake = topic_of([1, 2], [5, 9], [3], [10])
    calls, topic = Calls(), lake.topic("t")
    lake.storage.hook = calls  # type: ignore[attr-defined]
    assert topic.offsets_for_times({0: 9}) == {0: 3}
    assert calls.take() == ["get", "get"]
    assert topic.offsets_for_times({0: 11}) == {0: None}
    assert calls.take() == ["get"]


def test_only_the_segments_of_the_range_are_opened() -> None:
    lake = topic_of([1, 2], [3, 4], [5, 6], [7, 8])
    calls = Calls()
    topic = lake.topic("t")
    lake.storage.hook = calls  # type: ignore[attr-defined]
    list(topic.read(0, 3, 5))
    assert calls.take() == ["get", "get", "get"]
    list(topic.read(0, 3, 3))
    assert calls.take() == ["get"]


def test_batches_come_one_by_one() -> None:
    """Nothing is read before it is asked for."""
    lake = topic_of([1], [2], [3])
    calls = Calls()
    topic = lake.topic("t")
    lake.storage.hook = calls  # type: ignore[attr-defined]
    batches = topic.read(0)
    assert calls.take() == ["get"]
    next(batches)
    assert calls.take() == ["get"]


#   [0 A 5)[5 B 8)   [8 C 9)
OVERLAPS = [
    (0, 0, []),
    (0, 1, ["A"]),
    (4, 5, ["A"]),
    (4, 6, ["A", "B"]),
    (5, 8, ["B"]),
    (0, 99, ["A", "B", "C"]),
    (8, 9, ["C"]),
    (9, 99, []),
    (6, 2, []),
]


@pytest.mark.parametrize(("start", "end", "wanted"), OVERLAPS)
def test_overlaps(start: int, end: int, wanted: list[str]) -> None:
    parts = [add(0, 0, 5, "A"), add(0, 5, 8, "B"), add(0, 8, 9, "C")]
    state = apply_all(TopicState(), [created(), entry(1, *parts, end_txn(0, 9))])
    assert [s.path for s in overlapping(state.live(0), start, end)] == wanted
