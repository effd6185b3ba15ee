"""Java's SimpleDateFormat in UTC and English: texts of instants, and instants of texts.

TimestampConverter and TimestampRouter take its patterns. Parsing is lenient as Java's is: fields beyond their range
roll over, what follows the last field is ignored, and `S` counts milliseconds whatever its number of digits.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS: Final = "yYwWDdFuHkKhmsS"
_LETTERS: Final = _NUMBERS + "GMLEazZX"
# Abbreviations that Java's English zone names have, in hours from UTC.
_ZONES: Final[Mapping[str, float]] = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "IST": 5.5, "JST": 9, "KST": 9, "AEST": 10, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
    "PST": -8, "PDT": -7, "AKST": -9, "HST": -10,
}  # fmt: skip
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z']+)")


@dataclass(frozen=True)
class _Part:
    """A field (its letter and number of letters), or a literal text with an empty letter."""

    letter: str
    width: int
    text: str = ""


def moment_of(epoch_ms: int) -> datetime:
    """An instant of that number of ms since 1970, in UTC. Raises `OverflowError` outside of the years 1 to 9999."""
    return EPOCH + timedelta(milliseconds=epoch_ms)


def epoch_ms_of(value: date | time) -> int:
    """Milliseconds since 1970 UTC of an instant or a date, or since midnight of a time; parts of them cut off.

    An instant without time zone is taken as UTC.
    """
    if isinstance(value, time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if not isinstance(value, datetime):
        return (value - EPOCH.date()).days * 86_400_000
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(milliseconds=1)


class DatePattern:
    """A pattern of SimpleDateFormat.

    `century_start`: the first of the 100 years that `yy` may mean; Java takes the year 80 years ago.
    """

    def __init__(self, pattern: str, century_start: int = 1946) -> None:
        """Read the pattern. Raises `ValueError` where Java raises IllegalArgumentException."""
        self.pattern = pattern
        self._parts = _parts_of(pattern)
        self._century_start = century_start
        self._names, self._regex = _regex_of(self._parts)

    def format(self, epoch_ms: int) -> str:
        """Write an instant (ms since 1970). Raises `ValueError` for years outside of 1..9999."""
        try:
            moment = moment_of(epoch_ms)
        except OverflowError:
            raise ValueError(f"{epoch_ms} ms are outside of the years 1 to 9999: correct the value.") from None
        return "".join(part.text if not part.letter else _written(part, moment) for part in self._parts)

    def parse(self, text: str) -> int:
        """Read an instant, as ms since 1970. Raises `ValueError` where the text does not match."""
        match = self._regex.match(text)
        if match is None:
            raise ValueError(f"{text!r} does not match the pattern {self.pattern!r}.")
        fields = [(self._names[index], value) for index, value in enumerate(match.groups())]
        try:
            return self._instant(fields)
        except OverflowError:
            raise ValueError(f"{text!r} is outside of the years 1 to 9999.") from None

    def _instant(self, fields: Sequence[tuple[_Part, str]]) -> int:
        got: dict[str, int] = {}
        offset_minutes, year_digits = 0, 0
        for part, value in fields:
            letter = part.letter
            if letter in "zZX":
                offset_minutes = _offset(value)
            elif letter == "a":
                got["a"] = int(value.lower() == "pm")
            elif letter == "G":
                got["G"] = int(value.upper() == "AD")
            elif letter in "ML" and not value.lstrip("-").isdigit():
                got["M"] = _index(_MONTHS, value) + 1
            elif letter == "E":
                got["E"] = _index(_DAYS, value)
            else:
                got["M" if letter == "L" else letter] = int(value)
                if letter in "yY" and part.width <= 2:
                    year_digits = len(value)
        year = got.get("y", got.get("Y", 1970))
        if year_digits == 2:
            year += self._century_start - self._century_start % 100
            year += 100 if year < self._century_start else 0
        if got.get("G") == 0:
            year = 1 - year
        month = got.get("M", 1) - 1
        day = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        if "D" in got and "M" not in got and "d" not in got:
            day = datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=got["D"] - 1)
        else:
            day += timedelta(days=got.get("d", 1) - 1)
        return round((day - EPOCH) / timedelta(milliseconds=1)) + _time_of_day_ms(got) - offset_minutes * 60_000


def _time_of_day_ms(got: Mapping[str, int]) -> int:
    if "H" in got or "k" in got:
        hour = got["H"] if "H" in got else got["k"] % 24
    else:
        hour = (got["K"] if "K" in got else got.get("h", 0) % 12) + 12 * got.get("a", 0)
    return ((hour * 60 + got.get("m", 0)) * 60 + got.get("s", 0)) * 1000 + got.get("S", 0)


def _parts_of(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    position = 0
    while position < len(pattern):
        token = _TOKEN.match(pattern, position)
        if token is None:
            raise ValueError(f"Unterminated quote in the pattern {pattern!r}.")
        if token[1] is not None:
            parts.append(_Part("", 0, token[1].replace("''", "'") or "'"))
        elif token[3] is not None:
            parts.append(_Part("", 0, token[3]))
        elif token[2] not in _LETTERS:
            raise ValueError(f"Illegal pattern character {token[2]!r} in {pattern!r}.")
        elif token[2] == "X" and len(token[0]) > 3:
            raise ValueError(f"Invalid ISO 8601 format: {token[0]!r} in {pattern!r}; X takes up to three.")
        else:
            parts.append(_Part(token[2], len(token[0])))
        position = token.end()
    return parts


def _regex_of(parts: Sequence[_Part]) -> tuple[list[_Part], re.Pattern[str]]:
    """The fields in their order, and an expression with one group for each."""
    names: list[_Part] = []
    pieces: list[str] = []
    for index, part in enumerate(parts):
        if not part.letter:
            pieces.append(re.escape(part.text))
            continue
        names.append(part)
        abutting = index + 1 < len(parts) and _is_number(parts[index + 1])
        pieces.append(f"[ \\t]*({_expression(part, abutting=abutting)})")
    return names, re.compile("".join(pieces), re.IGNORECASE)


def _is_number(part: _Part) -> bool:
    return part.letter != "" and (part.letter in _NUMBERS or (part.letter in "ML" and part.width < 3))


def _expression(part: _Part, *, abutting: bool) -> str:
    if _is_number(part):
        return rf"\d{{{part.width}}}" if abutting else r"-?\d+"
    if part.letter in "ML":
        return "|".join(name for month in _MONTHS for name in (month, month[:3]))
    if part.letter == "E":
        return "|".join(name for day in _DAYS for name in (day, day[:3]))
    if part.letter == "a":
        return "AM|PM"
    if part.letter == "G":
        return "AD|BC"
    if part.letter == "X":
        return "Z|[+-]" + (r"\d\d", r"\d\d\d\d", r"\d\d:\d\d")[part.width - 1]
    zones = "|".join(sorted(_ZONES, key=len, reverse=True))
    return rf"GMT[+-]\d{{1,2}}:\d\d|[+-]\d{{1,2}}:?\d\d|{zones}|Coordinated Universal Time"


def _offset(text: str) -> int:
    """Minutes east of UTC."""
    number = re.search(r"([+-])(\d{1,2}):?(\d\d)?$", text)
    if number is not None:
        minutes = int(number[2]) * 60 + int(number[3] or 0)
        return -minutes if number[1] == "-" else minutes
    return int(_ZONES.get(text.upper(), 0) * 60)


def _index(names: Sequence[str], text: str) -> int:
    return next(index for index, name in enumerate(names) if name[:3].lower() == text[:3].lower())


def _week_of_year(moment: datetime) -> tuple[int, int]:
    """(year, week) of the US: weeks begin on Sunday, the first has January 1st."""
    saturday = (moment - EPOCH).days - (moment.weekday() + 1) % 7 + 6
    if (EPOCH + timedelta(days=saturday)).year > moment.year:
        return moment.year + 1, 1
    first = (datetime(moment.year, 1, 1, tzinfo=UTC).weekday() + 1) % 7
    return moment.year, (moment.timetuple().tm_yday - 1 + first) // 7 + 1


_FIELDS: Final[Mapping[str, Callable[[datetime], int]]] = {
    "y": lambda moment: moment.year,
    "Y": lambda moment: _week_of_year(moment)[0],
    "w": lambda moment: _week_of_year(moment)[1],
    "W": lambda moment: (moment.day - 1 + (moment.replace(day=1).weekday() + 1) % 7) // 7 + 1,
    "D": lambda moment: moment.timetuple().tm_yday,
    "d": lambda moment: moment.day,
    "F": lambda moment: (moment.day - 1) // 7 + 1,
    "u": lambda moment: moment.isoweekday(),
    "H": lambda moment: moment.hour,
    "k": lambda moment: moment.hour or 24,
    "K": lambda moment: moment.hour % 12,
    "h": lambda moment: moment.hour % 12 or 12,
    "m": lambda moment: moment.minute,
    "s": lambda moment: moment.second,
    "S": lambda moment: moment.microsecond // 1000,
    "M": lambda moment: moment.month,
    "L": lambda moment: moment.month,
}


def _written(part: _Part, moment: datetime) -> str:
    letter, width = part.letter, part.width
    if letter in "yY" and width == 2:
        return f"{_FIELDS[letter](moment) % 100:02}"
    if _is_number(part):
        return f"{_FIELDS[letter](moment):0{width}}"
    if letter in "ML":
        return _MONTHS[moment.month - 1][: None if width > 3 else 3]
    if letter == "E":
        return _DAYS[moment.weekday()][: None if width > 3 else 3]
    if letter == "a":
        return "PM" if moment.hour >= 12 else "AM"
    if letter == "G":
        return "AD"
    if letter == "X":
        return "Z"
    if letter == "Z":
        return "+0000"
    return "Coordinated Universal Time" if width > 3 else "UTC"
