"""Figures over time, in as much memory as they take: since the start, in ever wider steps."""

from collections.abc import Mapping, Sequence
from typing import Final

# Points that are kept. Where there would be more, every other one goes.
POINTS: Final = 720


class History:
    """Series of numbers with one time axis. For one thread at a time.

    `names`: of the series. `rates`: those of them that count up; they are given as what was added a second.
    """

    def __init__(self, names: Sequence[str], rates: Sequence[str] = (), points: int = POINTS) -> None:
        self._rates = frozenset(rates)
        self._points = points
        self._every = 1  # of the points that are added, this one is kept
        self._added = 0
        self._times: list[int] = []
        self._values: dict[str, list[float | None]] = {name: [] for name in names}

    def add(self, at_ms: int, values: Mapping[str, float | None]) -> None:
        """Add a point, later than the last one; what is not among `values` is not known."""
        self._added += 1
        if (self._added - 1) % self._every or (self._times and at_ms <= self._times[-1]):
            return
        self._times.append(at_ms)
        for name, series in self._values.items():
            series.append(values.get(name))
        if len(self._times) > self._points:
            self._every *= 2
            self._times = self._times[::2]
            self._values = {name: series[::2] for name, series in self._values.items()}

    def shown(self) -> tuple[list[int], dict[str, list[float | None]]]:
        """The times in ms, and the value of each series at each; None where it is not known."""
        found = {
            name: self._rate(series) if name in self._rates else list(series) for name, series in self._values.items()
        }
        return list(self._times), found

    def last(self) -> dict[str, float | None]:
        """The newest value of each series, None where it is not known."""
        if not self._times:
            return dict.fromkeys(self._values)
        return {
            name: (self._slope(len(series) - 1, series) if name in self._rates else series[-1])
            for name, series in self._values.items()
        }

    def _rate(self, series: Sequence[float | None]) -> list[float | None]:
        return [self._slope(at, series) for at in range(len(series))]

    def _slope(self, at: int, series: Sequence[float | None]) -> float | None:
        """What was added a second before a point; a count that fell began again."""
        if not at:
            return None
        now, before = series[at], series[at - 1]
        if now is None or before is None:
            return None
        return round(max(0.0, now - before) * 1000 / (self._times[at] - self._times[at - 1]), 3)
