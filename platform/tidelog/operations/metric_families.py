"""Metrics as plain values, under the names that Prometheus' users know; a server writes them as text."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Self, TypeVar

Labels = Mapping[str, str]
# What a row reads: one value, or samples with labels; None where there is nothing to be said now.
Reading = float | Iterable[tuple[Labels, float]] | None
State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A metric, and its samples: labels, which may be shared with samples of other metrics, and a value.

    `name`: a counter's without `_total`.
    """

    name: str
    what: str
    is_counter: bool = False
    samples: list[tuple[Labels, float]] = field(default_factory=list)

    @classmethod
    def of(cls, name: str, what: str, value: float) -> Self:
        """A gauge of one value, without labels."""
        return cls(name, what, samples=[({}, value)])

    def add(self, labels: Labels, value: float) -> None:
        """Add a sample."""
        self.samples.append((labels, value))


class MetricRow(NamedTuple, Generic[State]):
    """A metric, and how it is read of what a process counts."""

    name: str
    what: str
    is_counter: bool
    read: Callable[[State], Reading]


def counter(name: str, what: str, read: Callable[[State], Reading]) -> MetricRow[State]:
    """A row of what only grows. `name`: without `_total`."""
    return MetricRow(name, what, True, read)


def gauge(name: str, what: str, read: Callable[[State], Reading]) -> MetricRow[State]:
    """A row of what grows and shrinks."""
    return MetricRow(name, what, False, read)


def read_rows(rows: Iterable[MetricRow[State]], state: State) -> Iterator[MetricFamily]:
    """The metrics of rows, as of now."""
    for name, what, is_counter, read in rows:
        reading = read(state)
        if reading is not None:
            samples: list[tuple[Labels, float]] = [({}, reading)] if isinstance(reading, int | float) else list(reading)
            yield MetricFamily(name, what, is_counter, samples)
