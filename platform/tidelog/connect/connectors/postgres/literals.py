"""PostgreSQL's text forms of composed values (arrays, hstore, intervals, bits) as Python values."""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, NamedTuple

from tidelog.connect.data.errors import DataError

# An element of an array: quoted, or a run without commas and braces.
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS: Final = re.compile(r"(?:\[-?\d+:-?\d+\])+=")
_PAIR: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, )?', re.DOTALL)
_INTERVAL_PART: Final = re.compile(r"([+-]?\d+) (year|mon|day)s?")
_INTERVAL_TIME: Final = re.compile(r"([+-])?(\d+):(\d\d):(\d\d)(\.\d+)?$")
_US: Final = 1_000_000
# Debezium's average month, in days.
_DAYS_OF_MONTH: Final = Decimal("365.25") / 12


def array(text: str, element: Callable[[str], Any]) -> list[Any]:
    """An array's elements, nested lists where it has more dimensions; `element` reads one that isn't NULL."""
    at = found.end() if (found := _BOUNDS.match(text)) else 0
    values, end = _elements(text, at, element)
    if end != len(text):
        raise _malformed("array", text)
    return values


def _elements(text: str, at: int, element: Callable[[str], Any]) -> tuple[list[Any], int]:
    """The list whose brace is at a place, and the place after it."""
    if text[at : at + 1] != "{":
        raise _malformed("array", text)
    at += 1
    values: list[Any] = []
    while True:
        character = text[at : at + 1]
        if character == "}":
            return values, at + 1
        if character == ",":
            at += 1
        elif character == "{":
            inner, at = _elements(text, at, element)
            values.append(inner)
        elif match := _ELEMENT.match(text, at):
            quoted, plain = match.groups()
            if quoted is not None:
                values.append(element(_ESCAPED.sub(r"\1", quoted)))
            else:
                values.append(None if plain == "NULL" else element(plain))
            at = match.end()
        else:
            raise _malformed("array", text)


def hstore(text: str) -> dict[str, str | None]:
    """An hstore's pairs."""
    pairs: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        match = _PAIR.match(text, at)
        if match is None:
            raise _malformed("hstore", text)
        key, value = match.groups()
        pairs[_ESCAPED.sub(r"\1", key)] = None if value is None else _ESCAPED.sub(r"\1", value)
        at = match.end()
    return pairs


class Interval(NamedTuple):
    """An interval in PostgreSQL's three parts, which don't convert into each other: months, days, microseconds."""

    months: int
    days: int
    microseconds: int

    def as_microseconds(self) -> int:
        """The duration, with months of the average length, as Debezium's `MicroDuration` counts it."""
        days = self.months * _DAYS_OF_MONTH + self.days
        return int((days * 86_400 * _US).to_integral_value(ROUND_HALF_UP)) + self.microseconds

    def as_iso(self) -> str:
        """The ISO 8601 form of Debezium's `Interval`: each part, also where it is 0."""
        sign = -1 if self.microseconds < 0 else 1
        years, months = int(self.months / 12), self.months - 12 * int(self.months / 12)
        rest, micros = divmod(abs(self.microseconds), _US)
        seconds = Decimal(sign * (rest % 60 * _US + micros)) / _US
        text = f"{seconds.normalize():f}" if seconds else "0"
        return f"P{years}Y{months}M{self.days}DT{sign * (rest // 3600)}H{sign * (rest // 60 % 60)}M{text}S"


def interval(text: str) -> Interval:
    """An interval in the style `postgres`, which the connector sets."""
    amounts = {"year": 0, "mon": 0, "day": 0}
    rest = text
    while found := _INTERVAL_PART.match(rest):
        amounts[found[2]] = int(found[1])
        rest = rest[found.end() :].lstrip()
    micros = 0
    if rest:
        time = _INTERVAL_TIME.match(rest)
        if time is None:
            raise _malformed("interval", text)
        sign, hours, minutes, seconds, fraction = time.groups()
        micros = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * _US + fraction_us(fraction)
        micros = -micros if sign == "-" else micros
    return Interval(amounts["year"] * 12 + amounts["mon"], amounts["day"], micros)


def fraction_us(fraction: str | None) -> int:
    """The microseconds of a fraction of a second with its point, 0 of none."""
    return int(fraction[1:].ljust(6, "0")[:6]) if fraction else 0


def bits(text: str) -> bytes:
    """A bit string as Debezium has it: little endian, the last bit first, without leading zero bytes."""
    number = int(text, 2) if text else 0
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def _malformed(kind: str, text: str) -> DataError:
    return DataError(f"PostgreSQL sent a value of the type {kind} that can't be read: {text[:100]!r}.")
