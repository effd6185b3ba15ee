"""Execution of a rewrite unit: its segments are read, and what stays is written as new ones.

Memory is bounded by row groups. It is the same in this process and in a Spark task; readers see the outputs once an
entry names them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import StorageError, TidelogError
from tidelog.log.delta import layout
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.writer import ROW_GROUP_BYTES, ROW_GROUP_RECORDS, SegmentWriter
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Storage
from tidelog.retention.predicates.where import Condition
from tidelog.retention.rewrites.units import Output, Rewritten, Unit

Mask = npt.NDArray[np.bool_]
Offsets = npt.NDArray[np.int64]

# Small segments are read together, by count and by bytes: on an object store each costs a round trip.
_AT_ONCE = 64
_AT_ONCE_BYTES = 4 * 1024 * 1024
_READERS = 8


class Keep(Protocol):
    """Which records stay. Picklable."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of segments that it reads besides `position`; None: all."""

    def __call__(self, base_offset: int, batch: pa.RecordBatch, /) -> Mask | None:
        """A mask of the batch's records that stay, None for all. Columns as `Unit.columns`, as they are stored."""


@dataclass(frozen=True)
class KeepOffsets:
    """Keeps the records of these offsets, which rise."""

    offsets: Offsets
    columns: tuple[str, ...] = ()

    def __call__(self, base_offset: int, batch: pa.RecordBatch, /) -> Mask:
        """A mask of the records whose offsets are kept."""
        wanted = base_offset + batch.column("position").to_numpy()
        if not len(self.offsets):
            return np.zeros(len(wanted), np.bool_)
        at = np.minimum(np.searchsorted(self.offsets, wanted), len(self.offsets) - 1)
        found: Mask = self.offsets[at] == wanted
        return found


@dataclass(frozen=True)
class Drop:
    """Keeps all records but those with offsets in [first, end) that `where` means, None: all of these."""

    where: Condition | None
    first: int = 0
    end: int = 2**63 - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the condition."""
        return () if self.where is None else tuple(sorted(self.where.columns))

    def __call__(self, base_offset: int, batch: pa.RecordBatch, /) -> Mask | None:
        """A mask of the other records. What is not known of a record does not mean it."""
        offsets = base_offset + batch.column("position").to_numpy()
        go: Mask = (offsets >= self.first) & (offsets < self.end)
        if self.where is not None:
            go &= np.asarray(pc.fill_null(self.where.of(batch), False))
        return ~go if go.any() else None


@dataclass(frozen=True)
class KeepNothing:
    """Keeps no record, and has none read: for segments that can't be."""

    columns: tuple[str, ...] = ()

    def __call__(self, _: int, batch: pa.RecordBatch, /) -> Mask:
        """A mask that lets none stay."""
        return np.zeros(batch.num_rows, np.bool_)


# What a task does with its unit and the records that stay of it.
Operation = Callable[[Storage, Unit, Ids, Keep | None], Rewritten]


def execute_unit(storage: Storage, unit: Unit, ids: Ids, keep: Keep | None = None) -> Rewritten:
    """Write the unit's records again, those that `keep` lets stay; they keep their offsets and their order.

    The outputs cover the unit's range end to end; a range whose records are all gone belongs to the output
    before it, and when nothing stays at all one empty segment covers it. They survive a power loss. A segment that
    can't be read, or any other failure of storage, is named in the answer, and then nothing is staged. Only
    `Exception`s that are no `TidelogError` are raised.
    """
    outputs = _Outputs(storage, unit, ids)
    counted = 0
    try:
        for base, batch in () if isinstance(keep, KeepNothing) else _batches(storage, unit):
            counted += batch.num_rows
            mask = None if keep is None else keep(base, batch)
            kept = batch if mask is None else batch.filter(pa.array(mask))
            if kept.num_rows:
                outputs.add(base, kept)
        staged = outputs.finish()
        # Before the entry, in which they take the place of what has survived so far; see `rewriting`.
        make_durable(storage, [f"{unit.topic}/{output.path}" for output in staged])
    except TidelogError as e:
        outputs.abort()
        return Rewritten(unit, failure=str(e))
    except BaseException:
        outputs.abort()
        raise
    return Rewritten(unit, staged, counted, sum(o.records for o in staged))


def execute_if_found(storage: Storage, unit: Unit, ids: Ids, keep: Keep | None) -> Rewritten:
    """`execute_unit` for a unit of which `probe_unit` finds records that go; any other is left as it is."""
    found = probe_unit(storage, unit, ids, keep)
    if found.failure is not None or found.records_in == found.records_out:
        return found
    return execute_unit(storage, unit, ids, keep)


def drop_unit(storage: Storage, unit: Unit, ids: Ids, _: Keep | None) -> Rewritten:
    """Put an empty segment in place of the unit's, of which none is read: the log says how many records they have."""
    done = execute_unit(storage, unit, ids, KeepNothing())
    return done if done.failure is not None else replace(done, records_in=_said(unit))


def count_unit(_storage: Storage, unit: Unit, _: Ids, _keep: Keep | None) -> Rewritten:
    """What `drop_unit` would drop; nothing is staged."""
    return Rewritten(unit, (), _said(unit), 0)


def _said(unit: Unit) -> int:
    return sum(s.end - s.base_offset if s.records is None else s.records for s in unit.inputs)


