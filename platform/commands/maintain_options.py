"""Options of maintenance, of `tidelog maintain` as of the jobs that spark-submit starts, and what they ask for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from tidelog.commands.failures import UsageProblemError


class Part(StrEnum):
    """The parts of maintenance."""

    RETENTION = "retention"
    COMPACT = "compact"
    MERGE = "merge"
    PURGE = "purge"
    OFFSETS = "offsets"


ALL = tuple(Part)
# The last ms of the year 9999: later than any time that a log can name.
LATEST_MS = 253_402_300_799_999

OnlyOption = Annotated[
    list[Part] | None, typer.Option("--only", help="Only this part. Repeatable.", show_default=False)
]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this topic. Repeatable.", show_default=False),
]
PatternOption = Annotated[
    str | None,
    typer.Option("--pattern", metavar="REGEX", help="Only topics of which the whole name matches.", show_default=False),
]
NowOption = Annotated[
    int | None,
    typer.Option(
        "--now",
        metavar="MS",
        min=0,
        max=LATEST_MS,
        help="The time that plans go by, in ms since the epoch; without it, the machine's clock.",
        show_default=False,
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]
EveryOption = Annotated[
    str | None,
    typer.Option("--every", metavar="INTERVAL", help="Go on, once every 30s, 5m, 1h …", show_default=False),
]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call asks for. `every_s`: seconds from one run to the next, None for one run."""

    parts: tuple[Part, ...] = ALL
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    now_ms: int | None = None
    dry_run: bool = False
    every_s: float | None = None


def wanted(
    only: Sequence[Part] | None,
    topics: Sequence[str] | None,
    pattern: str | None,
    now_ms: int | None,
    dry_run: bool,
    every: str | None,
) -> Wanted:
    """The options as one value. Raises `UsageProblemError` where they contradict one another."""
    # The scheduler takes a moment to load, which a help text need not wait for.
    from tidelog.retention.scheduling import parse_interval

    if topics and pattern is not None:
        raise UsageProblemError("Topics are named or matched, not both: give --topic or --pattern.")
    chosen = topics or pattern is not None
    if chosen and only and set(only) == {Part.OFFSETS}:
        raise UsageProblemError(
            "--only offsets looks after the groups' own tables, not after topics: leave out --topic and --pattern."
        )
    if every is not None and now_ms is not None:
        raise UsageProblemError("--now makes time stand still, and --every goes on with it: give one of them.")
    try:
        every_s = None if every is None else parse_interval(every)
        re.compile(pattern or "")
    except ValueError as e:
        raise UsageProblemError(f"--every: {e}") from e
    except re.error as e:
        raise UsageProblemError(f"--pattern: {pattern!r} is no regular expression ({e}).") from e
    return Wanted(tuple(only or ALL), tuple(topics) if topics else None, pattern, now_ms, dry_run, every_s)
