"""The result of trying a store, as people read it."""

from typing import TYPE_CHECKING

from rich.text import Text

from tidelog.commands.terminal import console, number, say, table

if TYPE_CHECKING:
    from tidelog.check.store import StoreReport

_COLOURS = {"holds": "bold green", "warning": "bold yellow", "fails": "bold red"}


def print_store(report: "StoreReport") -> None:
    """Each trial, how long calls took, and the verdict."""
    out = console()
    say(Text.assemble((report.uri, "bold"), f"  {report.place}"))
    for trial in report.trials:
        verdict = trial.verdict.value
        say(Text.assemble((f"{verdict:7}", _COLOURS[verdict]), f"  {trial.demand}  ", (trial.seen, "dim")))
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
