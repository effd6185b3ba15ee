"""Records that native code has noted where they are in memory, and that become segments without columns between.

What needs columns gets them by `NotedRecords.table`: they are the same records.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Protocol

import pyarrow as pa

# What a record takes in memory beside its key and value, about.
_RECORD_BYTES = 24


class Notes(Protocol):
    """The records of some batches, numbered from 0 on. They don't change.

    Of all of them: the earliest and the latest timestamp (ms since the epoch; the first is after the second where no
    record has one), how many there are, how many of them lack a timestamp and how many a key, and whether any has
    headers.
    """

    records: int
    earliest_ms: int
    latest_ms: int
    timeless: int
    keyless: int
    has_headers: bool

    def part(self, first: int, end: int) -> tuple[int, ...]:
        """Where the records of batches `first` to `end` are, for native code.

        Addresses of the first record's pointer to its key, of its key's size (-1: null), of the same of its value; the
        bytes from one record's to the next; the address of the first time (int64, ms since the epoch, in a row); then
        the number of records, and the bytes of keys and of values.
        """

    def keys(self, first: int, end: int, most: int) -> list[bytes | None]:
        """The first keys of batches, `most` of them at most."""

    def table(self, first: int, end: int) -> pa.Table:
        """The records of batches as a table that `tidelog.log.records.checks.to_records` takes."""


class NotedPiece(NamedTuple):
    """The batches `first` to `end` of notes, of one partition, and how many records they have."""

    partition: int
    notes: Notes
    first: int
    end: int
    records: int


class NotedRecords:
    """Records of pieces that come by partition."""

    def __init__(self, pieces: Sequence[NotedPiece]) -> None:
        self.pieces = pieces
        self.num_rows = sum([piece.records for piece in pieces])
        self._table: pa.Table | None = None

    @staticmethod
    def together(several: Sequence["NotedRecords"]) -> "NotedRecords":
        """The records of all: of each partition in the order of the parts."""
        pieces = [piece for one in several for piece in one.pieces]
        return NotedRecords(sorted(pieces, key=lambda piece: piece.partition))

    @property
    def table(self) -> pa.Table:
        """The same records as a table; it is made once."""
        if self._table is None:
            self._table = _table(self.pieces)
        return self._table

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values, with about as many for each record as a batch has."""
        return sum([_bytes(piece) + 8 * piece.records for piece in self.pieces])

    def parts(self, as_records: Callable[[pa.Table], pa.Table]) -> Iterator[tuple[int, "NotedPart"]]:
        """The records of each partition; `as_records`: what a table of them becomes before it is a segment."""
        for partition, pieces in groupby(self.pieces, lambda piece: piece.partition):
            yield partition, NotedPart(tuple(pieces), as_records)

    def are_plain(self, earliest_ms: int, latest_ms: int, *, with_keys: bool) -> bool:
        """Whether no record has headers, all have a timestamp from `earliest_ms` to `latest_ms`, and a key if so."""
        return all(
            not (notes.has_headers or notes.timeless or (with_keys and notes.keyless))
            and earliest_ms <= notes.earliest_ms
            and notes.latest_ms <= latest_ms
            for notes in {id(piece.notes): piece.notes for piece in self.pieces}.values()
        )


@dataclass(frozen=True, slots=True)
class NotedPart:
    """Plain records of one partition, as `NotedRecords.parts` gives them."""

    pieces: Sequence[NotedPiece]
    as_records: Callable[[pa.Table], pa.Table]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum([piece.records for piece in self.pieces])

    @property
    def size(self) -> int:
        """Their bytes, about."""
        return sum([_bytes(piece) + _RECORD_BYTES * piece.records for piece in self.pieces])

    def table(self) -> pa.Table:
        """The records as a segment's writer takes them."""
        return self.as_records(_table(self.pieces))

    def copied(self) -> "NotedPart":
        """The same: it holds no memory of other partitions' but what their batches are in."""
        return self

    def sampled_keys(self, most: int) -> list[bytes | None]:
        """The first keys, `most` of them at most."""
        keys: list[bytes | None] = []
        for piece in self.pieces:
            if len(keys) >= most:
                break
            keys += piece.notes.keys(piece.first, piece.end, most - len(keys))
        return keys


def _bytes(piece: NotedPiece) -> int:
    *_, keys, values = piece.notes.part(piece.first, piece.end)
    return keys + values


def _table(pieces: Sequence[NotedPiece]) -> pa.Table:
    return pa.concat_tables([piece.notes.table(piece.first, piece.end) for piece in pieces])
