"""Metrics as plain values, under the names that Prometheus' users know; a server writes them as text."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

Labels = Mapping[str, str]


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
