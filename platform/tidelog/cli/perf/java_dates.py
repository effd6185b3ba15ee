"""Times as Java's SimpleDateFormat prints them, for the letters that a time needs."""

import re
from datetime import datetime

_PART = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_LETTERS = "yMdHmsS"


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that `java_date` can't print. Raises ValueError."""
    if _PART.sub("", pattern):
        raise ValueError(f"{pattern!r} has a quote that does not end")
    for part in _PART.finditer(pattern):
        if part[1] and (part[1] not in _LETTERS or (part[1] == "M" and len(part[0]) > 2)):
            raise ValueError(f"{part[0]!r} is no part of a date here: they are yyyy, MM, dd, HH, mm, ss, SSS")


def java_date(pattern: str, time_ms: int) -> str:
    """A time in ms since the epoch, in this machine's time zone, by a pattern that `check_pattern` let pass.

    >>> java_date("'it is' S ''", 7)
    "it is 7 '"
    """
    when = datetime.fromtimestamp(time_ms // 1000).astimezone()
    values = {
        "y": when.year,
        "M": when.month,
        "d": when.day,
        "H": when.hour,
        "m": when.minute,
        "s": when.second,
        "S": time_ms % 1000,
    }

    def printed(part: re.Match[str]) -> str:
        text = part[0]
        if text.startswith("'"):
            return "'" if text == "''" else text[1:-1].replace("''", "'")
        if not part[1]:
            return text
        if part[1] == "y" and len(text) == 2:
            return f"{when.year % 100:02}"
        return f"{values[part[1]]:0{len(text)}}"

    return _PART.sub(printed, pattern)
