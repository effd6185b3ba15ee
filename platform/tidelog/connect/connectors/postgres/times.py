"""PostgreSQL's dates and times as the numbers and texts that `time.precision.mode` asks for.

The connection's style is ISO and its time zone UTC. The infinities are what Debezium makes of them.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from tidelog.connect.connectors.postgres.literals import fraction_us
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    date_schema,
    time_schema,
    timestamp_schema,
)


class TimePrecision(StrEnum):
    """`time.precision.mode`."""

    ADAPTIVE = "adaptive"
    ADAPTIVE_MICROSECONDS = "adaptive_time_microseconds"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


class TimeReader(NamedTuple):
    """A schema, what makes its values of texts, and the value of a null in a column that has none."""

    schema: ConnectSchema
    read: Callable[[str], Any]
    empty: Any


_DAYS_BEFORE_1970: Final = date(1970, 1, 1).toordinal()
_DAY_US: Final = 86_400_000_000
# The driver of Java has the infinities at these milliseconds, Debezium's numbers follow from them.
_INFINITY_MS: Final = {"infinity": 9_223_372_036_825_200_000, "-infinity": -9_223_372_036_832_400_000}
_INFINITY_DAYS: Final = {"infinity": -2_147_472_692, "-infinity": -2_147_472_691}
_DATE: Final = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( BC)?$")
_TIMESTAMP: Final = re.compile(r"(\d{4,}-\d\d-\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)?([+-]\d\d(?::\d\d)*)?( BC)?$")
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(\.\d+)?([+-]\d\d(?::\d\d)*)?$")
_DEFAULT_PRECISION: Final = 6


def _named(schema: ConnectSchema, name: str) -> ConnectSchema:
    return ConnectSchema(schema.type, name=f"io.debezium.time.{name}", version=1)


def _no_time(text: str) -> DataError:
    return DataError(f"PostgreSQL sent a date or time that can't be read: {text[:100]!r}.")


def days(text: str) -> int:
    """Days since 1970-01-01; years BC and after 9999 are counted in the same calendar."""
    if text in _INFINITY_DAYS:
        return _INFINITY_DAYS[text]
    match = _DATE.match(text)
    if match is None:
        raise _no_time(text)
    year = 1 - int(match[1]) if match[4] else int(match[1])
    # Python's dates have the years 1 to 9999; 400 years have 146,097 days.
    cycles = 0 if 0 < year < 10_000 else (year - 2000) // 400
    return date(year - 400 * cycles, int(match[2]), int(match[3])).toordinal() - _DAYS_BEFORE_1970 + cycles * 146_097


def day_us(text: str) -> int:
    """Microseconds after midnight; 24:00:00 is the end of the day."""
    match = _TIME.match(text)
    if match is None:
        raise _no_time(text)
    hours, minutes, seconds, fraction, _ = match.groups()
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + fraction_us(fraction)


def timestamp_us(text: str) -> int:
    """Microseconds since 1970 of a timestamp without a time zone, taken for UTC."""
    if len(text) == 26 and text[19] == ".":  # the most frequent form, by what Python has for it
        moment = datetime.fromisoformat(text)
        return (
            (moment.toordinal() - _DAYS_BEFORE_1970) * _DAY_US
            + ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000
            + moment.microsecond
        )
    if text in _INFINITY_MS:
        return _INFINITY_MS[text]
    match = _TIMESTAMP.match(text)
    if match is None:
        raise _no_time(text)
    day, hours, minutes, seconds, fraction, _, before_christ = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return days(day + (before_christ or "")) * _DAY_US + whole * 1_000_000 + fraction_us(fraction)


def zoned_timestamp(text: str) -> str:
    """A timestamp with a time zone in the form of Debezium's `ZonedTimestamp`: ISO 8601 in UTC, six digits."""
    size = len(text)
    if size == 29 and text[26:] == "+00":  # the most frequent form
        return f"{text[:10]}T{text[11:26]}Z"
    if 22 <= size < 29 and text.endswith("+00"):
        return f"{text[:10]}T{text[11:19]}.{text[20:-3]:0<6}Z"
    if text in _INFINITY_MS:
        return text
    return iso_timestamp(_us_in_utc(text)) + "Z"


def zoned_timestamp_reader(precision: int) -> TimeReader:
    """The reader of a column of the type timestamptz: as many digits of a second as the type has, six of -1."""
    if not 0 <= precision < _DEFAULT_PRECISION:
        return ZONED_TIMESTAMP
    cut = -1 - _DEFAULT_PRECISION + (precision or -1)

    def read(text: str) -> str:
        found = zoned_timestamp(text)
        return found if found in _INFINITY_MS else found[:cut] + "Z"

    return TimeReader(ZONED_TIMESTAMP.schema, read, ZONED_TIMESTAMP.empty)


def _us_in_utc(text: str) -> int:
    match = _TIMESTAMP.match(text)
    if match is None:
        raise _no_time(text)
    return timestamp_us(text) - _offset_us(match[6])


