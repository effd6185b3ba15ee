"""Results of a run side by side, made up: what the table, the page, the plots and a comparison are tested with."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from measures import Measure, judge
from results import Results

MACHINE: dict[str, Any] = {
    "cpu": "a processor", "cores": 2, "memory_gib": 16.0, "file_system": "ext4", "python": "3.11.7", "java": "17",
    "versions": {"tidelog": "0.1.0", "pyspark": "4.2.0", "delta-spark": "4.4.0", "kafka": "4.1.2"},
}  # fmt: skip
WRITE = {
    "tidelog": [1.30e6, 1.25e6, 1.35e6],
    "kafka": [600e3, 590e3, 610e3],
    "kafka uncompressed": [750e3, 740e3, 760e3],
    "delta": [1.20e6, 1.30e6, 1.25e6],
}
LATENCY = {"tidelog": [4.0, 4.2, 4.1], "kafka": [1.9, 2.0, 2.1]}


def rate(system: str, rounds: Sequence[float], case: str = "spark batch write") -> Measure:
    """Records a second."""
    return Measure(case, system, "throughput", "records/s", "higher", list(rounds))


def wait(system: str, rounds: Sequence[float], case: str = "client latency") -> Measure:
    """Milliseconds, with samples around them."""
    samples = [one * (1 + share / 50) for one in rounds for share in range(40)]
    return Measure(case, system, "p50", "ms", "lower", list(rounds), samples=samples)


def size(system: str, figure: float) -> Measure:
    """Bytes a record."""
    return Measure("bytes on disk, flights", system, "bytes per record", "B", "lower", [figure])


def grown(system: str, at: float, *rounds: float) -> Measure:
    """Milliseconds at a number of records."""
    return Measure("growth of records", system, "open", "ms", "lower", list(rounds), at, "records")


MEASURES = (
    *(rate(system, rounds) for system, rounds in WRITE.items()),
    *(wait(system, rounds) for system, rounds in LATENCY.items()),
    *(size(*one) for one in (("tidelog", 35.5), ("tidelog merged", 27.0), ("kafka", 37.0), ("delta", 42.0))),
    *(grown("tidelog", at, at / 1e3, at / 9e2) for at in (1e4, 1e5, 1e6)),
    *(grown("kafka", at, 1.0, 1.1) for at in (1e4, 1e5)),
)


def results(measures: Sequence[Measure] = MEASURES, demands: Sequence[Any] = (), **more: Any) -> Results:
    """Results of a whole run; `more` are other fields of them."""
    made = Results("2026-01-02T03:04:05+00:00", {"whole": True, "quick": False}, MACHINE, tuple(measures))
    return replace(made, demands=tuple(judge(demands, measures, whole=False)), **more)
