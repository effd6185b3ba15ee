"""The rows of a checkpoint as columns, most of all its `add`s: what a checkpoint of a large topic is read into."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.delta.actions import Action, Add
from tidelog.log.state.producer_memory import ProducerColumns

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FileColumns:
    """What rows of `add` say of their files; only `stats` may be null."""

    path: pa.Array
    size: I64
    modification_ms: I64
    data_change: pa.Array
    stats: pa.Array

    def __len__(self) -> int:
        return len(self.path)

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns, in their order."""
        return self.path, self.size, self.modification_ms, self.data_change, self.stats

    def take(self, rows: I64) -> "FileColumns":
        """Some of the rows, and nothing of the others."""
        # Arrow would load pandas to take numpy's numbers.
        numbers = pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(np.ascontiguousarray(rows))])
        arrays = (column.take(numbers) for column in (self.path, self.data_change, self.stats))
        return FileColumns(next(arrays), self.size[rows], self.modification_ms[rows], next(arrays), next(arrays))


@dataclass(slots=True, eq=False)
class FileGroup:
    """Some rows of `add` one after another, which may be decoded when they are first asked for.

    `newest_ms`: their largest `modification_ms`. For many threads: two may decode the same rows.
    """

    rows: int
    newest_ms: int
    decode: Callable[[], FileColumns]
    decoded: FileColumns | None = None

    def columns(self) -> FileColumns:
        """The rows' columns."""
        decode, decoded = self.decode, self.decoded  # in this order: another thread changes them in the other one
        if decoded is None:
            decoded = self.decoded = decode()
            self.decode = _decoded_already  # and lets go of the bytes
        return decoded


def _decoded_already() -> FileColumns:
    raise AssertionError("decoded columns are kept")


@dataclass(frozen=True, slots=True, eq=False)
class AddColumns:
    """Rows of `add` that all say everything: numbers are numbers. `groups` say the rest of them, in their order."""

    partition: I64
    base_offset: I64
    end: I64
    groups: tuple[FileGroup, ...]

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def newest_ms(self) -> int:
        """The largest `modification_ms`."""
        return max(group.newest_ms for group in self.groups)

    def values(self, rows: I64) -> Iterator[tuple[Any, ...]]:
        """(path, partition, base_offset, end, size, modification_ms, data_change, stats) of rows, in their order."""
        files = self._files(rows)
        bounds = (column.take(rows).tolist() for column in (self.partition, self.base_offset, self.end))
        path, *others = (column.tolist() for column in files.columns)
        return zip(path, *bounds, *others, strict=True)

    def _files(self, rows: I64) -> FileColumns:
        """What the rows say of their files, in their order; only groups that have any of them are decoded."""
        ends = np.cumsum([group.rows for group in self.groups])
        groups_of = np.searchsorted(ends, rows, "right")
        parts, places = [], []
        for number in np.unique(groups_of).tolist():
            group, place = self.groups[number], np.flatnonzero(groups_of == number)
            parts.append(group.columns().take(rows[place] - (ends[number] - group.rows)))
            places.append(place)
        if len(parts) < 2:
            return parts[0] if parts else _NO_FILES
        return _concatenated(parts).take(np.argsort(np.concatenate(places)))

    def named(self, text: str) -> I64:
        """The rows whose path contains a text."""
        hits, first = [np.empty(0, np.int64)], 0
        for group in self.groups:
            alike = pc.match_substring(group.columns().path, text)
            hits.append(np.flatnonzero(alike.to_numpy(zero_copy_only=False)) + first)
            first += group.rows
        return np.concatenate(hits)

    def take(self, rows: I64) -> "AddColumns":
        """Some of the rows, and nothing of the others."""
        partition, base_offset, end = (column.take(rows) for column in (self.partition, self.base_offset, self.end))
        return AddColumns(partition, base_offset, end, (decoded_group(self._files(rows)),))

    def adds(self) -> Iterator[Add]:
        """Every row as a value."""
        for path, partition, base, end, size, modified, change, stats in self.values(np.arange(len(self))):
            yield Add(path, partition, base, size, modified, change, stats, end)


def decoded_group(columns: FileColumns) -> FileGroup:
    """A group whose columns are there already."""
    return FileGroup(len(columns), int(columns.modification_ms.max(initial=0)), _decoded_already, columns)


_NO_FILES = FileColumns(  # of pa.nulls: pa.array would load pandas
    pa.nulls(0, pa.string()),
    np.empty(0, np.int64),
    np.empty(0, np.int64),
    pa.nulls(0, pa.bool_()),
    pa.nulls(0, pa.string()),
)


def _concatenated(parts: Sequence[FileColumns]) -> FileColumns:
    paths, sizes, modified, changes, stats = zip(*(part.columns for part in parts), strict=True)
    arrays = (pa.concat_arrays(column) for column in (paths, changes, stats))
    return FileColumns(next(arrays), np.concatenate(sizes), np.concatenate(modified), next(arrays), next(arrays))


class CheckpointActions(Iterable[Action]):
    """A checkpoint's actions. `add` rows and producers stay columns, where they can, until they are iterated."""

    def __init__(
        self, others: Sequence[Action], adds: AddColumns | None = None, producers: ProducerColumns | None = None
    ) -> None:
        self._others = others
        self.adds = adds
        self.producers = producers

    def __iter__(self) -> Iterator[Action]:
        return self.values(adds=True, producers=True)

    def values(self, *, adds: bool, producers: bool) -> Iterator[Action]:
        """The actions as values; those that are columns only where asked for."""
        yield from self._others
        if adds and self.adds is not None:
            yield from self.adds.adds()
        if producers and self.producers is not None:
            yield from self.producers.txns()