def _offset_us(offset: str | None) -> int:
    if not offset:
        return 0
    parts = [int(one) for one in offset[1:].split(":")] + [0, 0]
    seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2]
    return (-seconds if offset[0] == "-" else seconds) * 1_000_000


def iso_timestamp(micros: int) -> str:
    """Microseconds since 1970 as ISO 8601 with six digits, years beyond Python's among them, without a zone."""
    day, rest = divmod(micros, _DAY_US)
    return f"{iso_date(day)}T{iso_time(rest)}"


def iso_date(day: int) -> str:
    """Days since 1970 as ISO 8601, with a sign where the year has more or fewer than four digits."""
    ordinal = day + _DAYS_BEFORE_1970
    cycles = 0 if 1 <= ordinal <= date.max.toordinal() else (ordinal - date(2000, 1, 1).toordinal()) // 146_097
    calendar_day = date.fromordinal(ordinal - cycles * 146_097)
    year = calendar_day.year + 400 * cycles
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{shown}-{calendar_day.month:02d}-{calendar_day.day:02d}"


def iso_time(micros: int) -> str:
    """Microseconds after midnight as ISO 8601 with six digits."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"


def zoned_time(text: str) -> str:
    """A time with a time zone in the form of Debezium's `ZonedTime`: ISO 8601 in UTC."""
    match = _TIME.match(text)
    if match is None:
        raise _no_time(text)
    micros = (day_us(text) - _offset_us(match[5])) % _DAY_US
    if match[1] == "24" and not _offset_us(match[5]):
        return "24:00:00Z"
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{iso_time(seconds * 1_000_000)[:8]}{digits}Z"


ZONED_TIMESTAMP: Final = TimeReader(_named(STRING, "ZonedTimestamp"), zoned_timestamp, "1970-01-01T00:00:00.000000Z")
ZONED_TIME: Final = TimeReader(_named(STRING, "ZonedTime"), zoned_time, "00:00:00Z")


def _as_date(text: str) -> date:
    return date(1970, 1, 1) + timedelta(days=days(text))


def _as_time(text: str) -> time:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=day_us(text) % _DAY_US)).time()


def _as_datetime(text: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_us(text) // 1000)


def date_reader(mode: TimePrecision) -> TimeReader:
    """The reader of a column of the type date."""
    if mode is TimePrecision.CONNECT:
        return TimeReader(date_schema(), _as_date, date(1970, 1, 1))
    if mode is TimePrecision.ISOSTRING:
        return TimeReader(_named(STRING, "IsoDate"), lambda text: iso_date(days(text)) + "Z", "1970-01-01Z")
    return TimeReader(_named(INT32, "Date"), days, 0)


def time_reader(mode: TimePrecision, precision: int) -> TimeReader:
    """The reader of a column of the type time; its precision in digits, -1 where the type has none."""
    if mode is TimePrecision.CONNECT:
        return TimeReader(time_schema(), _as_time, time())
    if mode is TimePrecision.ISOSTRING:
        return TimeReader(_named(STRING, "IsoTime"), lambda text: zoned_time(text), "00:00:00Z")
    if mode is TimePrecision.NANOSECONDS:
        return TimeReader(_named(INT64, "NanoTime"), lambda text: day_us(text) * 1000, 0)
    if mode is TimePrecision.ADAPTIVE and 0 <= precision <= 3:
        return TimeReader(_named(INT32, "Time"), lambda text: day_us(text) // 1000, 0)
    return TimeReader(_named(INT64, "MicroTime"), day_us, 0)


def timestamp_reader(mode: TimePrecision, precision: int) -> TimeReader:
    """The reader of a column of the type timestamp, as `time_reader`."""
    if mode is TimePrecision.CONNECT:
        return TimeReader(timestamp_schema(), _as_datetime, datetime(1970, 1, 1, tzinfo=UTC))
    if mode is TimePrecision.ISOSTRING:
        read = _iso_instant
        return TimeReader(_named(STRING, "IsoTimestamp"), read, "1970-01-01T00:00:00.000000Z")
    if mode is TimePrecision.NANOSECONDS:
        return TimeReader(_named(INT64, "NanoTimestamp"), lambda text: _in_ns(timestamp_us(text)), 0)
    adaptive = mode in (TimePrecision.ADAPTIVE, TimePrecision.ADAPTIVE_MICROSECONDS)
    if adaptive and 0 <= precision <= 3:
        return TimeReader(_named(INT64, "Timestamp"), lambda text: timestamp_us(text) // 1000, 0)
    return TimeReader(_named(INT64, "MicroTimestamp"), timestamp_us, 0)


def _in_ns(micros: int) -> int:
    if not -(1 << 63) <= micros * 1000 < 1 << 63:
        raise DataError(
            f"A timestamp is {micros} microseconds from 1970, which are more nanoseconds than an INT64 can count."
            " Set time.precision.mode to another one, or exclude the column with column.exclude.list."
        )
    return micros * 1000


def _iso_instant(text: str) -> str:
    return text if text in _INFINITY_MS else iso_timestamp(timestamp_us(text)) + "Z"
