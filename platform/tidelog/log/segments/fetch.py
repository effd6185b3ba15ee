"""Fetch: a partition's records by offset range, from the segments that cover it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import OffsetOutOfRangeError
from tidelog.log.delta import schema
from tidelog.log.segments.few_records import FewRecords
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.writer import ROW_GROUP_RECORDS
from tidelog.log.state.topic_state import Segment, TopicState, beginning_up_to, ending_up_to
from tidelog.log.storage.port import Storage
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.late_defaults import filled, late_defaults
from tidelog.log.typed.value_typing import VALUE_SCHEMA, Typing

# No record has a later timestamp: it is kept as microseconds in a LONG.
_LAST_MS = (2**63 - 1) // 1000


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """Which segments hold the offsets [start, end) of a partition, by offset, as of a `version` of the topic.

    `typing`: of a typed topic.
    """

    partition: int
    start: int
    end: int
    segments: tuple[Segment, ...]
    typing: Typing | None = None
    version: int = -1


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
    segments = tuple(overlapping(state.live(partition), begin, stop))
    return FetchPlan(partition, begin, stop, segments, typing_of(state.metadata), state.version)


def renewed(state: TopicState, topic: str, plan: FetchPlan) -> FetchPlan | None:
    """A new plan, where a part of it was rewritten since it was made; None where all of it is as it was.

    What was deleted meanwhile is left out.
    """
    if not state.rewrites.touch(plan.partition, plan.start, plan.end, plan.version):
        return None
    start = max(plan.start, state.start(plan.partition))
    if start >= plan.end:
        return FetchPlan(plan.partition, plan.end, plan.end, (), plan.typing, state.version)
    return plan_fetch(state, topic, plan.partition, start, plan.end)


def overlapping(live: Sequence[Segment], start: int, end: int) -> Sequence[Segment]:
    """The segments of a list by offset that overlap [start, end)."""
    if start >= end:
        return []
    return live[ending_up_to(live, start) : beginning_up_to(live, end - 1)]


def fetch(
    storage: Storage,
    folder: str,
    topic: str,
    plan: FetchPlan,
    *,
    include_headers: bool = False,
    include_columns: bool = False,
    batch_records: int = ROW_GROUP_RECORDS,
    batch_bytes: int | None = None,
    few: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The plan's records in offset order, columns as `records_schema` says.

    Batches of at most `batch_records`, and of about `batch_bytes`, by default `BATCH_BYTES` of segments. `few`: the
    caller takes `FewRecords`, too, of which `as_batch` makes a batch; their positions are offsets.
    """
    wanted = records_schema(plan.typing, include_headers=include_headers, include_columns=include_columns)
    output = _Output(topic, plan.partition, wanted)
    given = schema.SEGMENT if plan.typing is None else plan.typing.segment
    more = [name for name in wanted.names[len(schema.RECORDS) :] if name in given.names]
    late = late_defaults(plan.typing) if plan.typing is not None and schema.COLUMNS in more else ()
    columns = ["key", "value", "timestamp", "timestamp_type", *more, *([VALUE_SCHEMA] if late else [])]
    for segment in plan.segments:
        for batch in read_segment(
            storage,
            folder,
            segment,
            plan.start,
            plan.end,
            columns,
            batch_records,
            batch_bytes,
            offsets=True,
            few=few,
            typing=plan.typing,
        ):
            if isinstance(batch, FewRecords):
                yield batch
            elif late:
                *others, found, ids = batch.columns
                yield output.of([*others, filled(found, ids, late)])
            else:
                yield output.of(batch.columns)


def as_batch(records: pa.RecordBatch | FewRecords, topic: str, partition: int) -> pa.RecordBatch:
    """What `fetch` gave as a batch."""
    if not isinstance(records, FewRecords):
        return records
    wanted = records_schema(None, include_headers="headers" in records.columns)
    return _Output(topic, partition, wanted).of(records.arrays())


def records_schema(typing: Typing | None, *, include_headers: bool = False, include_columns: bool = False) -> pa.Schema:
    """What a reader gets of records: `tidelog.log.delta.schema.RECORDS`, and what it asked for besides.

    `columns` is a struct; of a topic that knows no schema of values (yet), it is null, and of Arrow's type of that.
    """
    fields = schema.RECORDS_WITH_HEADERS if include_headers else schema.RECORDS
    if not include_columns:
        return fields
    kind = None if typing is None else typing.columns
    return fields.append(pa.field(schema.COLUMNS, pa.null() if kind is None else kind))


