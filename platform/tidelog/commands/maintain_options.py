"""Options of `tidelog maintain` and of the maintenance jobs that spark-submit starts."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from tidelog.commands.failures import UsageProblemError
from tidelog.server.options import MetricsAt, OtlpAt


class MaintenancePart(StrEnum):
    """The parts of maintenance."""

    RETENTION = "retention"
    COMPACT = "compact"
    MERGE = "merge"
    PURGE = "purge"
    OFFSETS = "offsets"


# The last ms of the year 9999: later than any time that a log can name.
LATEST_MS = 253_402_300_799_999


@dataclass(frozen=True, kw_only=True)
class MaintainOptions:
    """What a call asks for: which parts of maintenance, of which topics, when."""

    only: Annotated[list[MaintenancePart] | None, typer.Option(help="Only this part. Repeatable.")] = None
    topics: Annotated[
        list[str] | None, typer.Option("--topic", metavar="TOPIC", help="Only this topic. Repeatable.")
    ] = None
    pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only topics of which the whole name matches.")
    ] = None
    now: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            max=LATEST_MS,
            help="The time that plans go by, in ms since the epoch; without it, the machine's clock.",
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False
    every: Annotated[str | None, typer.Option(metavar="INTERVAL", help="Go on, once every 30s, 5m, 1h …")] = None
    metrics: MetricsAt = None
    otlp: OtlpAt = None

    def check(self) -> float | None:
        """Seconds from one run to the next, None for one run.

        Raises `UsageProblemError` where options contradict one another.
        """
        # The scheduler takes a moment to load, which a help text need not wait for.
        from tidelog.retention.scheduling import parse_interval

        if self.topics and self.pattern is not None:
            raise UsageProblemError("Topics are named or matched, not both: give --topic or --pattern.")
        chosen = self.topics or self.pattern is not None
        if chosen and self.only and set(self.only) == {MaintenancePart.OFFSETS}:
            raise UsageProblemError(
                "--only offsets looks after the groups' own tables, not after topics: leave out --topic and --pattern."
            )
        if self.every is not None and self.now is not None:
            raise UsageProblemError("--now makes time stand still, and --every goes on with it: give one of them.")
        for option, given in (("--metrics", self.metrics), ("--otlp", self.otlp)):
            if given is not None and self.every is None:
                raise UsageProblemError(f"{option} is for a process that goes on: give --every, too.")
        try:
            every_s = None if self.every is None else parse_interval(self.every)
            re.compile(self.pattern or "")
        except ValueError as e:
            raise UsageProblemError(f"--every: {e}") from e
        except re.error as e:
            raise UsageProblemError(f"--pattern: {self.pattern!r} is no regular expression ({e}).") from e
        return every_s
