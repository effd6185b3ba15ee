"""Records of two lakes compared by columns: which offsets are on one side alone, and which hold different records."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.operations.lake_diff.model import Presence, RecordDiff

# What makes two records the same, besides their place.
_COLUMNS: Final = ("key", "value", "timestamp", "timestampType")


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The rows, by number in each table, that are in A alone, in B alone, and of those in both the ones that differ."""

    only_a: np.ndarray
    only_b: np.ndarray
    other_a: np.ndarray
    other_b: np.ndarray

    @property
    def counts(self) -> dict[Presence, int]:
        """How many there are."""
        return {Presence.A: len(self.only_a), Presence.B: len(self.only_b), Presence.BOTH: len(self.other_a)}


def compare(a: pa.Table, b: pa.Table) -> ComparedRows:
    """Compare records of one partition by their offsets; both tables are in offset order, with headers."""
    offsets_a, offsets_b = (table.column("offset").to_numpy() for table in (a, b))
    _, at_a, at_b = np.intersect1d(offsets_a, offsets_b, assume_unique=True, return_indices=True)
    only_a = np.setdiff1d(np.arange(len(a)), at_a, assume_unique=True)
    only_b = np.setdiff1d(np.arange(len(b)), at_b, assume_unique=True)
    different = _different(a.take(pa.array(at_a)), b.take(pa.array(at_b)))
    return ComparedRows(only_a, only_b, at_a[different], at_b[different])


def _different(a: pa.Table, b: pa.Table) -> np.ndarray:
    """For each row whether the two records differ."""
    different = np.zeros(len(a), bool)
    for name in _COLUMNS:
        ours, theirs = a.column(name), b.column(name)
        if not ours.equals(theirs):
            same = pc.fill_null(pc.equal(ours, theirs), False)
            both_null = pc.and_(pc.is_null(ours), pc.is_null(theirs))
            different |= ~pc.or_(same, both_null).to_numpy(zero_copy_only=False).astype(bool)
    ours, theirs = a.column("headers"), b.column("headers")
    if not ours.equals(theirs):
        pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
        different |= np.fromiter((x != y for x, y in pairs), bool, len(a))
    return different


def as_record(table: pa.Table, row: int) -> dict[str, Any]:
    """A record as a plain value: key, value, headers, timestamp, timestampType."""
    one = table.slice(row, 1).select([*_COLUMNS, "headers"]).to_pylist()[0]
    return dict(one)


def first_of(compared: ComparedRows, a: pa.Table, b: pa.Table, partition: int, most: int) -> Iterator[RecordDiff]:
    """The first differences by offset, `most` of them."""
    offsets_a, offsets_b = a.column("offset"), b.column("offset")
    places: list[tuple[int, Presence, int | None, int | None]] = []
    places += [(offsets_a[int(i)].as_py(), Presence.A, int(i), None) for i in compared.only_a[:most]]
    places += [(offsets_b[int(i)].as_py(), Presence.B, None, int(i)) for i in compared.only_b[:most]]
    others = zip(compared.other_a[:most], compared.other_b[:most], strict=True)
    places += [(offsets_a[int(i)].as_py(), Presence.BOTH, int(i), int(j)) for i, j in others]
    for offset, where, at_a, at_b in sorted(places, key=lambda one: one[0])[:most]:
        yield RecordDiff(
            where,
            partition,
            offset,
            None if at_a is None else as_record(a, at_a),
            None if at_b is None else as_record(b, at_b),
        )


def newest_by_key(table: pa.Table, wanted: pa.Array | None = None) -> Mapping[bytes, dict[str, Any]]:
    """The newest record of each key in a table in offset order, or of those `wanted`: value, headers, offset."""
    keyed = table.filter(pc.is_valid(table.column("key")))
    if wanted is not None:
        keyed = keyed.filter(pc.is_in(keyed.column("key"), value_set=wanted))
    if not len(keyed):
        return {}
    newest = keyed.group_by("key").aggregate([("offset", "max")])
    rows = keyed.filter(pc.is_in(keyed.column("offset"), value_set=newest.column("offset_max").combine_chunks()))
    return {row["key"]: row for row in rows.select(["key", "value", "headers", "offset"]).to_pylist()}
