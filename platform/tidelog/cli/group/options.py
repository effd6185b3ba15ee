"""Options of `tidelog group`, and what they mean: alone, and together.

Source: kafka-consumer-groups' `--topic`, `--to-datetime`, `--by-duration`, `--from-file` and `--export`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from tidelog.commands.failures import UsageProblemError

if TYPE_CHECKING:
    from tidelog.groups.model import TopicPartition
    from tidelog.operations.offset_resets import Scenario

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="The group's id.", show_default=False)]
GroupNames = Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups' ids.", show_default=False)]
SomeGroups = Annotated[
    list[str] | None, typer.Argument(metavar="[GROUP]...", help="The groups' ids.", show_default=False)
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC[:P,P]", help="A topic, or only these partitions of it. Repeatable."),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics that the group has committed offsets of.")]

Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this, only show what would be done.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done: the default.")]
Export = Annotated[bool, typer.Option("--export", help="Print the new offsets as CSV, for --from-file.")]

_SCOPE = re.compile(r"([a-zA-Z0-9._-]+)(?::([0-9]+(?:,[0-9]+)*))?")
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def scope_of(texts: list[str] | None, everything: bool) -> dict[str, frozenset[int] | None] | None:
    """`--topic` and `--all-topics` as `offset_resets.standings` takes them. Raises `typer.BadParameter`."""
    if everything and texts:
        raise UsageProblemError("--topic and --all-topics contradict one another: give one of them.")
    if everything or not texts:
        return None
    try:
        return parse_scope(texts)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="--topic") from None


@dataclass(frozen=True, kw_only=True)
class ResetTarget:
    """Where to reset offsets to: exactly one is given."""

    panel: ClassVar[str] = "Where to; exactly one of these"

    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the log start offset.")] = False
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the log end offset.")] = False
    to_current: Annotated[
        bool, typer.Option("--to-current", help="To the committed offset itself, or the end where there is none.")
    ] = False
    to_offset: Annotated[int | None, typer.Option(metavar="N", min=0, help="To this offset.")] = None
    shift_by: Annotated[int | None, typer.Option(metavar="N", help="Forward by N, back by -N.")] = None
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="To the first record at or after a time: 2026-01-31T12:00:00.000, UTC unless it says otherwise.",
        ),
    ] = None
    by_duration: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="To the first record at or after that long ago: PT1H30M, P7D."),
    ] = None
    from_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="To the offsets of lines 'topic,partition,offset', as --export writes them."),
    ] = None

    to_cut: Annotated[
        str | None, typer.Option(metavar="NAME", help="To where the group was in a cut ('tidelog cut list').")
    ] = None

    def scenario(self, group: str, now_ms: int, in_cut: "Callable[[str], Scenario]") -> "Scenario":
        """The one reset that is asked for; `in_cut` finds a cut. Raises `UsageProblemError`, `typer.BadParameter`."""
        from tidelog.operations.offset_resets import Scenario

        makers: dict[str, Callable[[Any], Scenario]] = {
            "to_earliest": lambda _: Scenario("earliest"),
            "to_latest": lambda _: Scenario("latest"),
            "to_current": lambda _: Scenario("current"),
            "to_offset": lambda offset: Scenario("offset", offset),
            "shift_by": lambda by: Scenario("shift", by),
            "to_datetime": lambda text: Scenario("time", parse_datetime_ms(text)),
            "by_duration": lambda text: Scenario("time", now_ms - parse_duration_ms(text)),
            "from_file": lambda path: Scenario(
                "file", offsets=parse_offsets_file(path.read_text(encoding="utf-8"), group)
            ),
            "to_cut": in_cut,
        }
        options = {name: "--" + name.replace("_", "-") for name in makers}
        given = {name: value for name in makers if (value := getattr(self, name)) is not None and value is not False}
        chosen = [options[name] for name in given]
        if len(chosen) != 1:
            said = f"both {chosen[0]} and {chosen[1]} are given" if chosen else "nothing says where to"
            raise UsageProblemError(
                f"Offsets are reset to one place, and {said}. Give exactly one of {', '.join(options.values())}."
            )
        ((name, value),) = given.items()
        try:
            return makers[name](value)
        except ValueError as e:
            raise typer.BadParameter(f"{e}.", param_hint=options[name]) from None


def parse_scope(texts: Sequence[str]) -> dict[str, frozenset[int] | None]:
    """`["t:0,1", "u"]` as {"t": {0, 1}, "u": None}, None for all partitions. Raises ValueError."""
    scope: dict[str, frozenset[int] | None] = {}
    for text in texts:
        match = _SCOPE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no topic, and no topic with partitions such as orders:0,1")
        topic, numbers = match[1], match[2]
        if topic in scope:
            raise ValueError(f"{topic!r} is given twice")
        scope[topic] = None if numbers is None else frozenset(int(number) for number in numbers.split(","))
    return scope


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


def parse_offsets_file(text: str, group: str) -> "dict[TopicPartition, int]":
    """Lines `topic,partition,offset`, or `group,topic,partition,offset`, as --export writes them. Raises ValueError."""
    offsets: dict[TopicPartition, int] = {}
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
        if place in offsets:
            raise ValueError(f"line {number} names partition {place[1]} of {place[0]} a second time")
        offsets[place] = int(row[2])
    if not offsets:
        raise ValueError("it holds no offset")
    return offsets


def export_lines(group: str, resets: "Iterable[tuple[TopicPartition, int]]") -> str:
    """The offsets as CSV with a group, as `--from-file` reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for (topic, partition), offset in resets:
        writer.writerow([group, topic, partition, offset])
    return out.getvalue()
