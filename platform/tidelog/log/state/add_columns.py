"""The rows of a checkpoint as columns, most of all its `add`s: what a checkpoint of a large topic is read into."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.delta.actions import Action, Add
from tidelog.log.state.producer_memory import ProducerColumns

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AddColumns:
    """Rows of `add` that all say everything: numbers are numbers, and only `stats` may be null."""

    path: pa.Array
    partition: I64
    base_offset: I64
    end: I64
    size: I64
    modification_ms: I64
    data_change: pa.Array
    stats: pa.Array

    def __len__(self) -> int:
        return len(self.path)

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns, in their order."""
        numbers = (self.partition, self.base_offset, self.end, self.size, self.modification_ms)
        return self.path, *numbers, self.data_change, self.stats

    def values(self, rows: I64) -> Iterator[tuple[Any, ...]]:
        """(path, partition, base_offset, end, size, modification_ms, data_change, stats) of rows, in their order."""
        return zip(*(column.tolist() for column in self.take(rows).columns), strict=True)

    def take(self, rows: I64) -> "AddColumns":
        """Some of the rows, and nothing of the others."""
        return AddColumns(*(column.take(rows) for column in self.columns))

    def adds(self) -> Iterator[Add]:
        """Every row as a value."""
        for path, partition, base, end, size, modified, change, stats in self.values(np.arange(len(self))):
            yield Add(path, partition, base, size, modified, change, stats, end)


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
