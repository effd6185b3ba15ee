"""The results file of a run side by side: what was measured, and how one system compares with another."""

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from machine import is_same
from measures import Measure

KIND = "peers"
FAMILIES = ("tidelog", "kafka", "delta")
NAMES = {"tidelog": "tidelog", "kafka": "Kafka", "delta": "Delta"}
MOST_SAMPLES = 1_000


@dataclass(frozen=True)
class Results:
    """One run. `demands` are as `measures.judge` gives them."""

    at: str
    settings: Mapping[str, Any]
    machine: Mapping[str, Any]
    measures: tuple[Measure, ...]
    demands: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(
        cls,
        measures: Iterable[Measure],
        demands: Iterable[Mapping[str, Any]],
        machine: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Self:
        """The results of a run that has just ended."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(now, settings, machine, tuple(measures), tuple(demands))

    @classmethod
    def read(cls, path: Path) -> Self:
        """The results in a file. ValueError: it is no file of such results."""
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
            if body["kind"] != KIND:
                raise ValueError(f"it is of kind {body['kind']!r}")
            measures = tuple(Measure.from_json(one) for one in body["measures"])
            return cls(body["at"], body["settings"], body["machine"], measures, tuple(body["demands"]))
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} holds no results of make bench-peers ({error}).") from error

    def write(self, path: Path) -> None:
        """Write the file: one line a measure, so that people can compare two files."""
        head = {"kind": KIND, "at": self.at, "settings": self.settings, "machine": self.machine}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
        for key, rows in (("demands", list(self.demands)), ("measures", [_as_json(one) for one in self.measures])):
            listed = ",\n".join(f"  {json.dumps(row)}" for row in rows)
            lines.append(f' "{key}": [\n{listed}\n ]')
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def days(self, cases: Iterable[str]) -> str:
        """When the cases were measured, as people say it."""
        filled, later = self.settings.get("filled", ()), self.settings.get("filled_at", "")
        return " and ".join(sorted({(later if case in filled else self.at)[:10] for case in cases}))

    def machines(self, cases: Iterable[str]) -> list[Mapping[str, Any]]:
        """The machines on which the cases were measured: one, or two where some were filled in on another."""
        filled, later = self.settings.get("filled", ()), self.settings.get("filled_machine", self.machine)
        places = {case in filled for case in cases}
        if is_same(self.machine, later):
            places = {True in places}
        return [later if is_later else self.machine for is_later in sorted(places)]

    def filled(self, later: Self) -> Self:
        """With the cases that failed here, or were not there yet, and that a later run measured.

        What was filled in before is measured again. A run that is not in full size adds nothing, nor does one on
        another machine that has not measured again all that was filled in: blocks name the machine of their cases.
        """
        got = set(later.settings["seconds"]) - set(later.settings["failed"])
        known = set(self.settings.get("seconds", ())) - set(self.settings["failed"])
        before = set(self.settings.get("filled", ()))
        own = {one.case for one in self.measures} - before
        more = [one for one in later.measures if one.case not in own]
        gained = {one.case for one in more}
        is_one = is_same(self.settings.get("filled_machine", self.machine), later.machine) or before <= gained
        if not is_one or later.settings["quick"] or later.at <= self.at or got <= known:
            return self
        settings = {
            **self.settings,
            "failed": [case for case in self.settings["failed"] if case not in got],
            "notes": {**self.settings.get("notes", {}), **later.settings.get("notes", {})},
            "filled": sorted({*self.settings.get("filled", ()), *gained}),
            "filled_at": later.at,
            "filled_machine": later.machine,
        }
        measures = (*(one for one in self.measures if one.case not in gained), *more)
        demands = (
            *(one for one in self.demands if one["case"] not in gained),
            *(one for one in later.demands if one["case"] in gained),
        )
        return replace(self, settings=settings, measures=measures, demands=demands)

    def groups(self) -> "list[Group]":
        """What is compared with each other, in the order in which it was measured."""
        found: dict[tuple[str, str, float | None], list[Measure]] = {}
        for one in self.measures:
            found.setdefault((one.case, one.metric, one.at), []).append(one)
        return [Group(case[:1].upper() + case[1:], tuple(members)) for (case, _, _), members in found.items()]


@dataclass(frozen=True)
class Group:
    """Measures of one case and metric (and one point of a growth): one of each system."""

    title: str
    members: tuple[Measure, ...] = field(default_factory=tuple)

    @property
    def any(self) -> Measure:
        """One of them, for what they have in common."""
        return self.members[0]

    @property
    def metric(self) -> str:
        """What it measures, "" where the title or the unit says so."""
        shared = self.any
        told = ("throughput", shared.case, shared.unit.partition("/")[0])
        return "" if shared.metric in told or shared.metric.split()[0] in shared.case.split() else shared.metric

    def of(self, family: str) -> list[Measure]:
        """The members of a family of systems."""
        return [one for one in self.members if family_of(one.system) == family]

    def peer(self, own: Measure, family: str) -> Measure | None:
        """Whom a measure is held against: the family's variant of the same name, else its plain one, else its first."""
        peers = self.of(family)
        for wanted in (variant(own.system), ""):
            for one in peers:
                if variant(one.system) == wanted:
                    return one
        return peers[0] if peers else None


def family_of(system: str) -> str:
    """tidelog, kafka or delta."""
    return re.split(r"\W", system, maxsplit=1)[0]


def variant(system: str) -> str:
    """What follows the family: "consume_table", or nothing."""
    return system[len(family_of(system)) :].strip(" ,:()")


def name(system: str) -> str:
    """A system as people write it."""
    return " ".join(filter(None, (NAMES.get(family_of(system), family_of(system)), variant(system))))


def ratios(own: Measure, base: Measure) -> list[float]:
    """One ratio a round where both have as many, since a round's arms met the same machine; else the medians'."""
    if len(own.rounds) != len(base.rounds):
        return [_by(own.median, base.median)]
    return [_by(one, other) for one, other in zip(own.rounds, base.rounds, strict=True)]


def ratio(own: Measure, base: Measure) -> float:
    """How many times the other's figure: the median of the rounds' ratios."""
    return statistics.median(ratios(own, base))


def standing(own: Measure, base: Measure) -> str:
    """ "ahead", "behind", or "even" where the rounds disagree or differ by 2 % at most."""
    found = ratios(own, base)
    low, high = min(found), max(found)
    if low < 1 < high or abs(statistics.median(found) - 1) <= 0.02:
        return "even"
    return "ahead" if (low >= 1) == (own.better == "higher") else "behind"


def _by(one: float, other: float) -> float:
    return one / other if other else float("inf") if one else 1.0


def _as_json(measure: Measure) -> dict[str, Any]:
    body = measure.as_json()
    body["rounds"] = [_rounded(value, 6) for value in measure.rounds]
    body["samples"] = [_rounded(value, 4) for value in thinned(measure.samples, MOST_SAMPLES)]
    return body


def thinned(samples: Sequence[float], most: int) -> list[float]:
    """In order, and no more than `most`: evenly spaced ranks, the least and the greatest among them."""
    ordered = sorted(samples)
    if len(ordered) <= most:
        return ordered
    return [ordered[round(rank * (len(ordered) - 1) / (most - 1))] for rank in range(most)]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
