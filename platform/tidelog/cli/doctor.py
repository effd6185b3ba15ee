"""`tidelog doctor`: one page for three in the morning."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from tidelog.commands.failures import CHECK_FOUND_ERRORS
from tidelog.commands.options import Session
from tidelog.commands.terminal import console, moment, print_json, say, size

# What the first line counts.
_COUNTED: Final = frozenset({"topics", "files", "groups", "brokers", "open_transactions"})
# Calls of the store whose time is shown.
_TIMED: Final = frozenset({"put", "get", "list", "put-if-absent"})

if TYPE_CHECKING:
    from tidelog.operations.health import LakeFacts
    from tidelog.operations.health_rules import Diagnosis
    from tidelog.retention.run_history import MaintenanceRun


def doctor(
    call: Session,
) -> None:
    """Look whether a lake is well: its store, clock, disk, topics, groups, transactions, brokers, and its upkeep.

    Says of each trouble what is wrong and what to do, and exits with 3 where one is an error. The store is tried in a
    folder of its own, which is removed; nothing else is changed.
    """
    # Heavy, and not needed for --help.
    from tidelog.connect.connectors.postgres.slots import slot_health
    from tidelog.log.base.clock import SystemClock, SystemIds
    from tidelog.log.lake import Lake
    from tidelog.log.storage import open_storage
    from tidelog.operations.health import gather
    from tidelog.operations.health_rules import Level, examined

    address = call.named_lake()
    facts = gather(
        address,
        lambda: open_storage(address, call.store),
        lambda store: Lake(address, False, options=call.store, storage=store),
        SystemClock(),
        SystemIds(),
        slots=slot_health,
    )
    diagnoses = examined(facts)
    if call.as_json:
        print_json({"lake": address, "findings": [asdict(diagnosis) for diagnosis in diagnoses], **_summary(facts)})
    else:
        _print(facts, diagnoses)
    if any(diagnosis.level is Level.ERROR for diagnosis in diagnoses):
        raise typer.Exit(CHECK_FOUND_ERRORS)


def _summary(facts: "LakeFacts") -> dict[str, int | float]:
    snapshot = facts.snapshot
    summary: dict[str, int | float] = {}
    if snapshot is not None:
        summary = {
            "topics": len(snapshot.topics),
            "files": sum(topic.files for topic in facts.topics.values()),
            "groups": len(snapshot.groups),
            "brokers": len(snapshot.cluster.live),
            "open_transactions": len(snapshot.open_transactions),
        }
    if (run := facts.waiting) is not None:
        summary |= {"waiting_files": run.waiting_files, "waiting_bytes": run.waiting_bytes}
        if run.waiting_until_ms is not None:
            summary["waiting_until_ms"] = run.waiting_until_ms
    if facts.kept_cuts:
        summary |= {"kept_cuts": len(facts.kept_cuts), "kept_cuts_bytes": facts.kept_bytes}
    if facts.space is not None:
        summary |= {"disk_free_bytes": facts.space.free, "disk_bytes": facts.space.total}
    return summary


def _waits(run: "MaintenanceRun") -> str:
    """How much waits, and until when: the end of a sentence."""
    until = "a job that reads them ends"
    if run.waiting_until_ms is not None:
        until = moment(run.waiting_until_ms)
    return f" ({size(run.waiting_bytes)}), until {until}, by the next maintenance after that"


def _print(facts: "LakeFacts", diagnoses: "list[Diagnosis]") -> None:
    out = console()
    counts = [f"{name.replace('_', ' ')} {value:,}" for name, value in _summary(facts).items() if name in _COUNTED]
    if facts.space is not None:
        counts.append(f"{size(facts.space.free)} of {size(facts.space.total)} free")
    latencies = facts.store.latencies if facts.store is not None else {}
    counts += [f"{kind} {latency.median_ms:.1f} ms" for kind, latency in sorted(latencies.items()) if kind in _TIMED]
    say(f"{facts.uri}: {', '.join(counts) or 'nothing is known'}")
    if (run := facts.waiting) is not None:
        say(f"Files that left their topics wait to be deleted: {run.waiting_files:,}{_waits(run)}.")
    for name, held in sorted(facts.kept_cuts.items()):
        say(f"Cut {name} is kept, and {size(held)} of files stay for it.")
    for number, diagnosis in enumerate(diagnoses, 1):
        style = "bold red" if diagnosis.level.value == "error" else "yellow"
        head = Text.assemble("\n", (f"{number}. {diagnosis.level}", style), (f"  {diagnosis.rule}", "dim"))
        out.print(head, Text(diagnosis.what), Text(f"-> {diagnosis.do}"), sep="\n", highlight=False)
    if not diagnoses:
        say("All is well.")
