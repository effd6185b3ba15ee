"""The options that ingest and export share, and the rules for them that need no Spark."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from tidelog.commands.failures import FAILED, INTERRUPTED, WRONG_USAGE, UsageProblemError
from tidelog.commands.terminal import note
from tidelog.jobs.transfer.report import Place, Transferred, batch_in_words
from tidelog.log.base.typed_values import listed
from tidelog.retention.scheduling import parse_interval

WHEN = "When it runs"
SHAPE = "Which rows and columns"
MORE = "More"

EXIT_CODES = (
    f"Exit codes: 0 done; {FAILED} failed; {WRONG_USAGE} wrong usage; {INTERRUPTED} interrupted by Ctrl-C (143 by"
    " SIGTERM)."
)

_RUN = re.compile(r"(.+):(\d{1,18})")


# When a job runs.
Mode = Literal["once", "available-now", "stream"]


@dataclass(frozen=True)
class Run:
    """A batch's own name and number, so that it counts once."""

    name: str
    number: int


@dataclass(frozen=True)
class When:
    """When a job runs. `checkpoint` is "" in a batch; `interval_ms` is None for as fast as it goes."""

    mode: Mode
    checkpoint: str
    interval_ms: int | None
    run: Run | None

    @property
    def streaming(self) -> bool:
        """Whether the job is a streaming query."""
        return self.mode != "once"


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """The options that ingest and export share."""

    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="KEY=VALUE",
            help="An option of the other system's connector, as Spark has it. Repeatable.",
        ),
    ] = None
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SQL",
            help="A column to take: a name, or 'EXPRESSION AS NAME'. Repeatable; all unless given.",
            rich_help_panel=SHAPE,
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Which rows to take, such as \"country = 'NO'\".", rich_help_panel=SHAPE),
    ] = None
    once: Annotated[
        bool, typer.Option("--once", help="One batch of what is there now (the default).", rich_help_panel=WHEN)
    ] = False
    available_now: Annotated[
        bool,
        typer.Option(
            "--available-now",
            help="What came since the last run with this --checkpoint, then end: for cron.",
            rich_help_panel=WHEN,
        ),
    ] = False
    stream: Annotated[bool, typer.Option("--stream", help="Go on until it is stopped.", rich_help_panel=WHEN)] = False
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --stream: how often to look for more, such as 10s, 5m or 1h; as fast as it goes unless given.",
            rich_help_panel=WHEN,
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where --available-now and --stream keep how far they are: a folder of this job's own. With the same"
            " one the job goes on where it was, even after it was killed.",
            rich_help_panel=WHEN,
        ),
    ] = None
    run: Annotated[
        str | None,
        typer.Option(
            metavar="NAME:NUMBER",
            help="With --once: what was written under this name with this number, or a higher one, is not written"
            " again. For schedulers that repeat a run: the number is the run's time in seconds, say.",
            rich_help_panel=WHEN,
        ),
    ] = None
    tidelog_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of format('tidelog'), as docs/spark.md lists them. Repeatable.",
            rich_help_panel=MORE,
        ),
    ] = None
    packages: Annotated[
        str | None,
        typer.Option(
            metavar="COORDINATES",
            help="Connectors to fetch from Maven, with commas between them; spark-submit has the same option.",
            rich_help_panel=MORE,
        ),
    ] = None
    quiet: Annotated[
        bool,
        typer.Option("-q", "--quiet", help="No word on stderr about each batch of a stream.", rich_help_panel=MORE),
    ] = False

    @property
    def package_list(self) -> tuple[str, ...]:
        """Maven coordinates of connectors."""
        return tuple(listed(self.packages or ""))

    def tell(self, records: int, moved: Mapping[Place, Transferred]) -> None:
        """Say on stderr what a batch of a stream moved, unless that is not wanted."""
        if not self.quiet:
            note(batch_in_words(records, moved))

    def when(self) -> When:
        """When the job runs. Raises `UsageProblemError`."""
        ways: dict[Mode, bool] = {"once": self.once, "available-now": self.available_now, "stream": self.stream}
        asked = [mode for mode, on in ways.items() if on]
        if len(asked) > 1:
            raise UsageProblemError(
                f"Options {' and '.join(f'--{mode}' for mode in asked)} exclude each other: a job runs in one way."
                " Keep one."
            )
        mode: Mode = asked[0] if asked else "once"
        if self.every is not None and mode != "stream":
            raise UsageProblemError(
                "--every says how often --stream looks for more. Add --stream, or leave --every out."
            )
        if mode == "once" and self.checkpoint is not None:
            raise UsageProblemError(
                "--checkpoint keeps how far a stream is, and a batch is none: it takes everything each time. Add"
                " --available-now to take only what came since the last run, or --stream, or leave --checkpoint out."
            )
        if mode != "once" and not (self.checkpoint or "").strip():
            raise UsageProblemError(
                f"--{mode} needs --checkpoint: without it, a job that is started again begins from the start and"
                " repeats everything. Give a folder of this job's own, such as --checkpoint ./checkpoints/orders."
            )
        if mode != "once" and self.run is not None:
            raise UsageProblemError("--run marks a batch; a stream's checkpoint does that by itself. Leave --run out.")
        return When(
            mode, self.checkpoint or "", None if self.every is None else interval_ms(self.every), parse_run(self.run)
        )


def interval_ms(text: str) -> int:
    """`10s` -> 10000; ms, s, m, h or d. Raises `UsageProblemError`."""
    try:
        return round(1000 * parse_interval(text.lower()))
    except ValueError as e:
        raise UsageProblemError(f"--every: {e}") from e


def parse_run(text: str | None) -> Run | None:
    """`orders:20261121` as a name and a number. Raises `UsageProblemError`."""
    if text is None:
        return None
    match = _RUN.fullmatch(text.strip())
    if match is None:
        raise UsageProblemError(
            f"--run {text!r} is not of the form NAME:NUMBER: the number grows from run to run, so that a repeat"
            " differs from a new run. Example: --run orders:1795219200"
        )
    return Run(match.group(1), int(match.group(2)))


def with_default(options: Mapping[str, str], name: str, value: str, *instead: str) -> dict[str, str]:
    """The options with one more, unless it or one of `instead` is given; names are case-insensitive."""
    given = {key.lower() for key in options}
    return dict(options) if given & {name.lower(), *(n.lower() for n in instead)} else {**options, name: value}


def quoted(name: str) -> str:
    """A column's name for SQL."""
    return "`" + name.replace("`", "``") + "`"


def expression(text: str, columns: Iterable[str]) -> str:
    """SQL for `text`: a column's name as it stands (`order id`), else an expression."""
    return quoted(text) if text in columns else text
