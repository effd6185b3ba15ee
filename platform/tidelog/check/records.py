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
from tidelog.log.base.errors import ObjectNotFoundError, StorageError, StorageUnavailableError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.delta import schema
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import Storage
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.placing import is_within, placed
from tidelog.log.typed.value_typing import VALUE_LENGTH, VALUE_SCHEMA, Typing

_PLAIN = len(schema.SEGMENT)
_BATCH_RECORDS = 16_384
_GONE = Kind.SEGMENT_MISSING
_FROM_A_COPY = (
    "Restore the file from a copy. When it can't be read at all, 'tidelog check --deep --repair --give-up' gives up its"
    " offsets and no others."
)


@dataclass(slots=True)
class _Facts:
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
                outcome = self._read(segment, typing)
                if isinstance(outcome, Finding):
                    gone = outcome.kind is _GONE
                    if not gone or segment.path not in removed_since(self._storage, self._topic, state.version):
                        yield outcome
                else:
                    yield from self._judge(segment, outcome, last_append_us)
                    if outcome.append_high_us is not None:
                        last_append_us = max(outcome.append_high_us, last_append_us or 0)
                    self.records += outcome.rows

    def _finding(self, kind: Kind, segment: Segment, what: str) -> Finding:
        of = f"Partition {segment.partition}, offsets {segment.base_offset} to {segment.end}: "
        return Finding(kind, self._topic, segment.path, of + what, _FROM_A_COPY)

    # --- reading -------------------------------------------------------------------------------------------

    def _read(self, segment: Segment, typing: Typing | None) -> _Facts | Finding:
        facts = _Facts()
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
                    _note(facts, batch)
                    facts.values += value_problems(batch, typing)
        except StorageUnavailableError:
            raise
        except ObjectNotFoundError:
            return self._finding(_GONE, segment, "it is missing.")
        except (*UNREADABLE, StorageError) as e:
            return self._finding(Kind.SEGMENT_UNREADABLE, segment, f"it can't be read ({e}).")
        return facts

    # --- judging -------------------------------------------------------------------------------------------

    def _judge(self, segment: Segment, facts: _Facts, last_append_us: int | None) -> Iterator[Finding]:
        told = segment.stats.records
        if told is not None and told != facts.rows:
            what = f"it holds {facts.rows} records, but the log says {told}."
            yield self._finding(Kind.SEGMENT_ROWS_WRONG, segment, what)
        if facts.nulls:
            what = f"null where a value is needed: {', '.join(sorted(set(facts.nulls)))}."
            yield self._finding(Kind.NULLS_WRONG, segment, what)
        if facts.values:
            what = f"its values and their columns don't fit: {'; '.join(sorted(set(facts.values)))}."
            yield self._finding(Kind.VALUES_WRONG, segment, what)
        yield from self._positions(segment, facts)
        yield from self._timestamps(segment, facts)
        if facts.append_fell or (
            last_append_us is not None and facts.append_low_us is not None and facts.append_low_us < last_append_us
        ):
            what = "LogAppendTime falls: a record is older than one before it in the partition."
            yield self._finding(Kind.APPEND_TIME_FELL, segment, what)
        if self._compacted and facts.keyless:
            what = f"{facts.keyless} records have no key, but the topic is compacted: compaction drops them."
            yield self._finding(Kind.KEY_MISSING, segment, what)

    def _positions(self, segment: Segment, facts: _Facts) -> Iterator[Finding]:
        low, high = facts.low_position, facts.high_position
        if low is None or high is None:
            return
        room = segment.end - segment.base_offset
        told_low, told_high = _told(segment, "position")
        if not facts.increasing:
            what = "positions don't increase from row to row."
        elif low < 0 or high >= room:
            what = f"positions go from {low} to {high}, but it covers {room} offsets."
        elif (told_low is not None and low < told_low) or (told_high is not None and high > told_high):
            what = f"positions go from {low} to {high}, outside the statistics ({told_low} to {told_high})."
        else:
            return
        yield self._finding(Kind.POSITIONS_WRONG, segment, what)

    def _timestamps(self, segment: Segment, facts: _Facts) -> Iterator[Finding]:
        if facts.low_us is None or facts.high_us is None:
            return
        low, high = segment.stats.min_timestamp_ms, segment.stats.max_timestamp_ms
        first, last = facts.low_us // 1000, facts.high_us // 1000
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


