"""`tidelog check`: the invariants of a lake, and their repair."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tidelog.commands.failures import CHECK_FOUND_ERRORS, UsageProblemError
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, number, print_json, say, size, table
from tidelog.commands.views import counted

if TYPE_CHECKING:
    from tidelog.check.lake import Finding, OnProgress, Progress, Refusal, Repair, Step
    from tidelog.check.report import Report
    from tidelog.check.store import StoreReport
    from tidelog.log.storage import Storage
    from tidelog.retention.lost_segments import GivenUp

_COLOURS = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}
_VERDICT_COLOURS = {"holds": "bold green", "warning": "bold yellow", "fails": "bold red"}


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
    races: Annotated[
        int,
        typer.Option(
            "--races",
            min=1,
            max=1_000_000,
            metavar="NAMES",
            help="With --store: how many objects eight writers want at once, through all of the store's nodes.",
        ),
    ] = 20,
) -> None:
    """Check a lake's invariants: no offset twice, no hole, no lost segment. Runs while others write.

    The exit code is 3 when an error is found (with --repair: when one remains). Warnings and notes leave it at 0.
    A lake that does not open can be checked, too. With --store an address is tried, before there is a lake: writing,
    creating by many at once, listing, deleting, and how long each takes. Of a store whose nodes lake.s3.endpoint lists,
    writers race through all of them, and each is asked what it has. It leaves nothing behind; the exit code is 3 when
    no lake can be kept there.
    """
    if tried is not None:
        if topics or deep or repair or execute or give_up:
            raise UsageProblemError(
                "--store tries an address, not a lake's topics: leave out topics and other options."
            )
        _try_store(call, tried, races)
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
            print_report(report)
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
        print_repair(mended, given_up, deep=deep)
    return report


def _given_up(call: Session, storage: "Storage", report: "Report", *, deep: bool, execute: bool) -> list["GivenUp"]:
    """The lost segments that the report names: given up with `execute`, else as they would be."""
    # As for the check itself.
    from tidelog.check.lake import check_lake
    from tidelog.check.report import LOST_SEGMENT
    from tidelog.retention.lost_segments import give_up

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


def _try_store(call: Session, address: str, races: int) -> None:
    # Arrow and the log take a quarter of a second to load, which a help text need not wait for.
    from tidelog.check.store import check_store
    from tidelog.log.base.clock import SystemClock, SystemIds
    from tidelog.log.storage import open_storage

    report = check_store(open_storage(address, call.store), SystemClock(), SystemIds(), races)
    if call.as_json:
        print_json(report.to_dict())
    else:
        print_store(report)
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


def print_report(report: "Report") -> None:
    """What was looked at, what was found, and the verdict."""
    out = console()
    read = "every record read" if report.deep else "logs and files; --deep reads the records, too"
    say(Text.assemble((report.uri, "bold"), f"  {counted(len(report.topics), 'topic')}, ", (read, "dim")))
    if report.topics:
        out.print()
        out.print(_looked_at(report))
    for finding in report.findings:
        out.print()
        _print_finding(finding)
    out.print()
    _print_verdict(report)


def print_repair(repair: "Repair", given_up: Sequence["GivenUp"], *, deep: bool) -> None:
    """The steps, the segments that are given up, what is left alone, and the verdict on the lake afterwards."""
    out = console()
    say(Text(repair.uri, "bold"))
    for step in repair.steps:
        _print_step(step, "done" if repair.executed else "would")
    for step in repair.skipped:
        _print_step(step, "skipped")
    for one in given_up:
        _print_given_up(one, "done" if one.done else "skipped" if repair.executed else "would")
    for refusal in repair.refusals:
        _print_refusal(refusal)
    if not repair.steps and not repair.skipped and not given_up:
        say("Nothing to mend.")
    for finding in repair.report.findings:
        out.print()
        _print_finding(finding)
    out.print()
    _print_verdict(repair.report, "Afterwards: " if repair.executed else "Afterwards it would be: ")
    if (repair.steps or given_up) and not repair.executed:
        asked = " ".join(["--repair", *["--give-up"] * bool(given_up), *["--deep"] * deep])
        say(f"Nothing was changed. Do it with: tidelog check {asked} --execute")


def _looked_at(report: "Report") -> object:
    columns = ["topic", ">entries", ">checkpoint", ">partitions", ">segments", ">size"]
    rows: Iterable[list[str]] = (
        [
            topic.topic,
            number(topic.entries),
            "-" if topic.checkpoint is None else str(topic.checkpoint),
            number(topic.partitions),
            number(topic.segments),
            size(topic.bytes),
            *([number(topic.records)] if report.deep else []),
        ]
        for topic in report.topics
    )
    return table([*columns, *([">records"] if report.deep else [])], rows)


def _print_finding(finding: "Finding") -> None:
    severity = finding.severity.value
    where = ", ".join(part for part in (finding.topic, finding.where) if part)
    say(Text.assemble((severity, _COLOURS[severity]), f"  {where}  ", (finding.kind.value, "dim")))
    say(f"  {finding.what}")
    say(f"  -> {finding.todo}")


def _print_step(step: "Step", state: str) -> None:
    console().print()
    say(Text.assemble((state, "bold"), f"  {_place(step.topic, step.where)}"))
    say(f"  {step.what}")
    if step.risk:
        say(Text.assemble("  ", ("risk: ", "bold yellow"), step.risk))


def _print_given_up(gap: "GivenUp", state: str) -> None:
    held = "its records" if gap.records is None else counted(gap.records, "record")
    console().print()
    say(Text.assemble((state, "bold"), f"  {_place(gap.topic, gap.path)}"))
    say(f"  Give up offsets {gap.base_offset} to {gap.end} of partition {gap.partition} ({held}). {gap.why}")
    say("  An empty segment takes its place, over which readers pass; no other record goes.")


def _print_refusal(refusal: "Refusal") -> None:
    console().print()
    say(Text.assemble(("left alone", "bold yellow"), f"  {_place(refusal.topic, refusal.where)}"))
    say(f"  {refusal.why}")


def _place(topic: str, where: str) -> str:
    return f"{topic}, {where}" if topic else where


def _print_verdict(report: "Report", opening: str = "") -> None:
    by_severity = [f.severity.value for f in report.findings]
    errors, warnings, infos = (by_severity.count(s) for s in ("error", "warning", "info"))
    notes = counted(infos, "note")
    if errors or warnings:
        words = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}, {notes}"
    else:
        words = f"green: no errors, no warnings, {notes}" if infos else "green: no errors, no warnings"
    colour = "bold red" if errors else "bold yellow" if warnings else "bold green"
    say(Text.assemble(opening, (words, colour)))


def print_store(report: "StoreReport") -> None:
    """Each trial, how long calls took, and the verdict."""
    out = console()
    say(Text.assemble((report.uri, "bold"), f"  {report.place}"))
    for trial in report.trials:
        verdict = trial.verdict.value
        say(Text.assemble((f"{verdict:7}", _VERDICT_COLOURS[verdict]), f"  {trial.demand}  ", (trial.seen, "dim")))
    out.print()
    rows = (
        [kind, number(one.calls), f"{one.median_ms:.1f}", f"{one.most_ms:.1f}"]
        for kind, one in report.latencies.items()
    )
    out.print(table(["call", ">calls", ">median ms", ">most ms"], rows))
    out.print()
    for path in report.left:
        say(Text.assemble(("left behind", "bold yellow"), f"  {path} could not be removed; delete it by hand."))
    if report.fit:
        say(Text("fit: nothing speaks against a lake there", "bold green"))
    else:
        say(Text("unfit: no lake can be kept there. Use another store, or a newer version of this one.", "bold red"))
