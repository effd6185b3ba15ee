"""The table side by side: for a terminal, for docs/speed.md, a few lines for README.md, and as cells for the page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import machine
from measures import Measure
from results import FAMILIES, NAMES, Group, Results, family_of, name, ratio, standing, variant
from rich.console import Console
from rich.markup import escape
from rich.table import Table

PEERS = ("kafka", "delta")
# What a reader must know beyond the machine's own line.
_VERSIONS = {"delta-spark": "Delta", "kafka": "Kafka", "confluent-kafka": "confluent-kafka"}
_KEPT = (
    "[peers.json](../benchmarks/results/peers.json); with the growths and all plots on a page: "
    "[peers.html](../benchmarks/results/peers.html)"
)
# What README.md compares: differences that are no figures, and the lines of these names.
_DIFFERENCES = (
    ("what has to run", "nothing; a broker for Kafka's clients", "brokers", "nothing"),
    ("offsets, consumer groups, transactions over topics", "yes", "yes", "no"),
    ("SQL, pandas, time travel over the records", "yes", "after a copy", "yes"),
    ("clients", "Python, Spark; every language by a broker", "every language", "readers and writers of Delta"),
)
# {a line: what README.md calls it}
_SUMMARY = {
    "Spark batch write": "Spark batch write",
    "Spark batch read": "Spark batch read",
    "Spark streaming aggregation": "Spark streaming aggregation",
    "Python produce": "Python produce",
    "Python consume": "Python consume",
    "Broker produce, none": "Kafka's client over a broker: produce",
    "Broker consume": "Kafka's client over a broker: consume",
    "Broker latency, p50": "Kafka's client over a broker: latency, p50",
    "Bytes on disk, flights": "Bytes on disk, flights",
    "Micro-batch latency, Kafka fetch.max.wait.ms=10, p50": "Micro-batch latency, Kafka fetch.max.wait.ms=10, p50",
    "Client latency, p50": "Client latency, p50",
    "Small appends": "Small appends",
    "Open after 100,000 appends": "Open after 100,000 appends",
}
# The blocks of docs/speed.md that have cases of their own, by how the cases' names begin.
SECTIONS = {"peers-brokers": "broker ", "peers-core": "broker core ", "peers-streams": "streams "}
_WIDE = 200  # characters of the table in a file
_SHOWN = {"ahead": "[green]{}[/]", "behind": "[red]{}[/]", "even": "{}"}


@dataclass(frozen=True)
class Line:
    """One line: a figure of tidelog's (or of the others alone) and how it compares with each of them."""

    title: str
    what: str
    better: str
    own: Measure | None
    peers: dict[str, Measure | None]
    demand: str = ""
    ok: bool | None = None
    last_of_its_growth: bool = True

    @property
    def measures(self) -> dict[str, Measure | None]:
        """By family."""
        return {"tidelog": self.own, **self.peers}

    def against(self, family: str) -> tuple[str, str]:
        """(ratio as text, standing), both "" where one of the two has no figure."""
        peer = self.peers[family]
        if self.own is None or peer is None:
            return "", ""
        return times(ratio(self.own, peer)), standing(self.own, peer)


def lines(results: Results) -> list[Line]:
    """All lines, in the order of the run."""
    furthest = _furthest(results)
    found = []
    for group in results.groups():
        shared = group.any
        last = shared.at is None or shared.at == furthest.get((shared.case, shared.metric))
        for own, peers in _matched(group):
            text, ok = _demanded(results, own, peers)
            found.append(Line(group.title, _what(group, own, peers), shared.better, own, peers, text, ok, last))
    return found


def _furthest(results: Results) -> dict[tuple[str, str], float]:
    """The last point of each growth at which two systems have a figure; else the last one."""
    found: dict[tuple[str, str], tuple[bool, float]] = {}
    for group in results.groups():
        shared = group.any
        if shared.at is not None:
            key, here = (shared.case, shared.metric), (len(group.members) > 1, shared.at)
            found[key] = max(here, found.get(key, here))
    return {key: at for key, (_, at) in found.items()}


def _matched(group: Group) -> list[tuple[Measure | None, dict[str, Measure | None]]]:
    """Each of tidelog's with whom it is held against; then the others that this leaves, against tidelog's plainest."""
    owns = group.of("tidelog")
    found: list[tuple[Measure | None, dict[str, Measure | None]]] = [
        (own, {family: group.peer(own, family) for family in PEERS}) for own in owns
    ]
    shown = [id(peer) for _, peers in found for peer in peers.values()]
    plainest = min(owns, key=lambda one: len(variant(one.system)), default=None)
    for family in PEERS:
        left = [peer for peer in group.of(family) if id(peer) not in shown]
        found.extend((plainest, {**dict.fromkeys(PEERS), family: peer}) for peer in left)
    return found


