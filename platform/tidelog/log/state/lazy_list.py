"""A list that keeps what it begins with as columns."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

T = TypeVar("T")

I64 = npt.NDArray[np.int64]

_BLOCK = 4_096


class LazyList(Sequence[T], Generic[T]):
    """Values made of a table's rows when they are read, and values appended to those later.

    A checkpoint of 100,000 segments is taken over without making 100,000 values. Only ever appended to.
    """

    def __init__(self, rows: I64, make: Callable[[I64], list[T]]) -> None:
        """`rows`: the table's rows that the list begins with, in order; `make` makes values of some of them."""
        self._rows = rows
        self._make = make
        self._newer: list[T] = []

    @property
    def make(self) -> Callable[[I64], list[T]]:
        """What makes values of the table's rows."""
        return self._make

    @property
    def rows(self) -> I64:
        """The table's rows that the list begins with."""
        return self._rows

    def moved(self, rows: I64, make: Callable[[I64], list[T]]) -> "LazyList[T]":
        """The same values, where the list's rows are those of another table."""
        other = LazyList(rows, make)
        other.extend(self._newer)
        return other

    @property
    def newer(self) -> Sequence[T]:
        """What was appended. Not to be changed."""
        return self._newer

    def extend(self, newer: Iterable[T]) -> None:
        """Append values."""
        self._newer.extend(newer)

    def __len__(self) -> int:
        return len(self._rows) + len(self._newer)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        old = len(self._rows)
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                return list(self)[at]
            made = self._make(self._rows[start:stop]) if start < min(stop, old) else []
            return [*made, *self._newer[max(start - old, 0) : max(stop - old, 0)]]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        return self._newer[place - old] if place >= old else self._make(self._rows[place : place + 1])[0]

    def __iter__(self) -> Iterator[T]:
        for start in range(0, len(self._rows), _BLOCK):
            yield from self._make(self._rows[start : start + _BLOCK])
        yield from self._newer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # as a list's: it changes

    def __repr__(self) -> str:
        return f"LazyList({list(self)!r})"
