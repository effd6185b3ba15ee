"""`tidelog maintain`, as a command or a job: it maintains a lake, once or at intervals, and prints what it did."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import typer

from tidelog.commands.failures import JobFailedError, complain
from tidelog.commands.maintain_options import MaintainOptions, MaintenancePart
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, print_json, say, table
from tidelog.operations.maintenance import LakeMaintenance, RunCounts
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.retention.report import MaintenanceReport
from tidelog.retention.scheduling import run_every
from tidelog.server.process.serving import Service, serve
from tidelog.server.process.stopping import Stop

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.retention.compaction.run import Compactor
    from tidelog.retention.rewrites.executors import Executor

# How many failures of a run its error names; the report has all.
_TOLD: Final = 5
_METRICS: Final[tuple[MetricRow[RunCounts], ...]] = (
    counter(
        "tidelog_maintain_runs",
        "Runs of this process.",
        lambda counts: [({"outcome": outcome}, count) for outcome, count in counts.runs.items()],
    ),
    gauge("tidelog_maintain_failures", "What failed in its last run.", lambda counts: counts.failures),
    gauge("tidelog_maintain_last_run_seconds", "What its last run took.", lambda counts: counts.took_s),
    gauge("tidelog_maintain_running_seconds", "Since the run that goes on began.", lambda counts: counts.running_s),
    gauge("tidelog_maintain_idle_seconds", "Since its last run ended.", lambda counts: counts.idle_s),
)


def maintain_lake(
    call: Session,
    asked: MaintainOptions,
    parts: Sequence[MaintenancePart] = tuple(MaintenancePart),
    on_spark: "Callable[[Lake], tuple[Executor, Compactor]] | None" = None,
) -> None:
    """Maintain the lake and print each run's report. `parts`: those of a call without `--only`.

    `on_spark`: makes what reads and writes a lake's segments in place of this process. One run raises `JobFailedError`
    when a part failed. A loop goes on whatever fails, and ends when it is interrupted.
    """
    every_s = asked.check()

    def maintaining(lake: "Lake") -> Callable[[], MaintenanceReport]:
        executor, compactor = on_spark(lake) if on_spark else (None, None)
        maintenance = LakeMaintenance(lake, executor, compactor)

        def once() -> MaintenanceReport:
            report = maintenance.run(
                only=asked.only or parts,
                topics=asked.topics or None,
                pattern=asked.pattern,
                now_ms=asked.now,
                dry_run=asked.dry_run,
            )
            print_report(report, as_json=call.as_json, one_line=every_s is not None)
            return report

        return once

    if every_s is not None:
        serve(
            call,
            call.open_lake,
            lambda lake, _: MaintenanceRounds(call, RunCounts(lake.clock), every_s, maintaining(lake)),
            metrics=asked.metrics,
            otlp=asked.otlp,
        )
        return
    with call.open_lake() as lake:
        report = maintaining(lake)()
        if report.failed:
            raise JobFailedError(failures_in_words(report))


class MaintenanceRounds(Service):
    """Has a run take place once every `every_s` seconds, whatever fails. A run may be killed anywhere."""

    drains = False
    named = "maintenance"

    def __init__(self, call: Session, counts: RunCounts, every_s: float, once: Callable[[], MaintenanceReport]) -> None:
        self._call = call
        self._counts = counts
        self._every_s = every_s
        self._once = once

    def ready(self, metrics: str | None) -> None:
        """On stderr: reports go to stdout."""
        if metrics is not None:
            note(f"metrics at http://{metrics}/metrics")

    def run(self, stop: Stop) -> None:  # noqa: ARG002 - a signal ends the process
        """Rounds without an end."""
        run_every(self._every_s, self._round)

    def _round(self) -> None:
        error = self._counts.round(self._once)
        if error is not None:  # the store is away, say: the next run comes
            complain(error, debug=self._call.debug, as_json=self._call.as_json)

    def metrics(self) -> Iterator[MetricFamily]:
        """Of the runs."""
        return read_rows(_METRICS, self._counts)


def failures_in_words(report: MaintenanceReport) -> str:
    """What failed in a run, in one line: a scheduler shows, or mails, what is on stderr."""
    failures = report.failures()
    told = [
        f"{topic}{'' if failure.partition is None else f'-{failure.partition}'}, {failure.part}: {failure.message}"
        for topic, failure in failures[:_TOLD]
    ]
    more = f" … and {len(failures) - _TOLD} more." if len(failures) > _TOLD else ""
    parts = "A part" if len(failures) == 1 else f"{len(failures)} parts"
    return f"{parts} of maintenance failed. {' '.join(told)}{more} The rest is done; the next run tries this again."


def print_report(report: MaintenanceReport, *, as_json: bool, one_line: bool = False) -> None:
    """Print a run's report: a table, or a JSON document, `one_line` for a stream of them."""
    if as_json and one_line:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
    elif as_json:
        print_json(report.to_json())
    else:
        _print_text(report)


def _print_text(report: MaintenanceReport) -> None:
    rows = report.rows()
    what = "would do" if report.dry_run else "did"
    say(f"{report.lake}  run {report.run_id} {what}:" if rows else f"{report.lake}  nothing to look after")
    if rows:
        console().print(table(["topic", "part", "what"], [(row.topic, row.part, row.what) for row in rows]))
