"""`tidelog forget`, as a command or a job: it erases keys and prints which files went and which wait."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from tidelog.commands.failures import FAILED, STILL_WAITING
from tidelog.commands.forget_options import ForgetOptions
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, number, print_json, say, size, table
from tidelog.commands.views import counted
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.delta.timestamps import format_utc_ms
from tidelog.retention.key_erasure import KeyErasure, erase_keys
from tidelog.transactions.upkeep import TransactionUpkeep

if TYPE_CHECKING:
    from tidelog.log.lake import Lake
    from tidelog.retention.rewrites.executors import Executor


def forget_keys(call: Session, asked: ForgetOptions, executor_for: "Callable[[Lake], Executor] | None" = None) -> None:
    """Erase the keys from each topic and print the report.

    `executor_for`: makes what reads and writes the segments of a lake; None for this process. Raises `typer.Exit` when
    a partition failed, and with another code when files wait that may hold such records.
    """
    keys = asked.key_bytes()
    with call.open_lake() as lake:
        executor = executor_for(lake) if executor_for else None
        for topic in asked.topics:
            lake.topic(topic).state()  # refuses a missing topic before anything is changed
        run_id = lake.ids.new()
        transactions = TransactionUpkeep(lake, LoggedOffsets(GroupLog(lake)))
        reports = [
            erase_keys(
                lake,
                topic,
                keys,
                executor=executor,
                run_id=run_id,
                dry_run=asked.dry_run,
                wait=asked.wait,
                needed=transactions.needed_files,
                settle=transactions.complete_for,
            )
            for topic in asked.topics
        ]
    if call.as_json:
        done = all(report.done for report in reports)
        topics = [report.to_json() for report in reports]
        print_json({"lake": lake.uri, "run": run_id, "done": done, "topics": topics})
    else:
        for report in reports:
            _print(report)
    if any(report.failures for report in reports):
        raise typer.Exit(FAILED)
    if any(report.waiting for report in reports) and not asked.dry_run:
        raise typer.Exit(STILL_WAITING)


def _print(report: KeyErasure) -> None:
    would = "would leave" if report.dry_run else "left"
    told = f"{report.topic}: {counted(report.records, 'record')} {would}, of {counted(len(report.rewritten), 'file')}"
    if not report.dry_run:
        gone, waiting = counted(len(report.deleted), "file"), number(len(report.waiting))
        told += f"; deleted from storage: {gone}, waiting: {waiting}"
    say(told + ".")
    rows = [(d.path, size(d.size), "deleted", "") for d in report.deleted]
    rows += [(w.path, size(w.size), f"waits: {w.why}", _until(w.until_ms)) for w in report.waiting]
    if rows and not report.dry_run:
        console().print(table(["file", "size", "is", "until"], rows))
    for partition, why in sorted(report.failures.items()):
        say(f"Partition {partition} keeps its records: {why}")
    if report.waiting and not report.dry_run:
        say("Run this again, or 'tidelog maintain --only purge', when they may go; or give --wait.")


def _until(ms: int | None) -> str:
    return "" if ms is None else format_utc_ms(ms)