def show(results: Results, console: Console | None = None) -> None:
    """Print every figure: medians, (least..greatest of the rounds), ratios, and what was demanded."""
    table = Table(title=setting(results), title_justify="left")
    headings = [
        "what",
        *(NAMES[family] for family in FAMILIES),
        *(f"to {NAMES[family]}" for family in PEERS),
        "must be",
    ]
    for number, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", justify="left" if number == 0 else "right")
    for line in lines(results):
        cells = [escape(f"{line.what} ({line.better} is better)")]
        cells += [with_spread(line.measures[family]) for family in FAMILIES]
        cells += [_SHOWN[how].format(text) if how else "" for text, how in map(line.against, PEERS)]
        mark = "" if line.ok is None else " [green]ok[/]" if line.ok else " [red]short[/]"
        table.add_row(*cells, f"{line.demand}{mark}")
    (console or _console()).print(table)


def _console() -> Console:
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=max(terminal.width, _WIDE))


def markdown(results: Results, figures: Sequence[tuple[str, str]] = ()) -> str:
    """The block of docs/speed.md; `figures` are (path, alternative text) of its plots. The growths are the page's.

    Cases that have a section of their own are in `section`.
    """
    own = tuple(SECTIONS.values())
    shown = [line for case, line in _of_tables(results) if not case.startswith(own)]
    found = _rows(shown, ("kafka", "delta"))
    found += ["", *sentences(results)]
    found += [f"\n![{text}]({path})" for path, text in figures]
    return "\n".join([*found, "", _footer(results, (line.own.case for line in shown if line.own))])


def section(results: Results, begins: str) -> str:
    """The block of docs/speed.md with the cases whose names begin so; "" where none was measured. Delta has none.

    A case is in the section whose beginning is the longest.
    """
    shown = [line for case, line in _of_tables(results) if _section_of(case) == begins]
    notes = [f"{case}: {note}." for case, note in results.settings.get("notes", {}).items()]
    noted = ["", *notes] if begins == SECTIONS["peers-core"] and notes else []
    footer = _footer(results, (line.own.case for line in shown if line.own))
    return "\n".join([*_rows(shown, ("kafka",)), *noted, "", footer]) if shown else ""


def _section_of(case: str) -> str:
    """How the names of the section's cases begin; "" where a case has none."""
    return max((begins for begins in SECTIONS.values() if case.startswith(begins)), key=len, default="")


def _of_tables(results: Results) -> list[tuple[str, Line]]:
    """(case, line) of tidelog's figures but the growths."""
    return [(line.own.case, line) for line in lines(results) if line.own is not None and line.own.at is None]


