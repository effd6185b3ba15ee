"""What a check found, what a repair does, and whether a store is fit for a lake, as people read it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from tidelog.commands.terminal import console, number, say, size, table
from tidelog.commands.views import counted

if TYPE_CHECKING:
    from tidelog.check.lake import Finding, Refusal, Repair, Report, Step
    from tidelog.check.store import StoreReport
    from tidelog.retention.giving_up import GivenUp

_COLOURS = {"error": "bold red", "warning": "bold yellow", "info": "bold blue"}


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


def _print_given_up(one: "GivenUp", state: str) -> None:
    held = "its records" if one.records is None else counted(one.records, "record")
    console().print()
    say(Text.assemble((state, "bold"), f"  {_place(one.topic, one.path)}"))
    say(f"  Give up offsets {one.base_offset} to {one.end} of partition {one.partition} ({held}). {one.why}")
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


_VERDICT_COLOURS = {"holds": "bold green", "warning": "bold yellow", "fails": "bold red"}


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
