"""What a topic remembers of idempotent producers: in each partition a number, epoch and last sequence, and its time.

A checkpoint's rows stay columns: a million producers that came and went cost a topic that is opened no million values.
Whatever is older than a time that the caller gives is expired, whether it is still held or not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.clock import Ids
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn

I64 = npt.NDArray[np.int64]

MAX_PRODUCER_ID: Final = 2**63 - 1
_SIDES: Final[tuple[Literal["left"], Literal["right"]]] = ("left", "right")
_PREFIX_SLASHES: Final = layout.PRODUCER_PREFIX.count("/")


def new_producer_id(ids: Ids) -> int:
    """An id that no other producer has: drawn by chance from 63 bits, so that it costs no entry."""
    return int(ids.new().replace("-", ""), 16) & MAX_PRODUCER_ID


def app_id(producer_id: int, partition: int) -> str:
    """The transaction id under which a partition remembers a producer."""
    return f"{layout.PRODUCER_PREFIX}{producer_id}/{partition}"


def parse_app_id(name: str) -> tuple[int, int] | None:
    """(producer id, partition) of a transaction id that begins with `PRODUCER_PREFIX`; None where it names neither.

    >>> parse_app_id(app_id(7, 2)), parse_app_id("tidelog/producer/7"), parse_app_id("tidelog/producer/07/2")
    ((7, 2), None, None)
    """
    producer, _, partition = name.removeprefix(layout.PRODUCER_PREFIX).partition("/")
    if not all(text.isascii() and text.isdigit() and str(int(text)) == text for text in (producer, partition)):
        return None
    return (int(producer), int(partition)) if int(producer) <= MAX_PRODUCER_ID and int(partition) < 2**31 else None


@dataclass(frozen=True, eq=False)
class ProducerColumns:
    """Rows, one for each producer and partition. Times are ms since the epoch."""

    producer_id: I64
    partition: I64
    version: I64
    updated_ms: I64

    def __len__(self) -> int:
        return len(self.producer_id)

    @property
    def columns(self) -> tuple[I64, I64, I64, I64]:
        """The columns, in their order."""
        return self.producer_id, self.partition, self.version, self.updated_ms

    @cached_property
    def newest_ms(self) -> int:
        """The newest time; 0 where there is none."""
        return int(self.updated_ms.max(initial=0))

    def since(self, since_ms: int) -> "ProducerColumns":
        """The rows that are not older."""
        kept = self.updated_ms >= since_ms
        if kept.all():
            return self
        return ProducerColumns(*(column[kept] for column in self.columns))

    def txns(self) -> Iterator[Txn]:
        """Every row as a value."""
        for producer_id, partition, version, updated_ms in zip(*(c.tolist() for c in self.columns), strict=True):
            yield Txn(app_id(producer_id, partition), version, updated_ms)

    def find(self, producer_id: int, partition: int) -> tuple[int, int] | None:
        """(version, time) of a producer in a partition."""
        first, last = (np.searchsorted(self.producer_id, producer_id, side, sorter=self._order) for side in _SIDES)
        rows = self._order[first:last]
        found = rows[self.partition[rows] == partition]
        return (int(self.version[found[0]]), int(self.updated_ms[found[0]])) if len(found) else None

    @cached_property
    def _order(self) -> I64:
        """The rows' places by producer: made for the first writer that asks, and for no reader."""
        return np.argsort(self.producer_id, kind="stable")


def producer_columns(app_ids: pa.Array, versions: pa.Array, updated: pa.Array) -> ProducerColumns:
    """Rows of a checkpoint whose ids begin with `PRODUCER_PREFIX`. Raises ValueError for one that names no producer."""
    parts = pc.split_pattern(app_ids, "/")
    producer_id, partition = (pc.list_element(parts, _PREFIX_SLASHES + at).cast(pa.int64()) for at in (0, 1))
    return ProducerColumns(producer_id.to_numpy(), partition.to_numpy(), versions.to_numpy(), updated.to_numpy())


def joined(parts: Sequence[ProducerColumns]) -> ProducerColumns | None:
    """The rows of all of them; None where there is none."""
    if not parts:
        return None
    return ProducerColumns(*map(np.concatenate, zip(*(part.columns for part in parts), strict=True)))


class ProducerMemory:
    """All that a topic remembers. Times never fall from one `note` to the next, but for what is noted as gone."""

    def __init__(self) -> None:
        self._restored: ProducerColumns | None = None
        # (producer id, partition) -> (version, time), what was noted last at the end.
        self._noted: dict[tuple[int, int], tuple[int, int]] = {}

    def __len__(self) -> int:
        """How many rows are held, expired ones that were not dropped yet among them."""
        return len(self._noted) + (0 if self._restored is None else len(self._restored))

    def restore(self, columns: ProducerColumns, since_ms: int) -> None:
        """Begin with a checkpoint's rows."""
        self._restored = columns.since(since_ms)

    def note(self, producer_id: int, partition: int, version: int, updated_ms: int) -> None:
        """Apply an entry's transaction id of a producer."""
        self._noted.pop((producer_id, partition), None)
        self._noted[producer_id, partition] = (version, updated_ms)

    def forget(self, since_ms: int) -> None:
        """Drop what is older, from the oldest on."""
        while self._noted:
            oldest = next(iter(self._noted))
            if self._noted[oldest][1] >= since_ms:
                break
            del self._noted[oldest]
        if self._restored is not None and self._restored.newest_ms < since_ms:
            self._restored = None

    def find(self, producer_id: int, partition: int, since_ms: int) -> int | None:
        """The number that a partition remembers of a producer; None when it knows it not, or no more."""
        entry = self._noted.get((producer_id, partition))
        if entry is None and self._restored is not None:
            entry = self._restored.find(producer_id, partition)
        return None if entry is None or entry[1] < since_ms or entry[0] < 0 else entry[0]

    def txns(self, since_ms: int) -> Iterator[Txn]:
        """Everything that is not older, as transaction ids, in no order."""
        noted = dict(self._noted)
        for (producer_id, partition), (version, updated_ms) in noted.items():
            if updated_ms >= since_ms:
                yield Txn(app_id(producer_id, partition), version, updated_ms)
        again = {app_id(*key) for key in noted}
        restored = () if self._restored is None else self._restored.since(since_ms).txns()
        yield from (txn for txn in restored if txn.app_id not in again)
