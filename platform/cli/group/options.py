"""Options of `tidelog group`, and what they mean together."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.group.resets import (
    Scenario,
    Target,
    parse_datetime_ms,
    parse_duration_ms,
    parse_offsets_file,
    parse_scope,
)
from tidelog.commands.failures import UsageProblemError

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

_TARGETS = "Where to; exactly one of these"
ToEarliest = Annotated[bool, typer.Option("--to-earliest", help="To the log start offset.", rich_help_panel=_TARGETS)]
ToLatest = Annotated[bool, typer.Option("--to-latest", help="To the log end offset.", rich_help_panel=_TARGETS)]
ToCurrent = Annotated[
    bool,
    typer.Option(
        "--to-current", help="To the committed offset itself, or the end where there is none.", rich_help_panel=_TARGETS
    ),
]
ToOffset = Annotated[
    int | None,
    typer.Option("--to-offset", metavar="N", min=0, help="To this offset.", rich_help_panel=_TARGETS),
]
ShiftBy = Annotated[
    int | None,
    typer.Option("--shift-by", metavar="N", help="Forward by N, back by -N.", rich_help_panel=_TARGETS),
]
ToDatetime = Annotated[
    str | None,
    typer.Option(
        "--to-datetime",
        metavar="TIME",
        help="To the first record at or after a time: 2026-01-31T12:00:00.000, UTC unless it says otherwise.",
        rich_help_panel=_TARGETS,
    ),
]
ByDuration = Annotated[
    str | None,
    typer.Option(
        "--by-duration",
        metavar="DURATION",
        help="To the first record at or after that long ago: PT1H30M, P7D.",
        rich_help_panel=_TARGETS,
    ),
]
FromFile = Annotated[
    Path | None,
    typer.Option(
        "--from-file",
        metavar="FILE",
        help="To the offsets of lines 'topic,partition,offset', as --export writes them.",
        rich_help_panel=_TARGETS,
    ),
]
Execute = Annotated[bool, typer.Option("--execute", help="Do it; without this, only show what would be done.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done: the default.")]
Export = Annotated[bool, typer.Option("--export", help="Print the new offsets as CSV, for --from-file.")]


def scope_of(texts: list[str] | None, everything: bool) -> dict[str, frozenset[int] | None] | None:
    """`--topic` and `--all-topics` as `group_reading.standings` takes them. Raises `typer.BadParameter`."""
    if everything and texts:
        raise UsageProblemError("--topic and --all-topics contradict one another: give one of them.")
    if everything or not texts:
        return None
    try:
        return parse_scope(texts)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="--topic") from None


def scenario_of(
    group: str,
    now_ms: int,
    *,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_offset: int | None,
    shift_by: int | None,
    to_datetime: str | None,
    by_duration: str | None,
    from_file: Path | None,
) -> Scenario:
    """The one reset that is asked for. Raises `UsageProblemError`, `typer.BadParameter`."""
    given: list[tuple[bool, str, Callable[[], Scenario]]] = [
        (to_earliest, "--to-earliest", lambda: Scenario(Target.EARLIEST)),
        (to_latest, "--to-latest", lambda: Scenario(Target.LATEST)),
        (to_current, "--to-current", lambda: Scenario(Target.CURRENT)),
        (to_offset is not None, "--to-offset", lambda: Scenario(Target.OFFSET, to_offset or 0)),
        (shift_by is not None, "--shift-by", lambda: Scenario(Target.SHIFT, shift_by or 0)),
        (
            to_datetime is not None,
            "--to-datetime",
            lambda: Scenario(Target.TIME, parse_datetime_ms(to_datetime or "")),
        ),
        (
            by_duration is not None,
            "--by-duration",
            lambda: Scenario(Target.TIME, now_ms - parse_duration_ms(by_duration or "")),
        ),
        (from_file is not None, "--from-file", lambda: _from_file(from_file, group)),
    ]
    chosen = [(option, make) for wanted, option, make in given if wanted]
    if len(chosen) != 1:
        said = f"both {chosen[0][0]} and {chosen[1][0]} are given" if chosen else "nothing says where to"
        options = ", ".join(option for _, option, _ in given)
        raise UsageProblemError(f"Offsets are reset to one place, and {said}. Give exactly one of {options}.")
    option, make = chosen[0]
    try:
        return make()
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint=option) from None


def _from_file(path: Path | None, group: str) -> Scenario:
    text = path.read_text(encoding="utf-8") if path else ""
    return Scenario(Target.FILE, offsets=parse_offsets_file(text, group))
