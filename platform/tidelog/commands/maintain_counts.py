"""What a loop of maintenance counts of its runs."""

from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.log.base.clock import Clock


class RunCounts:
    """Runs by outcome, and times of the elapsed clock. Written by the thread that runs, read by any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.runs = {"done": 0, "failed": 0}
        self.failures = 0
        self.began_s: float | None = None
        self.ended_s: float | None = None
        self.took_s = 0.0

    @contextmanager
    def run(self) -> Iterator[list[object]]:
        """Count a run; what failed is to be added to the list."""
        failures: list[object] = []
        began_s = self.began_s = self._clock.elapsed_s()
        yield failures
        self.began_s, self.ended_s = None, self._clock.elapsed_s()
        self.took_s, self.failures = self.ended_s - began_s, len(failures)
        self.runs["failed" if failures else "done"] += 1