class _Output:
    """Makes what readers get of a segment's records. What is the same for all records is made once."""

    def __init__(self, topic: str, partition: int, wanted: pa.Schema) -> None:
        self._schema = wanted
        self._place = topic, partition
        self._same: tuple[pa.Array, pa.Array] | None = None

    def of(self, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """A batch of a segment's columns offset, key, value, timestamp, its type, and those asked for besides."""
        count = len(columns[0])
        if self._same is None or count > len(self._same[0]):
            topic, partition = self._place
            self._same = schema.alike("topic", topic, count), schema.alike("partition", partition, count)
        topics, partitions = self._same if count == len(self._same[0]) else (c.slice(0, count) for c in self._same)
        offset, key, value, timestamp, timestamp_type, *more = columns
        if more and self._schema.names[len(schema.RECORDS)] == "headers" and more[0].type != schema.HEADERS:
            more[0] = more[0].cast(schema.HEADERS)
        if len(schema.RECORDS) + len(more) < len(self._schema):
            more.append(pa.nulls(count))
        ordered = [key, value, topics, partitions, offset, timestamp, timestamp_type, *more]
        return pa.RecordBatch.from_arrays(ordered, schema=self._schema)


class FoundRecord(NamedTuple):
    """A record's offset, and its timestamp in ms since the epoch."""

    offset: int
    timestamp_ms: int


def find_by_time(storage: Storage, folder: str, plan: FetchPlan, timestamp_ms: int) -> int | None:
    """The offset of what `find_record` finds, or None."""
    found = find_record(storage, folder, plan, timestamp_ms)
    return None if found is None else found.offset


def find_record(storage: Storage, folder: str, plan: FetchPlan, timestamp_ms: int) -> FoundRecord | None:
    """A plan's first record whose timestamp is at or after `timestamp_ms`, or None (Kafka's ListOffsets).

    Segments whose statistics rule it out are not opened.
    """
    if timestamp_ms > _LAST_MS:
        return None
    wanted = pa.scalar(max(timestamp_ms, -_LAST_MS) * 1000, pa.int64())
    for segment in plan.segments:
        latest_ms = segment.stats.max_timestamp_ms
        if latest_ms is not None and latest_ms < timestamp_ms:
            continue
        for offsets, timestamps in _timestamps(storage, folder, plan, segment):
            at = pc.index(pc.greater_equal(timestamps, wanted), True).as_py()
            if at >= 0:
                return FoundRecord(offsets[at].as_py(), timestamps[at].as_py() // 1000)
    return None


def find_latest(storage: Storage, folder: str, plan: FetchPlan) -> FoundRecord | None:
    """A plan's first record of those with the largest timestamp; None where it has no record.

    Only segments are opened whose statistics leave it open whether it is there.
    """
    # What a segment's statistics say of a part of it is at most this.
    bounds = [s.stats.max_timestamp_ms if s.base_offset >= plan.start else None for s in plan.segments]
    latest_ms = max((ms for ms in bounds if ms is not None), default=None)
    latest: FoundRecord | None = None
    for segment, ms in zip(plan.segments, bounds, strict=True):
        if ms is not None and (ms != latest_ms or (latest is not None and latest.timestamp_ms >= ms)):
            continue
        for offsets, timestamps in _timestamps(storage, folder, plan, segment):
            all_ms = timestamps.to_numpy() // 1000
            at = int(all_ms.argmax())
            if latest is None or all_ms[at] > latest.timestamp_ms:
                latest = FoundRecord(offsets[at].as_py(), int(all_ms[at]))
    return latest


def _timestamps(
    storage: Storage, folder: str, plan: FetchPlan, segment: Segment
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Offsets and timestamps (us since the epoch) of a segment's records."""
    for batch in read_segment(storage, folder, segment, plan.start, plan.end, ["timestamp"], offsets=True):
        yield batch.column("position"), batch.column("timestamp").cast(pa.int64())
