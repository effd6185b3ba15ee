"""A benchmark's results: samples, percentiles, ratios within one run, and the rows of the table."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table. `figures` holds what was measured, for the results file; `case` is whose row it is."""

    what: str
    must: str
    measured: str
    ok: bool
    figures: Mapping[str, Any] = field(default_factory=dict)
    case: str = ""

    def as_json(self) -> dict[str, Any]:
        """The row as the results file has it."""
        return asdict(self)


def percentile(samples: Sequence[float], q: float) -> float:
    """The smallest sample that at least `q` percent of the samples do not exceed (nearest rank)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * q / 100) - 1)]


def summary(samples: Sequence[float], digits: int = 3) -> dict[str, float]:
    """Number, p50, p99 and extremes of samples."""
    return {
        "n": len(samples),
        "p50": round(percentile(samples, 50), digits),
        "p99": round(percentile(samples, 99), digits),
        "min": round(min(samples), digits),
        "max": round(max(samples), digits),
    }


def interleaved(arms: Mapping[str, Callable[[], float]], rounds: int, warmups: int = 1) -> dict[str, list[float]]:
    """Run every arm once a round, in turning order, so that a change of the machine's mood meets all of them.

    An arm returns its own figure (seconds). Rounds of warming up are left out.
    """
    samples: dict[str, list[float]] = {name: [] for name in arms}
    names = list(arms)
    for number in range(warmups + rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            figure = arms[name]()
            if number >= warmups:
                samples[name].append(figure)
    return samples


def speed_ratio(samples: Mapping[str, Sequence[float]], arm: str, baseline: str) -> float:
    """How many times as fast as `baseline` an arm is: the median over the rounds of one time by the other."""
    return statistics.median(base / own for base, own in zip(samples[baseline], samples[arm], strict=True))
