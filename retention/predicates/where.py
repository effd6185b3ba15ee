"""Which records are meant: conditions on key, headers and timestamp, worked out column by column. Pure, and picklable.

As in SQL a comparison with what is not there is neither true nor false, and such a record is not meant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_COMPARES: Final[Mapping[str, Callable[[pa.Array, pa.Scalar], pa.Array]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


class Condition(Protocol):
    """A condition on records."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns of segments that it needs."""

    def may_mean(self, low_ms: int, high_ms: int) -> bool:
        """Whether a record with a timestamp in [low_ms, high_ms] (ms since the epoch) may be meant."""

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """For each record true, false, or null: not known."""


class Operand(Protocol):
    """What of a record is compared."""

    @property
    def column(self) -> str:
        """The column of segments that it is in."""

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The value of each record, bytes, or µs since the epoch."""


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The record's key."""

    column: str = "key"

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The bytes of each key."""
        return batch.column("key")


@dataclass(frozen=True, slots=True)
class HeaderValue:
    """The value of the record's last header of a name, as Kafka's `lastHeader`; null without one."""

    name: str
    column: str = "headers"

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The bytes of each record's header."""
        headers = batch.column("headers")
        items = headers.flatten()
        of_record = np.asarray(pc.list_parent_indices(headers))
        named = np.asarray(pc.fill_null(pc.equal(items.field("key"), self.name), False))
        places = np.full(len(headers), -1, np.int64)
        places[of_record[named]] = np.flatnonzero(named)  # of several the last one stays
        values = items.field("value")
        return values.take(pa.array(np.maximum(places, 0), mask=places < 0))


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The record's timestamp."""

    column: str = "timestamp"

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """The µs since the epoch of each record."""
        return batch.column("timestamp").cast(pa.int64())


class _OfOperand:
    """A condition on one operand."""

    __slots__ = ()
    operand: Operand

    @property
    def columns(self) -> frozenset[str]:
        """The operand's."""
        return frozenset((self.operand.column,))


class _AtAnyTime:
    """A condition of which bounds of timestamps say nothing."""

    __slots__ = ()

    def may_mean(self, low_ms: int, high_ms: int) -> bool:  # noqa: ARG002 - the port's shape
        """True, always."""
        return True


@dataclass(frozen=True, slots=True)
class Compare(_OfOperand):
    """`operand operator value`; the value is bytes, or µs since the epoch for a timestamp."""

    operand: Operand
    operator: str
    value: bytes | int

    def may_mean(self, low_ms: int, high_ms: int) -> bool:
        """As the bounds say, for a timestamp. Those are whole ms, rounded down."""
        if not isinstance(self.operand, Timestamp) or not isinstance(self.value, int):
            return True
        low, high = low_ms * 1000, high_ms * 1000 + 999
        match self.operator:
            case "=":
                return low <= self.value <= high
            case "<":
                return low < self.value
            case "<=":
                return low <= self.value
            case ">":
                return high > self.value
            case ">=":
                return high >= self.value
        return True

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether the comparison holds."""
        values = self.operand.of(batch)
        return _COMPARES[self.operator](values, pa.scalar(self.value, values.type))


@dataclass(frozen=True)
class IsIn(_OfOperand, _AtAnyTime):
    """Whether the operand is one of these values."""

    operand: Operand
    values: frozenset[bytes]

    @cached_property
    def _sought(self) -> pa.Array:
        return pa.array(sorted(self.values), pa.binary())

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether it is; a value that is not there is none of them."""
        found = self.operand.of(batch)
        return pc.is_in(found, value_set=self._sought.cast(found.type))


@dataclass(frozen=True, slots=True)
class Like(_OfOperand, _AtAnyTime):
    """Whether the operand is like a pattern of SQL: `%` for any bytes, `_` for one."""

    operand: Operand
    pattern: str

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether it is."""
        return pc.match_like(self.operand.of(batch), self.pattern)


@dataclass(frozen=True, slots=True)
class IsNull(_OfOperand):
    """Whether the operand is not there."""

    operand: Operand

    def may_mean(self, low_ms: int, high_ms: int) -> bool:  # noqa: ARG002 - the port's shape
        """Each record has a timestamp."""
        return not isinstance(self.operand, Timestamp)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether it is not."""
        return pc.is_null(self.operand.of(batch))


@dataclass(frozen=True, slots=True)
class Not(_AtAnyTime):
    """Whether a condition does not hold."""

    condition: Condition

    @property
    def columns(self) -> frozenset[str]:
        """The condition's."""
        return self.condition.columns

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether it does not."""
        return pc.invert(self.condition.of(batch))


@dataclass(frozen=True, slots=True)
class _Joined:
    """Several conditions in one."""

    conditions: Sequence[Condition]

    @property
    def columns(self) -> frozenset[str]:
        """Those of all of them."""
        return frozenset[str]().union(*(condition.columns for condition in self.conditions))

    def _of(self, batch: pa.RecordBatch, join: Callable[[Any, Any], Any]) -> pa.Array:
        return reduce(join, (condition.of(batch) for condition in self.conditions))


class All(_Joined):
    """Whether each of several conditions holds."""

    __slots__ = ()

    def may_mean(self, low_ms: int, high_ms: int) -> bool:
        """Whether each may."""
        return all(condition.may_mean(low_ms, high_ms) for condition in self.conditions)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether each holds."""
        return self._of(batch, pc.and_kleene)


class Any_(_Joined):  # noqa: N801 - `Any` is typing's
    """Whether one of several conditions holds."""

    __slots__ = ()

    def may_mean(self, low_ms: int, high_ms: int) -> bool:
        """Whether one may."""
        return any(condition.may_mean(low_ms, high_ms) for condition in self.conditions)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Whether one holds."""
        return self._of(batch, pc.or_kleene)
