"""Where two logs differ: pure comparison of entries, and what only the follower's log has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tidelog.log.base.errors import CorruptLogError, TidelogError
from tidelog.log.delta.actions import Add, decode_entry


class DivergedError(TidelogError):
    """A follower's table holds what its source's doesn't: its mirror ships no more of it."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A table whose logs differ from entry `version` on; `source` and `follower` name the two entries.

    `entries`: how many the follower has from there on. `offsets`: {partition: (first, end)} of its records in them; of
    a table of rows the places of its rows, as partition -1.
    """

    table: str
    version: int
    source: str
    follower: str
    entries: int = 1
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The same, for a report."""
        return {
            "table": self.table,
            "version": self.version,
            "source": self.source,
            "follower": self.follower,
            "entries": self.entries,
            "offsets": {str(p): list(ends) for p, ends in self.offsets.items()},
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """From what `to_json` gave."""
        offsets = {int(p): (first, end) for p, (first, end) in body["offsets"].items()}
        return cls(**{**body, "offsets": offsets})

    def __str__(self) -> str:
        records = "; ".join(f"partition {p}: offsets {a} to {b - 1}" for p, (a, b) in sorted(self.offsets.items()))
        return (
            f"'{self.table}' has diverged at entry {self.version}: the source has {self.source}, the follower"
            f" {self.follower}. The follower has {self.entries} entries from there on"
            + (f" ({records})" if records else "")
            + ". Nothing more of it is shipped."
        )


def named(version: int, data: bytes | None) -> str:
    """An entry for people: its operation, request and time; `data` None where there is none."""
    if data is None:
        return "none"
    try:
        info = decode_entry(version, data, str(version)).info
    except CorruptLogError as e:
        return f"one that can't be read ({e})"
    return f"{info.operation or 'an entry'} of request {info.request_id} (time {info.timestamp_ms})"


def first_difference(low: int, high: int, same: Callable[[int], bool]) -> int:
    """The first version of (low, high] at which two logs differ; high + 1 where none does.

    `same` says whether the entries of a version are the same bytes. Every entry has an id of its own, and rests on
    those before it: logs that differ once differ ever after, so that few are compared.

    >>> first_difference(-1, 1000, lambda version: version < 421), first_difference(3, 9, lambda version: True)
    (421, 10)
    """
    first, end = low + 1, high + 1
    while first < end:
        middle = (first + end) // 2
        if same(middle):
            first = middle + 1
        else:
            end = middle
    return first


def appended(entries: Sequence[tuple[int, bytes]]) -> dict[int, tuple[int, int]]:
    """{partition: (first offset, end)} of what these entries append."""
    ranges: dict[int, tuple[int, int]] = {}
    for version, data in entries:
        entry = decode_entry(version, data, str(version))
        if not entry.info.blind_append:
            continue
        for add in entry.actions:
            if isinstance(add, Add) and add.end is not None:
                first, end = ranges.get(add.partition, (add.base_offset, add.end))
                ranges[add.partition] = (min(first, add.base_offset), max(end, add.end))
    return ranges
