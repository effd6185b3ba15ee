"""Where a group's offsets are reset to: a pure plan, and the words that say what is wanted.

Source: kafka-consumer-groups' `--reset-offsets`.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Place = tuple[str, int]


# What an offset is reset to.
ResetTo = Literal["earliest", "latest", "current", "offset", "shift", "time", "file"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A reset. `value`: an offset, a number of offsets, or ms since the epoch; `offsets`: by place, of a file."""

    target: ResetTo
    value: int = 0
    offsets: Mapping[Place, int] | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A partition's offsets [start, end), the group's committed one and the first at the time that is asked for."""

    start: int
    end: int
    committed: int | None = None
    at_time: int | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """A partition's new offset; `note` says why it is not the one that was asked for."""

    offset: int
    note: str = ""


def plan_reset(scenario: Scenario, standings: Mapping[Place, Standing]) -> dict[Place, Reset]:
    """Return the new offset of each partition, in the partitions' order.

    An offset outside a partition's range becomes the nearest one in it. Raises ValueError where a shift has no
    committed offset to start from.
    """
    return {place: _reset(scenario, place, standings[place]) for place in sorted(standings)}


def _reset(scenario: Scenario, place: Place, standing: Standing) -> Reset:
    match scenario.target:
        case "earliest":
            return Reset(standing.start)
        case "latest":
            return Reset(standing.end)
        case "current":
            if standing.committed is None:
                return Reset(standing.end, "has no committed offset, so it goes to the end")
            return _within(standing.committed, standing)
        case "time":
            if standing.at_time is None:
                return Reset(standing.end, "has no record at or after that time, so it goes to the end")
            return Reset(standing.at_time)
        case "shift":
            if standing.committed is None:
                raise ValueError(
                    f"Partition {place[1]} of {place[0]} has no committed offset to shift. Leave it out with --topic,"
                    " or reset it to an offset."
                )
            return _within(standing.committed + scenario.value, standing)
        case "file":
            return _within((scenario.offsets or {})[place], standing)
    return _within(scenario.value, standing)


def _within(offset: int, standing: Standing) -> Reset:
    if offset < standing.start:
        return Reset(standing.start, f"begins at offset {standing.start}: {offset} is before it")
    if offset > standing.end:
        return Reset(standing.end, f"ends at offset {standing.end}: {offset} is behind it")
    return Reset(offset)


# --- words -------------------------------------------------------------------------------------------------

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


def parse_offsets_file(text: str, group: str) -> dict[Place, int]:
    """Lines `topic,partition,offset`, or `group,topic,partition,offset`, as --export writes them. Raises ValueError."""
    found: dict[Place, int] = {}
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


def export_lines(group: str, resets: Iterable[tuple[Place, int]]) -> str:
    """The offsets as CSV with a group, as `--from-file` reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for (topic, partition), offset in resets:
        writer.writerow([group, topic, partition, offset])
    return out.getvalue()
