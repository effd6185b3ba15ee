"""The words of `tidelog group` that say which offsets to reset, and to what.

Source: kafka-consumer-groups' `--topic`, `--to-datetime`, `--by-duration`, `--from-file` and `--export`.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from tidelog.groups.model import TopicPartition

_SCOPE = re.compile(r"([a-zA-Z0-9._-]+)(?::([0-9]+(?:,[0-9]+)*))?")
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def parse_scope(texts: Sequence[str]) -> dict[str, frozenset[int] | None]:
    """`["t:0,1", "u"]` as {"t": {0, 1}, "u": None}, None for all partitions. Raises ValueError."""
    found: dict[str, frozenset[int] | None] = {}
    for text in texts:
        match = _SCOPE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no topic, and no topic with partitions such as orders:0,1")
        topic, numbers = match[1], match[2]
        if topic in found:
            raise ValueError(f"{topic!r} is given twice")
        found[topic] = None if numbers is None else frozenset(int(number) for number in numbers.split(","))
    return found


def parse_datetime_ms(text: str) -> int:
    """`2026-01-31T12:00:00.000`, UTC unless it says otherwise, as ms since the epoch. Raises ValueError."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text!r} is no time such as 2026-01-31T12:00:00.000 or 2026-01-31T12:00:00+01:00") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return int((time - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


def parse_duration_ms(text: str) -> int:
    """`P1DT2H30M`, `PT0.5S` in ms. Raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is no duration such as P7D, PT1H30M or PT10S")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int(timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds) / timedelta(milliseconds=1))


def parse_offsets_file(text: str, group: str) -> dict[TopicPartition, int]:
    """Lines `topic,partition,offset`, or `group,topic,partition,offset`, as --export writes them. Raises ValueError."""
    found: dict[TopicPartition, int] = {}
    for number, fields in enumerate(csv.reader(io.StringIO(text)), start=1):
        row = [field.strip() for field in fields]
        if not any(row):
            continue
        if len(row) == 4:
            if row[0] != group:
                raise ValueError(f"line {number} is about group {row[0]!r}, not {group!r}")
            row = row[1:]
        if len(row) != 3 or not row[0] or not row[1].isdecimal() or not row[2].isdecimal():
            raise ValueError(f"line {number} is not of the form topic,partition,offset: {','.join(fields)!r}")
        place = (row[0], int(row[1]))
        if place in found:
            raise ValueError(f"line {number} names partition {place[1]} of {place[0]} a second time")
        found[place] = int(row[2])
    if not found:
        raise ValueError("it holds no offset")
    return found


def export_lines(group: str, resets: Iterable[tuple[TopicPartition, int]]) -> str:
    """The offsets as CSV with a group, as `--from-file` reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for (topic, partition), offset in resets:
        writer.writerow([group, topic, partition, offset])
    return out.getvalue()
