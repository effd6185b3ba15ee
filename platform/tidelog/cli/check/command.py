"""`tidelog check`: the invariants of a lake, and their repair."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.check import views
from tidelog.commands.failures import CHECK_FOUND_ERRORS, UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, print_json, size

if TYPE_CHECKING:
    from tidelog.check.lake import OnProgress, Progress
    from tidelog.check.report import Report
    from tidelog.log.storage import Storage
    from tidelog.retention.giving_up import GivenUp


def check(
    call: Session,
    topics: Annotated[list[str] | None, typer.Argument(metavar="TOPIC", help="Only these topics.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Read every record, too.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Say how to mend what can be mended; changes nothing without --execute.")
    ] = False,
    execute: Annotated[bool, typer.Option("--execute", help="With --repair: do it.")] = False,
    give_up: Annotated[
        bool,
        typer.Option(
            "--give-up",
            help="With --repair: give up the records of lost segments, so that readers get past them. With --deep, also"
            " of segments that are there and can't be read.",
        ),
    ] = False,
    tried: Annotated[
        str | None,
        typer.Option("--store", metavar="ADDRESS", help="Try whether a lake can be kept there, instead of a lake."),
    ] = None,
) -> None:
    """Check a lake's invariants: no offset twice, no hole, no lost segment. Runs while others write.

    The exit code is 3 when an error is found (with --repair: when one remains). Warnings and notes leave it at 0.
    A lake that does not open can be checked, too. With --store an address is tried, before there is a lake: writing,
    creating by many at once, listing, deleting, and how long each takes. It leaves nothing behind; the exit code is 3
    when no lake can be kept there.
    """
    if tried is not None:
        if topics or deep or repair or execute or give_up:
            raise UsageProblemError(
                "--store tries an address, not a lake's topics: leave out topics and other options."
            )
        _try_store(call, tried)
        return
    if execute and not repair:
        raise UsageProblemError("--execute goes with --repair: a check alone changes nothing.")
    if give_up and not repair:
        raise UsageProblemError("--give-up goes with --repair: a check alone changes nothing.")
    if deep and repair and not give_up:
        raise UsageProblemError("--repair looks at no records: leave out --deep, and check with --deep afterwards.")
    address = call.named_lake()
    # The log and Arrow: heavy, and not needed for --help.
    from tidelog.check.lake import Severity, check_lake
    from tidelog.log.storage import open_storage

    storage = open_storage(address, call.store)
    if repair:
        report = _repaired(call, storage, topics or None, deep=deep, execute=execute, giving_up=give_up)
    else:
        with _progress_bar(deep) as progress:
            report = check_lake(storage, topics or None, deep, progress=progress)
        if call.as_json:
            print_json(report.to_dict())
        else:
            views.print_report(report)
    if report.of(Severity.ERROR):
        raise typer.Exit(CHECK_FOUND_ERRORS)


def _repaired(
    call: Session, storage: "Storage", topics: list[str] | None, *, deep: bool, execute: bool, giving_up: bool
) -> "Report":
    """The lake's state after a repair, which is printed."""
    # As for the check itself.
    from tidelog.check.lake import check_lake
    from tidelog.check.lake import repair as mend

    mended = mend(storage, topics, execute)
    given_up = _given_up(call, storage, mended.report, deep=deep, execute=execute) if giving_up else []
    told = {(one.topic, one.path) for one in given_up}
    left = tuple(r for r in mended.refusals if (r.topic, r.where) not in told)
    report = check_lake(storage, topics, deep) if any(one.done for one in given_up) else mended.report
    mended = replace(mended, refusals=left, report=report)
    if call.as_json:
        print_json(mended.to_dict() | ({"given_up": [one.to_dict() for one in given_up]} if giving_up else {}))
    else:
        views.print_repair(mended, given_up, deep=deep)
    return report


def _given_up(call: Session, storage: "Storage", report: "Report", *, deep: bool, execute: bool) -> list["GivenUp"]:
    """The lost segments that the report names: given up with `execute`, else as they would be."""
    # As for the check itself.
    from tidelog.check.lake import check_lake
    from tidelog.check.report import LOST_SEGMENT
    from tidelog.retention.giving_up import give_up

    if deep:
        with _progress_bar(deep) as progress:
            report = check_lake(storage, [summary.topic for summary in report.topics], deep, progress=progress)
    lost: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.kind in LOST_SEGMENT and not finding.topic.startswith("__"):
            lost.setdefault(finding.topic, []).append(finding.where)
    if not lost:
        return []
    with call.open_lake() as lake:
        return [one for topic, paths in lost.items() for one in give_up(lake, topic, paths, execute=execute)]


def _try_store(call: Session, address: str) -> None:
    # Arrow and the log take a quarter of a second to load, which a help text need not wait for.
    from tidelog.check.store import check_store
    from tidelog.log.base.clock import SystemClock, SystemIds
    from tidelog.log.storage import open_storage

    report = check_store(open_storage(address, call.store), SystemClock(), SystemIds())
    if call.as_json:
        print_json(report.to_dict())
    else:
        views.print_store(report)
    if not report.fit:
        raise typer.Exit(CHECK_FOUND_ERRORS)


@contextmanager
def _progress_bar(deep: bool) -> "Iterator[OnProgress | None]":
    """A bar on stderr for a person who waits; it is gone when the check is done."""
    out = console(stderr=True)
    if not deep or not out.is_terminal:
        yield None
        return
    from rich.progress import Progress as Bar  # only here

    with Bar(console=out, transient=True) as bar:
        task = bar.add_task("")

        def show(now: "Progress") -> None:
            what = f"{now.topic}: {now.segments} of {now.of_segments} segments, {size(now.bytes)}"
            bar.update(task, description=what, completed=now.bytes, total=now.of_bytes)

        yield show