def _rows(shown: Sequence[Line], peers: Sequence[str]) -> list[str]:
    """A table of lines, against these peers."""
    names = [NAMES[family] for family in ("tidelog", *peers)]
    heads = ["", *names, *(f"to {NAMES[family]}" for family in peers)]
    found = [f"|{' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for line in shown:
        cells = [line.what, *(_median(line.measures[family]) for family in ("tidelog", *peers))]
        cells += [_bold(*line.against(family), _must(line) if family == "kafka" else "") for family in peers]
        found.append(f"| {' | '.join(cells)} |")
    return found


def _footer(results: Results, cases: Iterable[str]) -> str:
    named = list(cases)
    machines = " and ".join(map(_described, results.machines(named)))
    return f"Measured on {results.days(named)}: {machines}. All figures, each round's too: {_KEPT}."


def summary(results: Results) -> str:
    """README.md's table: differences in words, then a few lines of the full table, each with its best figure bold."""
    found = ["| | tidelog | Kafka | Delta alone |", "|---|---|---|---|"]
    found += [f"| {' | '.join(cells)} |" for cells in _DIFFERENCES]
    by_name = {line.what: line for line in lines(results)}
    shown = [(title, by_name[what]) for what, title in _SUMMARY.items() if what in by_name]
    found += [f"| {title} | {' | '.join(_best_bold(line))} |" for title, line in shown]
    return "\n".join([*found, "", f"Measured on {results.at[:10]}: {setting(results)}."])


def _best_bold(line: Line) -> list[str]:
    medians = [measure.median for measure in line.measures.values() if measure]
    best = max(medians) if line.better == "higher" else min(medians)
    return [
        f"**{_median(measure)}**" if measure and measure.median == best else _median(measure)
        for measure in (line.measures[family] for family in FAMILIES)
    ]


def standings(results: Results) -> dict[str, dict[str, list[str]]]:
    """By peer: in what tidelog is ahead, behind or even, and how many times. A growth counts at its end.

    A case whose lines all compare alike is named once.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for family in PEERS:
        by_case: dict[str, list[tuple[Line, str, float]]] = {}
        for line in lines(results):
            _, how = line.against(family)
            own, peer = line.own, line.peers[family]
            if how and own and peer and line.last_of_its_growth:
                by = ratio(own, peer)
                by_case.setdefault(own.case, []).append((line, how, max(by, 1 / by)))
        for ones in by_case.values():
            stands = found.setdefault(family, {"ahead": [], "behind": [], "even": []})
            for how, listed in stands.items():
                mine = [(line, by) for line, other, by in ones if other == how]
                listed.extend(_named(mine, how, alike=len(mine) == len(ones)))
    return found


def leads(family: str) -> dict[str, str]:
    """How a list of each standing begins, the peer's lead first."""
    return {"behind": f"{NAMES[family]} is ahead in", "ahead": "tidelog is ahead in", "even": "Even"}


def sentences(results: Results) -> list[str]:
    """The standings in words, and what is missing."""
    found = []
    for family, stands in standings(results).items():
        parts = [f"{words}: {'; '.join(stands[how])}." for how, words in leads(family).items() if stands[how]]
        found += [f"**Against {NAMES[family]}.** {' '.join(parts)}", ""]
    if missing := results.settings.get("failed"):
        found += [f"**Not measured in this run**, as it failed or the time was over: {', '.join(missing)}.", ""]
    return found[:-1]


def _named(mine: Sequence[tuple[Line, float]], how: str, *, alike: bool) -> list[str]:
    """The case with the least and greatest of its lines' factors; or each line with its own."""
    if not mine:
        return []
    if not alike:
        return [line.what + ("" if how == "even" else f" ({_digits(by)} times)") for line, by in mine]
    low, high = (_digits(pick(by for _, by in mine)) for pick in (min, max))
    factors = low if low == high else f"{low} to {high}"
    return [mine[0][0].title + ("" if how == "even" else f" ({factors} times)")]


def setting(results: Results) -> str:
    """The machine and the versions, for a heading."""
    return _described(results.machine)


def _described(facts: Mapping[str, Any]) -> str:
    versions = facts["versions"]
    named = [f"{text} {versions[key]}" for key, text in _VERSIONS.items() if key in versions]
    return ", ".join([machine.one_line(dict(facts)), *named])


def amount(value: float, unit: str) -> str:
    """A figure with the digits that count, and its unit: "1.31 M records/s"."""
    number = quantity(value, unit)
    return f"{number}{unit}" if unit == "B" and " " in number else f"{number} {unit}"


def quantity(value: float, unit: str) -> str:
    """The same without the unit."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and unit not in ("ms", "s"):
            return f"{_digits(value / size)} {letter}"
    return _digits(value)


def times(value: float) -> str:
    """A ratio."""
    return f"{_digits(value)}x" if value < 100 else f"{value:,.0f}x"


def spread(measure: Measure) -> str:
    """Least..greatest of the rounds, in the unit of the median; "" of a single round."""
    if len(measure.rounds) < 2:
        return ""
    return "..".join(
        quantity(value, measure.unit).replace(" ", "") for value in (min(measure.rounds), max(measure.rounds))
    )


def _digits(value: float) -> str:
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _what(group: Group, own: Measure | None, peers: Mapping[str, Measure | None]) -> str:
    shared = group.any
    mine = variant(own.system) if own else ""
    others = [name(one.system) for one in peers.values() if one and variant(one.system) not in ("", mine)]
    parts = [group.title, mine, *others, group.metric]
    if shared.at is not None:
        parts.append(f"at {shared.at:,.0f} {shared.axis}")
    return ", ".join(filter(None, parts))


def _demanded(results: Results, own: Measure | None, peers: Mapping[str, Measure | None]) -> tuple[str, bool | None]:
    if own is None or own.at is not None:
        return "", None
    systems = [peer.system for peer in peers.values() if peer]
    for demand in results.demands:
        named = (demand["case"], demand["metric"], demand["system"]) == (own.case, own.metric, own.system)
        baseline = demand["baseline"]
        if named and (baseline in systems or not baseline or family_of(baseline) == "tidelog"):
            least, most = demand.get("at_least"), demand.get("at_most")
            unit = f" {own.unit}" if not baseline else "x" if baseline in systems else f"x of {baseline}'s"
            bounds = [
                f"≥ {least:g}{unit}" if least is not None else "",
                f"≤ {most:g}{unit}" if most is not None else "",
            ]
            return " ".join(filter(None, bounds)), demand["ok"]
    return "", None


def _must(line: Line) -> str:
    if not line.demand:
        return ""
    return f"{line.demand}" if line.ok else f"{line.demand}: short"


def with_spread(measure: Measure | None) -> str:
    """A median and, dim below it, its spread: a cell for a terminal."""
    if measure is None:
        return ""
    extremes = spread(measure)
    return f"{amount(measure.median, measure.unit)}" + (f"\n[dim]{extremes}[/]" if extremes else "")


def _median(measure: Measure | None) -> str:
    return "" if measure is None else amount(measure.median, measure.unit)


def _bold(text: str, how: str, must: str = "") -> str:
    if not text:
        return ""
    return (f"**{text}**" if how == "ahead" else text) + (f" ({must})" if must else "")
