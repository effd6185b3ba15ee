"""What a broker counts of the metrics that clients push to it, and what these were last, within bounds."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Self

# The most metrics of clients whose newest values are kept; those that were heard longest ago go first.
MOST_SERIES = 2_000
# A value that is older says nothing of now.
STALE_S = 1_800.0
# The most characters of what names one: of longer names no values are kept.
LONGEST_SERIES = 1_000


class ClientSeries(NamedTuple):
    """A metric of a client. `attributes`: its own, as NAME=TEXT, sorted, with commas between them."""

    metric: str
    client_id: str
    software: str
    attributes: str

    @classmethod
    def of(cls, metric: str, client_id: str, software: str, attributes: Mapping[str, str]) -> Self | None:
        """The series of a client's metric with these attributes; None for names that are too long to be kept."""
        length = len(metric) + len(client_id) + len(software)
        length += sum(len(name) + len(text) + 2 for name, text in attributes.items())
        if length > LONGEST_SERIES:
            return None
        return cls(metric, client_id, software, ",".join(f"{name}={text}" for name, text in sorted(attributes.items())))


class ClientMeter:
    """Written by the loop's thread; read by any."""

    def __init__(self) -> None:
        # How many clients push, or have asked what to push, at a time of the elapsed clock.
        self.alive: Callable[[float], int] = lambda _: 0
        # By what became of them: Kafka's name of the error, NONE for none.
        self.pushes: Counter[str] = Counter()
        self.points = 0
        self._series: OrderedDict[ClientSeries, tuple[float, float]] = OrderedDict()

    def saw(self, series: ClientSeries, value: float, now_s: float, *, adds: bool) -> None:
        """A client's metric has a value. `adds`: it is what came since the last one."""
        before, _ = self._series.get(series, (0.0, 0.0))
        self._series[series] = (before + value if adds else value, now_s)
        self._series.move_to_end(series)
        while len(self._series) > MOST_SERIES or now_s - next(iter(self._series.values()))[1] > STALE_S:
            self._series.popitem(last=False)

    def series(self, now_s: float) -> Iterator[tuple[ClientSeries, float]]:
        """The newest value of each, without those that are stale."""
        for series, (value, at_s) in sorted(self._series.copy().items()):
            if now_s - at_s <= STALE_S:
                yield series, value
