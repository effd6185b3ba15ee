"""Staging: writing records as segments that no reader sees until the door commits them.

Memory stays bounded whatever comes in: rows wait by partition until a row group is worth writing, and large
segments go to storage as they are written.
"""

from collections.abc import Callable
from concurrent.futures import Executor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.clock import Ids
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.delta import layout, schema
from tidelog.log.records import partitioners
from tidelog.log.records.checks import to_records
from tidelog.log.segments.noted import NotedPart, NotedRecords
from tidelog.log.segments.writer import (
    ROW_GROUP_BYTES,
    ROW_GROUP_RECORDS,
    SegmentWriter,
    SmallSegment,
    Staged,
    row_group_records,
    write_noted_segment,
    write_small_segment,
)
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Storage, is_distant
from tidelog.log.typed.value_typing import Typing

# All rows that wait for a row group, over all partitions, hold at most this much.
WAITING_BYTES = 64 * 1024 * 1024
# Above this the bytes of rows are counted apart from the rest of their buffers, which takes longer.
_SIZED_BYTES = 4 * 1024
# To size each of several parts takes as long as to write it. Parts of so few bytes in all are given their share of
# them: nothing but whether a part is compressed goes by it.
_SHARED_BYTES = 64 * 1024
_FEW_PARTS = 2
# Less than this is put sooner than helpers wake up.
_WORTH_HELP_BYTES = 256 * 1024
# Segments that are open at once: each is an open file, or on an object store a part of an upload, some 10 MiB.
MOST_OPEN = 16


@dataclass(frozen=True, slots=True)
class Target:
    """Where segments are staged for: a topic as its writer knows it.

    `folder` below the lake's root; `version` of the topic's log; `segment_bytes` after which a new file begins.
    `typing`: what is known of its values, None for a plain topic.
    """

    folder: str
    topic_id: str
    version: int
    partitions: int
    segment_bytes: int
    codec: Codec
    typing: Typing | None = None

    @property
    def columns(self) -> pa.Schema:
        """The columns of its segments."""
        return schema.SEGMENT if self.typing is None else self.typing.segment


@dataclass(slots=True)
class _Open:
    """A segment that is being written."""

    path: str
    context: AbstractContextManager[BinaryIO]
    writer: SegmentWriter


@dataclass(slots=True)
class Picked:
    """Rows of a table, by their numbers (None: all of them), that are copied out of it when they are written.

    `about`: their bytes, where their share of all is good enough.
    """

    records: pa.Table
    rows: pa.Array | None
    about: int | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.records if self.rows is None else self.rows)

    @property
    def size(self) -> int:
        """Their bytes, about: they have their share of the table's."""
        if self.about is not None:
            return self.about
        size = self.records.get_total_buffer_size()
        if size > _SIZED_BYTES:  # whole buffers, which may hold more than these rows
            size = self.records.nbytes
        return int(size if self.rows is None else size * len(self.rows) / max(1, self.records.num_rows))

    def table(self) -> pa.Table:
        """The rows."""
        return self.records if self.rows is None else self.records.take(self.rows)

    def copied(self) -> "Picked":
        """The same rows, in memory of their own."""
        rows = pa.array(np.arange(self.count)) if self.rows is None else self.rows
        return Picked(self.records.take(rows), None)


@dataclass(slots=True)
class _Waiting:
    parts: list[Picked | NotedPart] = field(default_factory=list)
    records: int = 0
    size: int = 0

    def table(self) -> pa.Table:
        """All of it."""
        tables = [part.table() for part in self.parts]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    def segment(self, codec: Codec, columns: pa.Schema) -> SmallSegment:
        """All of it as a segment, of columns where that needs them."""
        noted = [part for part in self.parts if isinstance(part, NotedPart)]
        written = write_noted_segment(noted, codec, self.size) if len(noted) == len(self.parts) else None
        return written or write_small_segment(self.table(), codec, self.size, columns)


