"""Filters that Spark pushes down, as bounds on topic, partition, offset and timestamp. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from tidelog.log.state.topic_state import Segment
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.planning import Range

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


T = TypeVar("T")


@dataclass(frozen=True)
class RowBounds:
    """What rows may match: None is no bound. Bounds are inclusive; timestamps in µs since the epoch."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offsets: tuple[int | None, int | None] = (None, None)
    micros: tuple[int | None, int | None] = (None, None)

    def range(self, r: Range) -> Range | None:
        """The part of a range that can hold matching rows, or None."""
        if self.topics is not None and r.topic not in self.topics:
            return None
        if self.partitions is not None and r.partition not in self.partitions:
            return None
        low, high = self.offsets
        start = r.start if low is None else max(r.start, low)
        end = r.end if high is None else min(r.end, high + 1)
        return r._replace(start=start, end=end) if start < end else None

    def segments(
        self, segments: Mapping[TopicPartition, Sequence[Segment]]
    ) -> Mapping[TopicPartition, Sequence[Segment]]:
        """The segments whose statistics allow a matching timestamp."""
        if self.micros == (None, None):
            return segments
        return {tp: [s for s in live if self._may_hold(s)] for tp, live in segments.items()}

    def _may_hold(self, segment: Segment) -> bool:
        low, high = self.micros
        first, last = segment.stats.min_timestamp_ms, segment.stats.max_timestamp_ms
        # Statistics are rounded down to ms, so the newest record may be up to 999 µs later.
        too_old = low is not None and last is not None and last * 1000 + 999 < low
        too_new = high is not None and first is not None and first * 1000 > high
        return not too_old and not too_new


def wanted_by(filters: Iterable[Filter]) -> RowBounds:
    """The bounds of filters that all must hold; what can't be a bound is passed over."""
    wanted = RowBounds()
    for condition in filters:
        attribute: tuple[str, ...] = getattr(condition, "attribute", ())
        match attribute:
            case ("topic",):
                wanted = replace(wanted, topics=_narrow_set(wanted.topics, condition))
            case ("partition",):
                wanted = replace(wanted, partitions=_narrow_set(wanted.partitions, condition))
            case ("offset",):
                wanted = replace(wanted, offsets=_narrow(wanted.offsets, condition, int))
            case ("timestamp",):
                wanted = replace(wanted, micros=_narrow(wanted.micros, condition, _micros))
    return wanted


def _narrow_set(bound: frozenset[T] | None, condition: Filter) -> frozenset[T] | None:
    match condition:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            allowed: frozenset[Any] = frozenset({value})
        case In(value=values):
            allowed = frozenset(values)
        case _:
            return bound
    return allowed if bound is None else bound & allowed


def _narrow(bounds: tuple[int | None, int | None], condition: Filter, number: Any) -> tuple[int | None, int | None]:
    low, high = bounds
    match condition:
        case EqualTo(value=value) | EqualNullSafe(value=value) if value is not None:
            lows, highs = [number(value)], [number(value)]
        case In(value=values) if values and None not in values:
            lows, highs = [min(map(number, values))], [max(map(number, values))]
        case GreaterThan(value=value):
            lows, highs = [number(value) + 1], []
        case GreaterThanOrEqual(value=value):
            lows, highs = [number(value)], []
        case LessThan(value=value):
            lows, highs = [], [number(value) - 1]
        case LessThanOrEqual(value=value):
            lows, highs = [], [number(value)]
        case _:
            return bounds
    return (
        max([*lows, *([] if low is None else [low])], default=None),
        min([*highs, *([] if high is None else [high])], default=None),
    )


def _micros(value: datetime) -> int:
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
