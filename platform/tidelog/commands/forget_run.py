"""`tidelog forget`, as a command or a job: it erases keys and prints which files went and which wait."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from tidelog.commands.failures import FAILED, STILL_WAITING
from tidelog.commands.forget_options import ForgetOptions
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, number, print_json, say, size, table
from tidelog.commands.views import counted
from tidelog.log.delta.timestamps import format_utc_ms
from tidelog.operations.maintenance import erase
from tidelog.retention.key_erasure import KeyErasure

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
        erasure = erase(lake, asked.topics, keys, executor=executor, dry_run=asked.dry_run, wait=asked.wait)
    if call.as_json:
        topics = [topic.to_json() for topic in erasure.topics]
        print_json({"lake": lake.uri, "run": erasure.run_id, "done": erasure.done, "topics": topics})
    else:
        for topic in erasure.topics:
            _print(topic)
    if erasure.failed:
        raise typer.Exit(FAILED)
    if erasure.waits:
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
