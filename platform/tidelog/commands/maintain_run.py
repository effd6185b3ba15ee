"""`tidelog maintain`, as a command or a job: it maintains a lake, once or at intervals, and prints what it did."""

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import typer

from tidelog.commands.failures import FAILED, complain
from tidelog.commands.maintain_options import MaintainOptions, MaintenancePart
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, note, print_json, say, table
from tidelog.operations.maintenance import LakeMaintenance, RunCounts
from tidelog.operations.metric_families import MetricRow, counter, gauge, read_rows
from tidelog.retention.report import MaintenanceReport
from tidelog.retention.scheduling import run_every
from tidelog.server.process.logs import logging_lines
from tidelog.server.process.serving import metrics_served

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.retention.compaction.run import Compactor
    from tidelog.retention.rewrites.executors import Executor


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
    due: Callable[[], bool] = lambda: True,
    tell: Callable[[MaintenanceReport], None] | None = None,
) -> None:
    """Maintain the lake and print each run's report. `parts`: those of a call without `--only`.

    `on_spark`: makes what reads and writes a lake's segments in place of this process. `due`: whether a run of a loop
    is to take place. `tell`: takes reports in place of printing them. One run raises `typer.Exit` with the code of a
    failure when a part failed. A loop goes on whatever fails, and ends when it is interrupted.
    """
    every_s = asked.check()
    with call.open_lake() as lake, ExitStack() as ends:
        counts = RunCounts(lake.clock)
        if every_s is not None and tell is None:
            ends.enter_context(logging_lines(call.log_format, call.log_level))
        if asked.metrics is not None:
            _serve(asked.metrics, lake, counts, ends)
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
            if tell is None:
                print_report(report, as_json=call.as_json, one_line=every_s is not None)
            else:
                tell(report)
            return report

        def again() -> None:
            if not due():
                return
            error = counts.round(once)
            if error is not None:  # the store is away, say: the next run comes
                complain(error, debug=call.debug, as_json=call.as_json)

        if every_s is not None:
            run_every(every_s, again)
        elif once().failed:
            raise typer.Exit(FAILED)


def _serve(at: str, lake: "Lake", counts: RunCounts, ends: ExitStack) -> None:
    """Serve the loop's metrics until `ends`."""
    served = ends.enter_context(metrics_served(at, lake, lambda: read_rows(_METRICS, counts)))
    note(f"metrics at http://{served}/metrics")


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
