"""What the cases of `make bench-peers` measure, and what is demanded of the figures."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Measure:
    """Figures of one system in one case, one a round; systems of a case and metric have the same rounds.

    `system` is "tidelog", "kafka" or "delta", or one with a variant: "tidelog consume_table". `better` is "higher" or
    "lower". In cases of growth `at` is where on the axis (`axis`: "records", "partitions", "segments") the figures
    were taken. `samples` are what a distribution is drawn from, a few thousand at most.
    """

    case: str
    system: str
    metric: str
    unit: str
    better: str
    rounds: list[float]
    at: float | None = None
    axis: str = ""
    samples: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.rounds:
            raise ValueError(f"{self.case}: {self.system}: {self.metric} has no rounds: a case measures at least one.")
        if self.better not in ("higher", "lower"):
            raise ValueError(f'{self.case}: `better` is "higher" or "lower", not {self.better!r}.')

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.rounds)

    @property
    def key(self) -> tuple[str, str, str, float | None]:
        """What the measure is of, the same from run to run."""
        return self.case, self.system, self.metric, self.at

    def as_json(self) -> dict[str, Any]:
        """The measure as the results file has it, with its median and extremes."""
        extremes = {"median": self.median, "min": min(self.rounds), "max": max(self.rounds)}
        return {**asdict(self), **extremes}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Measure":
        """The measure of `as_json`."""
        return cls(**{name: body[name] for name in cls.__dataclass_fields__ if name in body})


@dataclass(frozen=True)
class Demand:
    """That a system's figure is at least, or at most, a multiple of the baseline's of the same case and metric.

    With the baseline "" the figure itself is.
    """

    case: str
    metric: str
    system: str
    baseline: str
    text: str
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"{self.text}: a demand has either at_least or at_most.")

    def met(self, ratio: float) -> bool:
        """Whether a ratio, the system's figure by the baseline's, or the figure itself is good enough."""
        return ratio >= self.at_least if self.at_least is not None else ratio <= (self.at_most or 0.0)


def ratio(own: Measure | None, baseline: Measure | None) -> float | None:
    """The median of one figure by the other round by round, as what slows a round down slows both of them.

    None: one is missing, they have not the same rounds, or the baseline is nothing.
    """
    if own is None or baseline is None or len(own.rounds) != len(baseline.rounds) or not all(baseline.rounds):
        return None
    return statistics.median(ours / theirs for ours, theirs in zip(own.rounds, baseline.rounds, strict=True))


def judge(demands: Iterable[Demand], measures: Sequence[Measure], *, whole: bool) -> list[dict[str, Any]]:
    """The demands, each with its ratio and whether it is met; one without a ratio is not.

    Unless the run was `whole`, demands on cases that are not there are left out.
    """
    found = {(m.case, m.system, m.metric): m for m in measures if m.at is None}
    cases = {m.case for m in measures}
    judged = []
    for demand in demands:
        if whole or demand.case in cases:
            own, baseline = (
                found.get((demand.case, system, demand.metric)) for system in (demand.system, demand.baseline)
            )
            reached = ratio(own, baseline) if demand.baseline else own.median if own else None
            judged.append({**asdict(demand), "ratio": reached, "ok": reached is not None and demand.met(reached)})
    return judged
