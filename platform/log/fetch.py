"""Fetch: a partition's records by offset range, from the segments that cover it."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log import schema
from tidelog.log.errors import OffsetOutOfRangeError
from tidelog.log.segments import ROW_GROUP_RECORDS, read_segment
from tidelog.log.state import Segment, TopicState
from tidelog.log.storage.port import Storage

# No record has a later timestamp: it is kept as microseconds in a LONG.
_LAST_MS = (2**63 - 1) // 1000


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """Which segments hold the offsets [start, end) of a partition, by offset."""

    partition: int
    start: int
    end: int
    segments: tuple[Segment, ...]


def plan_fetch(state: TopicState, topic: str, partition: int, start: int | None, end: int | None) -> FetchPlan:
    """The segments for [start, end); None means the log start and the log end offset.

    An `end` past the log end stops there, as a fetch does. Raises `OffsetOutOfRangeError` for a `start` outside
    [log start, log end] (Kafka's OFFSET_OUT_OF_RANGE) and for an `end` before `start`.
    """
    low, high = state.start(partition), state.end(partition)
    begin = low if start is None else start
    stop = high if end is None else min(end, high)
    if not low <= begin <= high or stop < begin:
        raise OffsetOutOfRangeError(
            f"Topic '{topic}', partition {partition}: offsets {begin} to {end} are asked for, but it has"
            f" {low} to {high}. Earlier ones were deleted by retention or delete_records, later ones are not"
            " written yet; start within the range (earliest, latest)."
        )
    return FetchPlan(partition, begin, stop, tuple(overlapping(state.live(partition), begin, stop)))


def overlapping(live: Sequence[Segment], start: int, end: int) -> Sequence[Segment]:
    """The segments of a list by offset that overlap [start, end)."""
    if start >= end:
        return []
    first = bisect_right(live, start, key=lambda s: s.end)
    last = bisect_right(live, end - 1, key=lambda s: s.base_offset)
    return live[first:last]


def fetch(
    storage: Storage,
    folder: str,
    topic: str,
    plan: FetchPlan,
    *,
    include_headers: bool = False,
    batch_records: int = ROW_GROUP_RECORDS,
    batch_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The plan's records in offset order, columns as `tidelog.log.schema.RECORDS`.

    Batches of at most `batch_records`, and of about `batch_bytes`, by default `BATCH_BYTES` of segments.
    """
    output = schema.RECORDS_WITH_HEADERS if include_headers else schema.RECORDS
    columns = ["key", "value", "timestamp", "timestamp_type", *(["headers"] if include_headers else [])]
    for group in _by_base(plan.segments):
        base = group[0].base_offset
        for batch in _read_group(storage, folder, group, plan, columns, batch_records, batch_bytes):
            yield _to_output(batch, topic, plan.partition, base, output)


def _by_base(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Segments that share a base (another engine split a file in its rewrite) together."""
    group: list[Segment] = []
    for segment in segments:
        if group and segment.base_offset != group[0].base_offset:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _read_group(
    storage: Storage,
    folder: str,
    group: list[Segment],
    plan: FetchPlan,
    columns: list[str],
    batch_records: int,
    batch_bytes: int | None = None,
) -> Iterator[pa.RecordBatch]:
    if len(group) == 1 and group[0].proven:
        yield from read_segment(storage, folder, group[0], plan.start, plan.end, columns, batch_records, batch_bytes)
        return
    rows = [b for s in group for b in read_segment(storage, folder, s, plan.start, plan.end, columns, batch_records)]
    if rows:
        table = pa.Table.from_batches(rows)
        yield from table.sort_by("position").combine_chunks().to_batches(batch_records)


def _to_output(batch: pa.RecordBatch, topic: str, partition: int, base: int, output: pa.Schema) -> pa.RecordBatch:
    count = batch.num_rows
    columns = {
        "key": batch.column("key"),
        "value": batch.column("value"),
        "topic": pa.repeat(pa.scalar(topic), count),
        "partition": pa.array(np.full(count, partition, np.int32)),
        "offset": pc.add(batch.column("position"), base),
        "timestamp": batch.column("timestamp"),
        "timestampType": batch.column("timestamp_type"),
    }
    if "headers" in output.names:
        headers = batch.column("headers")
        columns["headers"] = headers if headers.type == schema.HEADERS else headers.cast(schema.HEADERS)
    return pa.RecordBatch.from_arrays([columns[n] for n in output.names], schema=output)


def find_by_time(storage: Storage, folder: str, state: TopicState, partition: int, timestamp_ms: int) -> int | None:
    """The first offset whose record's timestamp is at or after `timestamp_ms`, or None (Kafka's ListOffsets)."""
    start, end = state.start(partition), state.end(partition)
    live = overlapping(state.live(partition), start, end)
    return find_in(storage, folder, FetchPlan(partition, start, end, tuple(live)), timestamp_ms)


def find_in(storage: Storage, folder: str, plan: FetchPlan, timestamp_ms: int) -> int | None:
    """The same among the records of a plan. Segments whose statistics rule it out are not opened."""
    if timestamp_ms > _LAST_MS:
        return None
    wanted = pa.scalar(max(timestamp_ms, -_LAST_MS) * 1000, pa.int64())
    for group in _by_base(plan.segments):
        latest = [s.stats.max_timestamp_ms for s in group]
        if all(t is not None and t < timestamp_ms for t in latest):
            continue
        for batch in _read_group(storage, folder, group, plan, ["timestamp"], ROW_GROUP_RECORDS):
            at = pc.index(pc.greater_equal(batch.column("timestamp").cast(pa.int64()), wanted), True).as_py()
            if at >= 0:
                return int(batch.column("position")[at].as_py()) + group[0].base_offset
    return None