def stage_records(
    stager: "Stager",
    table: pa.Table,
    topic: str,
    config: TopicConfig,
    partitioner: str | partitioners.Partitioner,
    turn: int,
    now_ms: int,
) -> None:
    """Check a caller's table and stage its records; `turn` chooses the partition of records without a key.

    `table` as `tidelog.log.records.checks.to_records` takes it; `now_ms` stamps records that have no timestamp.
    """
    records = to_records(table, topic, config, now_ms, typing=stager.typing)
    given = table.column("partition") if "partition" in table.schema.names else None
    chosen = partitioners.assign(records.column("key"), given, stager.partitions, partitioner=partitioner, sticky=turn)
    stager.add(records, chosen)


def split_by_partition(records: pa.Table, partitions: npt.NDArray[np.int32]) -> list[tuple[int, Picked]]:
    """The records of each partition, in their order: [(partition, records)] by partition.

    Records that come by partition are split into slices.
    """
    if not len(partitions):
        return []
    steps = np.diff(partitions)
    if (steps >= 0).all():
        starts = [0, *(np.flatnonzero(steps) + 1).tolist(), len(partitions)]
        each = None
        if len(starts) > _FEW_PARTS and (size := records.nbytes) <= _SHARED_BYTES:
            each = size / len(partitions)
        return [
            (
                int(partitions[start]),
                Picked(records.slice(start, end - start), None, None if each is None else int(each * (end - start))),
            )
            for start, end in pairwise(starts)
        ]
    counts = np.bincount(partitions)
    # numpy sorts 16-bit numbers by radix, seven times as fast
    order = np.argsort(partitions.astype(np.uint16) if len(counts) <= 1 << 16 else partitions, kind="stable")
    ends = counts.cumsum()
    records = records.combine_chunks()
    return [
        (p, Picked(records, pa.array(order[ends[p] - counts[p] : ends[p]]))) for p in np.flatnonzero(counts).tolist()
    ]


