"""Looking again, but sparingly: a look that costs much is taken less often."""

from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.log.base.clock import Clock

# The share of its time that somebody who waits spends on looking, and how long there is no look at most.
SHARE = 0.1
LONGEST_PAUSE_S = 0.25


class Sparing:
    """Says when the next look is due, so that looks take about a tenth of the time.

    A look at a local file is due again after a millisecond; one at an object store, which takes thirty and is paid
    for by the call, after a quarter of a second. Not for several threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last look."""
        return self._clock.elapsed_s() >= self._due_s

    @contextmanager
    def look(self) -> Iterator[None]:
        """Measures the block, which looks."""
        began_s = self._clock.elapsed_s()
        yield
        ended_s = self._clock.elapsed_s()
        self._due_s = ended_s + min((ended_s - began_s) * (1 / SHARE - 1), LONGEST_PAUSE_S)

    def look_now(self) -> None:
        """Make the next look due: there is something to see."""
        self._due_s = float("-inf")
