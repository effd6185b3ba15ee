"""Carrying maintenance out for a command or a job: once or for ever, and saying what it did."""

import json
from typing import TYPE_CHECKING

import typer

from tidelog.commands.failures import FAILED, complain
from tidelog.commands.maintain_options import Wanted
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, say, table
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.pending_offsets import LoggedOffsets
from tidelog.groups.store.upkeep import GroupsAndTransactions
from tidelog.log.base.errors import TidelogError
from tidelog.retention.maintenance import maintain
from tidelog.retention.report import Report
from tidelog.retention.scheduling import run_every
from tidelog.transactions.upkeep import TransactionUpkeep

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.retention.compaction.run import Compactor
    from tidelog.retention.rewrites.executors import Executor


def carry_out(
    call: Session,
    lake: "Lake",
    wanted: Wanted,
    executor: "Executor | None" = None,
    compactor: "Compactor | None" = None,
) -> None:
    """Maintain the lake as wanted and print each run's report.

    One run raises `typer.Exit` with the code of a failure when a part failed. A loop goes on whatever fails, and ends
    when it is interrupted.
    """

    groups = GroupLog(lake)
    transactions = TransactionUpkeep(lake, LoggedOffsets(groups))

    def once() -> Report:
        report = maintain(
            lake,
            only=[part.value for part in wanted.parts],
            topics=wanted.topics,
            pattern=wanted.pattern,
            now_ms=wanted.now_ms,
            dry_run=wanted.dry_run,
            executor=executor,
            compactor=compactor,
            groups=GroupsAndTransactions(groups, transactions),
            needed=transactions.needed_files,
        )
        print_report(report, as_json=call.as_json, one_line=wanted.every_s is not None)
        return report

    def again() -> None:
        try:
            once()
        except TidelogError as e:  # the store is away, say: the next run comes
            complain(e, debug=call.debug, as_json=call.as_json)

    if wanted.every_s is not None:
        run_every(wanted.every_s, again)
    elif once().failed:
        raise typer.Exit(FAILED)


def print_report(report: Report, *, as_json: bool, one_line: bool = False) -> None:
    """Print a run's report: a table, or a JSON document, `one_line` for a stream of them."""
    if as_json and one_line:
        typer.echo(json.dumps(report.to_json(), ensure_ascii=False))
    elif as_json:
        print_json(report.to_json())
    else:
        _print_text(report)


def _print_text(report: Report) -> None:
    rows = report.rows()
    what = "would do" if report.dry_run else "did"
    say(f"{report.lake}  run {report.run_id} {what}:" if rows else f"{report.lake}  nothing to look after")
    if rows:
        console().print(table(["topic", "part", "what"], rows))
