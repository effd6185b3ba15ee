"""Two runs side by side: what became slower or larger, beyond the noise that the spread of the rounds shows.

A figure of tidelog's regressed when three things hold:
- every round of the new run is worse than every round of the old one;
- the median is worse by more than a tenth;
- and where Kafka (else Delta) was measured beside it in both runs, the same is true of the rounds' ratios to it: a
  machine in a worse mood slows both down.
One round tells nothing of its noise, so such a figure is not judged, except for bytes on disk: they don't depend on the
machine. The peers' own figures are shown, and never a regression.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measures import Measure
from results import Group, Results, family_of, name, ratios
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from table import times, with_spread

TENTH = 0.1
_MACHINE = ("cpu", "cores", "memory_gib", "file_system", "python", "java")
_COLORS = {"regression": "red", "better": "green"}


@dataclass(frozen=True)
class Change:
    """One figure in both runs. `verdict` is "regression", "better", "same" or "one round"; `beside` explains it."""

    what: str
    old: Measure
    new: Measure
    verdict: str
    beside: str = ""

    @property
    def by(self) -> float:
        """The new median by the old one, less 1: 0.1 is a tenth more."""
        return self.new.median / self.old.median - 1 if self.old.median else 0.0


@dataclass(frozen=True)
class Comparison:
    """All of it. `missing`: what only the old run has; `warnings`: why the two may not be comparable."""

    changes: tuple[Change, ...]
    missing: tuple[str, ...]
    added: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def regressions(self) -> list[Change]:
        """What makes the exit code 1."""
        return [change for change in self.changes if change.verdict == "regression"]


def compared(old: Results, new: Results) -> Comparison:
    """Case by case. ValueError: the two have no figure in common."""
    before = {one.key: (group, one) for group in old.groups() for one in group.members}
    after = {one.key: (group, one) for group in new.groups() for one in group.members}
    changes = tuple(_change(*before[key], *after[key]) for key in before if key in after)
    if not changes:
        raise ValueError("The two files have no figure in common: there is nothing to compare.")
    missing, added = (
        tuple(_what(*own[key]) for key in own if key not in other) for own, other in ((before, after), (after, before))
    )
    return Comparison(changes, missing, added, tuple(_warnings(old, new)))


def main(old: Path, new: Path, console: Console | None = None) -> int:
    """Print the comparison; the exit code is 1 on a regression, 2 when the files can't be compared."""
    console = console or Console()
    try:
        comparison = compared(Results.read(old), Results.read(new))
    except ValueError as error:
        console.print(escape(str(error)), highlight=False)
        return 2
    for warning in comparison.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)
    console.print(_table(comparison.changes))
    for words, listed in (("only in the old run", comparison.missing), ("only in the new run", comparison.added)):
        if listed:
            console.print(f"{words}: {escape('; '.join(listed))}", highlight=False)
    number = len(comparison.regressions)
    console.print(f"{number or 'no'} regression{'' if number == 1 else 's'} in {len(comparison.changes)} figures")
    return 1 if number else 0


def _change(old_group: Group, old: Measure, new_group: Group, new: Measure) -> Change:
    what, verdict = _what(new_group, new), moved(old.rounds, new.rounds, new.better)
    if verdict == "one round" and new.unit == "B":
        verdict = _by_median(old.rounds, new.rounds, new.better)
    if family_of(new.system) != "tidelog":
        return Change(what, old, new, verdict if verdict == "one round" else "same")
    beside = _beside(old_group, old, new_group, new) if verdict == "regression" else None
    if beside is None:
        return Change(what, old, new, verdict)
    before, now = ratios(old, beside[0]), ratios(new, beside[1])
    told = f"{times(statistics.median(before))} {name(beside[1].system)}, now {times(statistics.median(now))}"
    found = (moved if min(len(before), len(now)) > 1 else _by_median)(before, now, new.better)
    return Change(what, old, new, "regression" if found == "regression" else "same", told)


def _beside(old_group: Group, old: Measure, new_group: Group, new: Measure) -> tuple[Measure, Measure] | None:
    """The peer that was measured beside a figure in both runs."""
    for family in ("kafka", "delta"):
        before, now = old_group.peer(old, family), new_group.peer(new, family)
        if before is not None and now is not None and before.system == now.system:
            return before, now
    return None


def moved(old: Sequence[float], new: Sequence[float], better: str) -> str:
    """ "regression" or "better" when no round of one reaches any of the other and the medians differ by a tenth."""
    if min(len(old), len(new)) < 2:
        return "one round"
    apart = max(new) < min(old) or min(new) > max(old)
    return _by_median(old, new, better) if apart else "same"


def _by_median(old: Sequence[float], new: Sequence[float], better: str) -> str:
    before, now = statistics.median(old), statistics.median(new)
    more, less = now > before * (1 + TENTH), now < before * (1 - TENTH)
    worse, good = (less, more) if better == "higher" else (more, less)
    return "regression" if worse else "better" if good else "same"


def _table(changes: Sequence[Change]) -> Table:
    table = Table()
    for heading, justify in (("what", "left"), ("old", "right"), ("new", "right"), ("change", "right"), ("", "left")):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for change in changes:
        color = _COLORS.get(change.verdict, "dim")
        told = f"{change.verdict} ({change.beside})" if change.beside else change.verdict
        table.add_row(
            escape(change.what),
            *map(with_spread, (change.old, change.new)),
            f"{change.by:+.1%}",
            f"[{color}]{told}[/]",
        )
    return table


def _what(group: Group, one: Measure) -> str:
    at = f", at {one.at:,.0f} {one.axis}" if one.at is not None else ""
    return f"{', '.join(filter(None, (group.title, group.metric)))}{at}: {name(one.system)}"


def _warnings(old: Results, new: Results) -> list[str]:
    found = []
    for key in _MACHINE:
        before, now = old.machine.get(key), new.machine.get(key)
        if before != now:
            found.append(f"other machines: {key} was {before}, is {now}")
    if bool(old.settings.get("quick")) != bool(new.settings.get("quick")):
        found.append("one of the runs was quick: its cases are smaller")
    versions, now_versions = _versions(old), _versions(new)
    changed = [
        package
        for package in sorted({*versions, *now_versions} - {"tidelog"})
        if versions.get(package) != now_versions.get(package)
    ]
    return [*found, *(f"other versions: {one} was {versions.get(one)}, is {now_versions.get(one)}" for one in changed)]


def _versions(results: Results) -> Mapping[str, Any]:
    found: Mapping[str, Any] = results.machine.get("versions", {})
    return found