def probe_unit(storage: Storage, unit: Unit, _: Ids, keep: Keep | None) -> Rewritten:
    """How many of the unit's records would stay, by what `keep` reads; nothing is staged."""
    counted = kept = 0
    looked_at = () if keep is None else keep.columns
    columns = unit.columns.names if looked_at is None else looked_at
    try:
        for segment in unit.inputs:
            for batch in read_segment(storage, unit.topic, segment, unit.start, segment.end, columns):
                mask = None if keep is None else keep(segment.base_offset, batch)
                counted += batch.num_rows
                kept += batch.num_rows if mask is None else int(mask.sum())
    except TidelogError as e:
        return Rewritten(unit, failure=str(e))
    return Rewritten(unit, (), counted, kept)


# --- reading -----------------------------------------------------------------------------------------------


def _batches(storage: Storage, unit: Unit) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(base offset, batch) of the unit's records from its start on, in offset order."""
    with ThreadPoolExecutor(_READERS, thread_name_prefix="tidelog-read-unit") as pool:
        for group in _groups(unit.inputs):
            if len(group) == 1:
                yield from _read(storage, unit, group[0])
            else:
                for batches in pool.map(lambda segment: list(_read(storage, unit, segment)), group):
                    yield from batches


def _read(storage: Storage, unit: Unit, segment: Segment) -> Iterator[tuple[int, pa.RecordBatch]]:
    names = unit.columns.names
    for batch in read_segment(
        storage, unit.topic, segment, unit.start, segment.end, names, typing=unit.typing, stored=True
    ):
        yield segment.base_offset, batch


def _groups(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Small segments together, each other one alone."""
    group: list[Segment] = []
    size = 0
    for segment in segments:
        if group and (len(group) == _AT_ONCE or size + segment.size > _AT_ONCE_BYTES):
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size
    if group:
        yield group


# --- writing -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OpenOutput:
    """The output that is being written, and its first and last offset."""

    path: str
    context: AbstractContextManager[BinaryIO]
    writer: SegmentWriter
    base_offset: int
    first: int = -1
    last: int = -1


@dataclass(slots=True)
class _BufferedRows:
    tables: list[pa.Table] = field(default_factory=list)
    offsets: list[Offsets] = field(default_factory=list)
    records: int = 0
    size: int = 0


class _Outputs:
    """Writes records as segments that lie end to end from the unit's base offset to its end."""

    def __init__(self, storage: Storage, unit: Unit, ids: Ids) -> None:
        self._storage = storage
        self._unit = unit
        self._ids = ids
        self._waiting = _BufferedRows()
        self._open: _OpenOutput | None = None
        self._done: list[tuple[_OpenOutput, int]] = []  # each with its end

    def add(self, base_offset: int, batch: pa.RecordBatch) -> None:
        """Take records, later than those before."""
        waiting = self._waiting
        waiting.tables.append(pa.Table.from_batches([batch]))
        waiting.offsets.append(base_offset + batch.column("position").to_numpy())
        waiting.records += batch.num_rows
        waiting.size += batch.nbytes
        if waiting.records >= ROW_GROUP_RECORDS or waiting.size >= ROW_GROUP_BYTES:
            self._write()

    def finish(self) -> tuple[Output, ...]:
        """Write what waits, and close; the last output ends where the unit does."""
        self._write()
        if self._open is None:
            self._open = self._begin(self._unit.base_offset)
        self._close(self._unit.end)
        return tuple(self._output(opened, end) for opened, end in self._done)

    def abort(self) -> None:
        """Discard what was written."""
        opened, self._open = self._open, None
        if opened is not None:
            _give_up(opened, _AbortedError())
        discard(self._storage, [f"{self._unit.topic}/{done.path}" for done, _ in self._done])
        self._done.clear()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, _BufferedRows()
        if not waiting.records:
            return
        offsets = np.concatenate(waiting.offsets)
        if self._open is not None and self._open.writer.size >= self._unit.segment_bytes:
            self._close(int(offsets[0]))
        if self._open is None:
            self._open = self._begin(self._done[-1][1] if self._done else self._unit.base_offset)
        opened = self._open
        opened.writer.write(pa.concat_tables(waiting.tables), offsets - opened.base_offset)
        opened.first = int(offsets[0]) if opened.first < 0 else opened.first
        opened.last = int(offsets[-1])

    def _begin(self, base_offset: int) -> _OpenOutput:
        path = layout.segment_path(self._unit.partition, self._unit.known_version, self._ids.new())
        context = self._storage.create(f"{self._unit.topic}/{path}")
        writer = SegmentWriter(context.__enter__(), self._unit.codec, self._unit.columns, lasting=True)
        return _OpenOutput(path, context, writer, base_offset)

    def _close(self, end: int) -> None:
        opened, self._open = self._open, None
        if opened is None:
            return
        try:
            opened.writer.close()
        except BaseException as e:
            _give_up(opened, e)
            raise
        opened.context.__exit__(None, None, None)
        self._done.append((opened, end))

    def _output(self, opened: _OpenOutput, end: int) -> Output:
        writer, base = opened.writer, opened.base_offset
        overlapped = [s.modification_ms for s in self._unit.inputs if s.end > base and s.base_offset < end]
        return Output(
            opened.path,
            base,
            end,
            writer.size,
            writer.records,
            opened.first - base,
            opened.last - base,
            writer.min_timestamp_ms,
            writer.max_timestamp_ms,
            min(overlapped),
        )


def _give_up(opened: _OpenOutput, why: BaseException) -> None:
    """Let an open file vanish."""
    opened.writer.abandon()
    with suppress(StorageError, _AbortedError):
        opened.context.__exit__(type(why), why, why.__traceback__)


class _AbortedError(Exception):
    """Ends the open file of a unit that is given up."""
