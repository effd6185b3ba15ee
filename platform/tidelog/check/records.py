"""The records of a topic, for `check --deep`: every segment opened and read whole, in bounded batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.check.checkpoints import UNREADABLE
from tidelog.check.files import each_unread, removed_since
from tidelog.check.report import Finding, Kind, OnProgress
from tidelog.check.values import schema_problem, value_problems
from tidelog.log.base.errors import ObjectNotFoundError, StorageError, StorageUnavailableError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.delta import schema
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.value_typing import Typing

_BATCH_RECORDS = 16_384
_GONE = Kind.SEGMENT_MISSING
_FROM_A_COPY = (
    "Restore the file from a copy. When it can't be read at all, 'tidelog check --deep --repair --give-up' gives up its"
    " offsets and no others."
)


@dataclass(slots=True)
class _Found:
    """What a segment holds. Timestamps in us since the epoch; `append_*` of LogAppendTime records only."""

    rows: int = 0
    increasing: bool = True
    low_position: int | None = None
    high_position: int | None = None
    low_us: int | None = None
    high_us: int | None = None
    append_low_us: int | None = None
    append_high_us: int | None = None
    append_fell: bool = False
    keyless: int = 0
    nulls: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


class DeepCheck:
    """Reads a topic's segments; `records` counts the rows read so far.

    `compacted`: whether the topic's cleanup.policy holds compact, so that every record needs a key.
    """

    def __init__(self, storage: Storage, topic: str, compacted: bool, on_progress: OnProgress | None) -> None:
        self._storage = storage
        self._topic = topic
        self._compacted = compacted
        self._on_progress = on_progress
        self.records = 0

    def run(self, state: TopicState, skip: Iterable[str] = ()) -> Iterator[Finding]:
        """Every broken rule of every segment but those whose path is in `skip` (already known to be missing)."""
        typing = typing_of(state.metadata)
        segments = each_unread(self._topic, state, skip, self._on_progress)
        for _, of_partition in groupby(segments, key=lambda s: s.partition):
            last_append_us: int | None = None
            for segment in of_partition:
                found = self._read(segment, typing)
                if isinstance(found, Finding):
                    gone = found.kind is _GONE
                    if not gone or segment.path not in removed_since(self._storage, self._topic, state.version):
                        yield found
                else:
                    yield from self._judge(segment, found, last_append_us)
                    if found.append_high_us is not None:
                        last_append_us = max(found.append_high_us, last_append_us or 0)
                    self.records += found.rows

    def _finding(self, kind: Kind, segment: Segment, what: str) -> Finding:
        of = f"Partition {segment.partition}, offsets {segment.base_offset} to {segment.end}: "
        return Finding(kind, self._topic, segment.path, of + what, _FROM_A_COPY)

    # --- reading -------------------------------------------------------------------------------------------

    def _read(self, segment: Segment, typing: Typing | None) -> _Found | Finding:
        found = _Found()
        try:
            path = f"{self._topic}/{unquote(segment.path)}"
            with (
                self._storage.open(path, segment.size) as source,
                open_parquet(source, size=None, sealed=True) as file,
            ):
                wrong = schema_problem(file.schema_arrow, typing)
                if wrong:
                    return self._finding(Kind.SEGMENT_SCHEMA_WRONG, segment, wrong)
                names = file.schema_arrow.names
                for batch in file.iter_batches(_BATCH_RECORDS, columns=names, use_threads=False):
                    _note(found, batch)
                    found.values += value_problems(batch, typing)
        except StorageUnavailableError:
            raise
        except ObjectNotFoundError:
            return self._finding(_GONE, segment, "it is missing.")
        except (*UNREADABLE, StorageError) as e:
            return self._finding(Kind.SEGMENT_UNREADABLE, segment, f"it can't be read ({e}).")
        return found

    # --- judging -------------------------------------------------------------------------------------------

    def _judge(self, segment: Segment, found: _Found, last_append_us: int | None) -> Iterator[Finding]:
        told = segment.stats.records
        if told is not None and told != found.rows:
            what = f"it holds {found.rows} records, but the log says {told}."
            yield self._finding(Kind.SEGMENT_ROWS_WRONG, segment, what)
        if found.nulls:
            what = f"null where a value is needed: {', '.join(sorted(set(found.nulls)))}."
            yield self._finding(Kind.NULLS_WRONG, segment, what)
        if found.values:
            what = f"its values and their columns don't fit: {'; '.join(sorted(set(found.values)))}."
            yield self._finding(Kind.VALUES_WRONG, segment, what)
        yield from self._positions(segment, found)
        yield from self._timestamps(segment, found)
        if found.append_fell or (
            last_append_us is not None and found.append_low_us is not None and found.append_low_us < last_append_us
        ):
            what = "LogAppendTime falls: a record is older than one before it in the partition."
            yield self._finding(Kind.APPEND_TIME_FELL, segment, what)
        if self._compacted and found.keyless:
            what = f"{found.keyless} records have no key, but the topic is compacted: compaction drops them."
            yield self._finding(Kind.KEY_MISSING, segment, what)

    def _positions(self, segment: Segment, found: _Found) -> Iterator[Finding]:
        low, high = found.low_position, found.high_position
        if low is None or high is None:
            return
        room = segment.end - segment.base_offset
        told_low, told_high = _told(segment, "position")
        if not found.increasing:
            what = "positions don't increase from row to row."
        elif low < 0 or high >= room:
            what = f"positions go from {low} to {high}, but it covers {room} offsets."
        elif (told_low is not None and low < told_low) or (told_high is not None and high > told_high):
            what = f"positions go from {low} to {high}, outside the statistics ({told_low} to {told_high})."
        else:
            return
        yield self._finding(Kind.POSITIONS_WRONG, segment, what)

    def _timestamps(self, segment: Segment, found: _Found) -> Iterator[Finding]:
        if found.low_us is None or found.high_us is None:
            return
        low, high = segment.stats.min_timestamp_ms, segment.stats.max_timestamp_ms
        first, last = found.low_us // 1000, found.high_us // 1000
        if (low is not None and first < low) or (high is not None and last > high):
            what = f"timestamps go from {first} to {last} ms, outside the statistics ({low} to {high} ms)."
            yield self._finding(Kind.TIMESTAMPS_OUTSIDE_STATS, segment, what)


def _told(segment: Segment, column: str) -> tuple[int | None, int | None]:
    """What the statistics say of a column of numbers."""
    try:
        body = orjson.loads(segment.raw_stats or "{}")
        low, high = ((body.get(side) or {}).get(column) for side in ("minValues", "maxValues"))
    except (ValueError, AttributeError):
        return None, None
    return low if isinstance(low, int) else None, high if isinstance(high, int) else None


def _note(found: _Found, batch: pa.RecordBatch) -> None:
    """Take a batch into account."""
    found.rows += batch.num_rows
    for name in ("position", "timestamp", "timestamp_type"):
        if batch.column(name).null_count:
            found.nulls.append(name)
    found.keyless += batch.column("key").null_count
    headers = batch.column("headers")
    if headers.null_count < len(headers) and pc.struct_field(pc.list_flatten(headers), "key").null_count:
        found.nulls.append("headers.key")
    _note_positions(found, batch.column("position").drop_null().to_numpy())
    _note_times(found, batch)


def _note_positions(found: _Found, positions: npt.NDArray[np.int64]) -> None:
    if not len(positions):
        return
    low, high = int(positions.min()), int(positions.max())
    follows = found.high_position is None or int(positions[0]) > found.high_position
    if not follows or bool((np.diff(positions) <= 0).any()):
        found.increasing = False
    found.low_position = low if found.low_position is None else min(low, found.low_position)
    found.high_position = high if found.high_position is None else max(high, found.high_position)


def _note_times(found: _Found, batch: pa.RecordBatch) -> None:
    micros = batch.column("timestamp").cast(schema.TIMESTAMP, safe=False).cast(pa.int64())
    if micros.null_count == len(micros):
        return
    bounds = pc.min_max(micros)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    found.low_us = low if found.low_us is None else min(low, found.low_us)
    found.high_us = high if found.high_us is None else max(high, found.high_us)
    by_log = pc.equal(batch.column("timestamp_type"), schema.LOG_APPEND_TIME)
    appended = micros.filter(by_log).drop_null().to_numpy()
    if not len(appended):
        return
    before = found.append_high_us
    if (before is not None and int(appended[0]) < before) or bool((np.diff(appended) < 0).any()):
        found.append_fell = True
    low, high = int(appended.min()), int(appended.max())
    found.append_low_us = low if found.append_low_us is None else min(low, found.append_low_us)
    found.append_high_us = high if before is None else max(high, before)