def _note(facts: _Facts, batch: pa.RecordBatch) -> None:
    """Take a batch into account."""
    facts.rows += batch.num_rows
    for name in ("position", "timestamp", "timestamp_type"):
        if batch.column(name).null_count:
            facts.nulls.append(name)
    facts.keyless += batch.column("key").null_count
    headers = batch.column("headers")
    if headers.null_count < len(headers) and pc.struct_field(pc.list_flatten(headers), "key").null_count:
        facts.nulls.append("headers.key")
    _note_positions(facts, batch.column("position").drop_null().to_numpy())
    _note_times(facts, batch)


def _note_positions(facts: _Facts, positions: npt.NDArray[np.int64]) -> None:
    if not len(positions):
        return
    low, high = int(positions.min()), int(positions.max())
    follows = facts.high_position is None or int(positions[0]) > facts.high_position
    if not follows or bool((np.diff(positions) <= 0).any()):
        facts.increasing = False
    facts.low_position = low if facts.low_position is None else min(low, facts.low_position)
    facts.high_position = high if facts.high_position is None else max(high, facts.high_position)


def _note_times(facts: _Facts, batch: pa.RecordBatch) -> None:
    micros = batch.column("timestamp").cast(schema.TIMESTAMP, safe=False).cast(pa.int64())
    if micros.null_count == len(micros):
        return
    bounds = pc.min_max(micros)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    facts.low_us = low if facts.low_us is None else min(low, facts.low_us)
    facts.high_us = high if facts.high_us is None else max(high, facts.high_us)
    by_log = pc.equal(batch.column("timestamp_type"), schema.LOG_APPEND_TIME)
    appended = micros.filter(by_log).drop_null().to_numpy()
    if not len(appended):
        return
    before = facts.append_high_us
    if (before is not None and int(appended[0]) < before) or bool((np.diff(appended) < 0).any()):
        facts.append_fell = True
    low, high = int(appended.min()), int(appended.max())
    facts.append_low_us = low if facts.append_low_us is None else min(low, facts.append_low_us)
    facts.append_high_us = high if before is None else max(high, before)


def schema_problem(file_schema: pa.Schema, typing: Typing | None) -> str:
    """What is wrong with a file's columns; "" when they are right, or were before the table got its later ones."""
    wanted = schema.SEGMENT if typing is None or len(file_schema) == _PLAIN else typing.segment
    names = wanted.names[: max(len(file_schema), _PLAIN + len(schema.TYPED))]
    if file_schema.names != names:
        return f"its columns are {', '.join(file_schema.names)}, not {', '.join(names)}."
    for name in names:
        kind, known = file_schema.field(name).type, wanted.field(name).type
        if kind != known and (name != schema.COLUMNS or not is_within(kind, known)):
            return f"its column {name} is {kind}, not {known}."
    return ""


def value_problems(batch: pa.RecordBatch, typing: Typing | None) -> Iterator[str]:
    """What is wrong with a batch's values and their columns, one phrase each. Columns as the file has them."""
    if typing is None or VALUE_LENGTH not in batch.schema.names:
        return
    count = batch.num_rows
    stored, ids, derived = (_there(batch.column(name)) for name in ("value", VALUE_SCHEMA, VALUE_LENGTH))
    columns = batch.column(schema.COLUMNS) if schema.COLUMNS in batch.schema.names else None
    made = np.zeros(count, np.bool_) if columns is None else _there(columns)
    for what, wrong in (
        ("a value_length beside a value", derived & stored),
        ("a value_length without columns to derive the value of", derived & ~made),
        ("columns without the id of their schema", made & ~ids),
        ("a value_schema without columns", ids & ~made),
        ("columns without a value", made & ~stored & ~derived),
    ):
        if wrong.any():
            yield f"{int(wrong.sum())} records have {what}"
    unknown = set(batch.column(VALUE_SCHEMA).drop_null().unique().to_pylist()) - set(typing.writers)
    if unknown:
        yield f"the table knows no schema {', '.join(map(str, sorted(unknown)))}"
    elif columns is not None and (derived & made & ids).any():
        known = columns if typing.columns is None else placed(columns, typing.columns)
        try:
            typing.bytes_of(batch.column("value"), batch.column(VALUE_SCHEMA), batch.column(VALUE_LENGTH), known)
        except ValueError as e:
            yield str(e)


def _there(column: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return found
