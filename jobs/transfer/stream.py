"""Running a streaming query to its end, or until a signal asks it to stop."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidelog.jobs.transfer.options import When
from tidelog.jobs.transfer.report import Place, Transferred, total
from tidelog.server.process.stopping import Stop

# How long the driver waits before it looks for new progress: shorter than Spark forgets a hundred batches in.
LOOK_S = 0.2


def triggered(writer: DataStreamWriter, when: When) -> DataStreamWriter:
    """The writer with its trigger and checkpoint."""
    checked = writer.option("checkpointLocation", when.checkpoint)
    if when.mode == "available-now":
        return checked.trigger(availableNow=True)
    return checked if when.interval_ms is None else checked.trigger(processingTime=f"{when.interval_ms} milliseconds")


class StreamProgress:
    """What a query's batches did, gathered while it runs: Spark keeps the newest hundred only."""

    def __init__(self) -> None:
        self._batches: dict[int, Any] = {}

    def take(self, query: StreamingQuery) -> list[Any]:
        """Gather what is new; returns the batches that had rows and were not known."""
        new = []
        for progress in query.recentProgress:
            if progress.numInputRows and progress.batchId not in self._batches:
                self._batches[progress.batchId] = progress
                new.append(progress)
        return new

    @property
    def batches(self) -> int:
        """How many batches had rows."""
        return len(self._batches)

    def observed(self, metric: str, name: str) -> int:
        """The sum of a metric over all batches."""
        rows = (progress.observedMetrics.get(metric) for progress in self._batches.values())
        return sum(int(row[name] or 0) for row in rows if row is not None)

    def read(self, initial: Mapping[Place, int]) -> dict[Place, Transferred]:
        """The offsets of the only source that were read; `initial` is where a new query started."""
        return total(offsets_read(progress, initial) for _, progress in sorted(self._batches.items()))


def offsets_read(progress: Any, initial: Mapping[Place, int]) -> dict[Place, Transferred]:
    """The offsets that one batch read of its only source; a partition that is new begins at `initial`, or 0."""
    starts, ends = (offsets_of(text) for text in (progress.sources[0].startOffset, progress.sources[0].endOffset))
    return {place: Transferred(starts.get(place, initial.get(place, 0)), end) for place, end in ends.items()}


def records_in(progress: Any, metric: str) -> int:
    """How many records one batch moved; 0 for a repeat that its sink left out."""
    row = progress.observedMetrics.get(metric)
    return 0 if row is None else int(row["records"])


def offsets_of(text: str | None) -> dict[Place, int]:
    """Offsets as Spark's progress tells them; {} for none."""
    body = json.loads(text) if text else None
    if not isinstance(body, dict):
        return {}
    return {(topic, int(p)): int(offset) for topic, found in body.items() for p, offset in found.items()}


def run_to_end(query: StreamingQuery, stop: Stop, look: Callable[[], None]) -> None:
    """Wait until the query ends or a stop is asked; `look` is called now and then, and at the end.

    Raises the query's own error.
    """
    try:
        while not query.awaitTermination(LOOK_S):  # type: ignore[arg-type] # its stub forgets fractions
            look()
            if stop.asked:
                break
    finally:
        query.stop()
    look()