class Stager:
    """Stages one writer's records for one topic. Not for several threads.

    `add` any number of times, then `finish`, or `abort`, which deletes what was written. Small segments of several
    partitions are written at once where there are `helpers`, and to a distant store always. `waiting_bytes`: how much
    the rows hold that wait for a row group.
    """

    def __init__(self, storage: Storage, target: Target, ids: Ids, helpers: Executor | None = None) -> None:
        self._storage = storage
        self._target = target
        self._ids = ids
        self._helpers, self._worth_help_bytes = (
            (storage.helpers(), 0) if is_distant(storage) else (helpers, _WORTH_HELP_BYTES)
        )
        self._waiting: dict[int, _Waiting] = {}
        self.waiting_bytes = 0
        self._open: dict[int, _Open] = {}
        self._staged: list[Staged] = []

    @property
    def partitions(self) -> int:
        """How many partitions the topic has, as far as the writer knows."""
        return self._target.partitions

    @property
    def typing(self) -> Typing | None:
        """What the writer knows of the topic's values."""
        return self._target.typing

    @property
    def is_small(self) -> bool:
        """Whether what waits is put sooner than helpers wake up: then `finish` needs none."""
        return self.waiting_bytes < self._worth_help_bytes

    def write_largest(self) -> None:
        """Write the rows of the partition that waits with the most."""
        self._write(max(self._waiting, key=lambda p: self._waiting[p].size))

    def add(self, records: pa.Table, partitions: npt.NDArray[np.int32], *, is_all: bool = False) -> None:
        """Stage records (columns as `tidelog.log.records.checks.to_records` gives) for one partition each.

        `is_all`: nothing comes before them, and nothing but `finish` after them.
        """
        parts = split_by_partition(records, partitions)
        for partition, part in parts:
            if self._helpers is None and not is_all and len(parts) > 1:
                # Each partition's rows are a copy of their own: a part that waits holds the memory of all the others.
                part = part.copied()
            self._add(partition, part)
        while self.waiting_bytes > WAITING_BYTES:
            self.write_largest()

    def add_noted(self, records: NotedRecords, as_records: Callable[[pa.Table], pa.Table]) -> None:
        """Stage plain records for the partitions that they are of; `as_records`: see `NotedRecords.parts`.

        They are all: nothing comes before them, and nothing but `finish` after them.
        """
        for partition, part in records.parts(as_records):
            self._add(partition, part)
        while self.waiting_bytes > WAITING_BYTES:
            self.write_largest()

    def _add(self, partition: int, part: Picked | NotedPart) -> None:
        waiting = self._waiting.setdefault(partition, _Waiting())
        waiting.parts.append(part)
        waiting.records += part.count
        size = part.size
        waiting.size += size
        self.waiting_bytes += size
        if waiting.records >= ROW_GROUP_RECORDS or waiting.size >= ROW_GROUP_BYTES:
            self._write(partition)

    def finish(self) -> list[Staged]:
        """Close every segment; the result is by partition, and in order within one."""
        alone = self._helpers is None or len(self._waiting) == 1 or self.is_small
        for partition in sorted(self._waiting):
            if partition in self._open:
                self._write(partition)
            elif alone:
                self._put_small(partition)
        self._put_rest()
        for partition in sorted(self._open):
            self._close(partition)
        self._staged.sort(key=lambda s: s.partition)
        return self._staged

    def abort(self) -> None:
        """Discard what was staged; segments half written vanish."""
        for opened in self._open.values():
            opened.writer.abandon()
            opened.context.__exit__(_Aborted, _Aborted(), None)
        self._open.clear()
        discard(self._storage, (f"{self._target.folder}/{staged.path}" for staged in self._staged))
        self._staged.clear()

    def _take(self, partition: int) -> _Waiting:
        waiting = self._waiting.pop(partition)
        self.waiting_bytes -= waiting.size
        return waiting

    def _new_path(self, partition: int) -> str:
        return layout.segment_path(partition, self._target.version, self._ids.new())

    def _put_small(self, partition: int) -> None:
        path = self._new_path(partition)
        self._note(partition, path, *self._put(path, self._take(partition)))

    def _put_rest(self) -> None:
        """Put what waits by helpers; what was put is noted before an error is raised."""
        if self._helpers is None or not self._waiting:
            return
        begun = []
        for partition in sorted(self._waiting):
            path = self._new_path(partition)
            begun.append((partition, path, self._helpers.submit(self._put, path, self._take(partition))))
        wait([put for _, _, put in begun])
        for partition, path, put in begun:
            if put.exception() is None:
                self._note(partition, path, *put.result())
        for _, _, put in begun:
            put.result()

    def _put(self, path: str, waiting: _Waiting) -> tuple[SmallSegment, int]:
        written = waiting.segment(self._target.codec, self._target.columns)
        self._storage.put(f"{self._target.folder}/{path}", written.data)
        return written, len(written.data)

    def _write(self, partition: int) -> None:
        if partition not in self._open and len(self._open) >= MOST_OPEN:
            self._put_small(partition)
            return
        records = self._take(partition).table()
        at_once = row_group_records(records)
        for start in range(0, records.num_rows, at_once):
            opened = self._open.get(partition) or self._begin(partition)
            opened.writer.write(records.slice(start, at_once))
            if opened.writer.size >= self._target.segment_bytes:
                self._close(partition)

    def _begin(self, partition: int) -> _Open:
        path = self._new_path(partition)
        context = self._storage.create(f"{self._target.folder}/{path}")
        writer = SegmentWriter(context.__enter__(), self._target.codec, self._target.columns)
        opened = _Open(path, context, writer)
        self._open[partition] = opened
        return opened

    def _close(self, partition: int) -> None:
        opened = self._open.pop(partition)
        try:
            opened.writer.close()
        except BaseException as e:
            opened.writer.abandon()
            opened.context.__exit__(type(e), e, e.__traceback__)
            raise
        opened.context.__exit__(None, None, None)
        self._note(partition, opened.path, opened.writer, opened.writer.size)

    def _note(self, partition: int, path: str, written: SegmentWriter | SmallSegment, size: int) -> None:
        low, high, to = written.min_timestamp_ms, written.max_timestamp_ms, self._target
        self._staged.append(Staged(partition, path, written.records, size, low, high, to.version, to.topic_id))


class _Aborted(Exception):  # noqa: N818 - not an error: it tells an open file to vanish
    """Ends the open files of a stager that is given up."""
