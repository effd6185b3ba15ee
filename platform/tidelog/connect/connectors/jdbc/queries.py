"""What the JDBC source asks for, and which offset each row has: rules of columns and times, without a database."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import sqlalchemy as sa

from tidelog.connect.data.errors import DataError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP: Final = "timestamp"
_NANOS: Final = "timestamp_nanos"
_INCREMENTING: Final = "incrementing"


@dataclass(frozen=True)
class RowOffset:
    """How far a table is read: the newest time, the newest number, or both."""

    moment: datetime | None = None
    number: int | None = None

    @staticmethod
    def of(stored: Mapping[str, Any] | None) -> "RowOffset":
        """The offset of Confluent's form: ms, the nanoseconds of its second, and the number."""
        stored = stored or {}
        moment = None
        if stored.get(_TIMESTAMP) is not None:
            milliseconds, nanos = int(stored[_TIMESTAMP]), stored.get(_NANOS)
            micros = milliseconds % 1000 * 1000 if nanos is None else int(nanos) // 1000
            moment = _EPOCH + timedelta(seconds=milliseconds // 1000, microseconds=micros)
        number = stored.get(_INCREMENTING)
        return RowOffset(moment, None if number is None else int(number))

    def stored(self) -> dict[str, Any]:
        """The offset in Confluent's form."""
        offset: dict[str, Any] = {}
        if self.number is not None:
            offset[_INCREMENTING] = self.number
        if self.moment is not None:
            offset[_TIMESTAMP] = (self.moment - _EPOCH) // timedelta(milliseconds=1)
            offset[_NANOS] = self.moment.microsecond * 1000
        return offset


@dataclass(frozen=True)
class NewRows:
    """Which rows are new, and in which order they come. Without columns, all rows are, in no order.

    `times`: columns of times, of which the first that is not null counts; `number`: the column of numbers; `zone`: of
    times without a time zone.
    """

    times: tuple[Any, ...] = ()
    number: Any = None
    zone: tzinfo = UTC

    @property
    def time(self) -> Any:
        """The time of a row, as an expression; None without columns of times."""
        return None if not self.times else self.times[0] if len(self.times) == 1 else sa.func.coalesce(*self.times)

    def select(self, statement: Any, after: RowOffset, until: datetime | None) -> Any:
        """A statement with the condition for rows after an offset; times from `until` on may have rows to come."""
        time, number = self.time, self.number
        if time is not None and until is not None:
            statement = statement.where(time < _bound(until, time, self.zone))
        if time is not None and after.moment is not None:
            at = _bound(after.moment, time, self.zone)
            later = time > at
            if number is not None and after.number is not None:
                later = sa.or_(later, sa.and_(time == at, number > after.number))
            statement = statement.where(later)
        elif time is None and number is not None and after.number is not None:
            statement = statement.where(number > after.number)
        return statement.order_by(*(one for one in (time, number) if one is not None))

    def offsets(
        self, rows: Iterable[Mapping[str, Any]], before: RowOffset
    ) -> Iterator[tuple[Mapping[str, Any], RowOffset]]:
        """(row, offset to go on from behind it). By times alone, it is the time before while others share it.

        So rows of one time are given again when a task stops among them, and none is lost.
        """
        previous: tuple[Mapping[str, Any], RowOffset] | None = None
        done = before
        for row in rows:
            offset = self._offset(row)
            if previous is not None:
                if self.number is not None or offset.moment != previous[1].moment:
                    done = previous[1]
                yield previous[0], done
            previous = row, offset
        if previous is not None:
            yield previous

    def _offset(self, row: Mapping[str, Any]) -> RowOffset:
        moment = next((row[one.name] for one in self.times if row[one.name] is not None), None)
        if isinstance(moment, str):  # of a query to SQLite, which has no type for times
            moment = datetime.fromisoformat(moment)
        if isinstance(moment, datetime):
            moment = (moment.replace(tzinfo=self.zone) if moment.tzinfo is None else moment).astimezone(UTC)
        elif moment is not None:
            raise DataError(f"timestamp.column.name has {moment!r}, which is no time. Name columns of timestamps.")
        number = None if self.number is None else row[self.number.name]
        if self.number is not None and not _is_whole(number):
            raise DataError(f"incrementing.column.name has {number!r}, which is no whole number. Name another column.")
        return RowOffset(moment, None if number is None else int(number))


def _is_whole(number: Any) -> bool:
    return number is not None and not isinstance(number, str | bytes) and int(number) == number


def _bound(moment: datetime, column: Any, zone: tzinfo) -> Any:
    """A time as the column has them: with a time zone, or without."""
    with_zone = bool(getattr(column.type, "timezone", False))
    value = moment if with_zone else moment.astimezone(zone).replace(tzinfo=None)
    return sa.literal(value, sa.DateTime(timezone=with_zone))


def chosen_tables(
    tables: Sequence[tuple[str | None, str]],
    include: Sequence[str],
    exclude: Sequence[str],
    same: Callable[[str, str], bool] = operator.eq,
) -> list[tuple[str | None, str]]:
    """Those of (schema, table) that the lists name, as `table` or `schema.table`; all without lists, in order.

    `same`: whether two names are one.
    """

    def named(table: tuple[str | None, str], names: Sequence[str]) -> bool:
        return any(same(one, name) for one in (table[1], f"{table[0]}.{table[1]}") for name in names)

    return sorted(
        (table for table in tables if (named(table, include) if include else not named(table, exclude))),
        key=lambda table: (table[0] or "", table[1]),
    )
