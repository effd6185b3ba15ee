"""Adaptive polling: the more a poll costs, the less often it is made."""

from collections.abc import Iterator
from contextlib import contextmanager

from tidelog.log.base.clock import Clock

# The share of elapsed time that polls take at most, and the longest pause between two.
SHARE = 0.1
LONGEST_PAUSE_S = 0.25


class PollBackoff:
    """Says when the next poll is due, so that polls take about a tenth of the time.

    A poll of a local file is due again after a millisecond; one of an object store, which takes thirty and is paid
    for by the call, after a quarter of a second. Not for several threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = float("-inf")

    @property
    def is_due(self) -> bool:
        """Whether enough time has passed since the last poll."""
        return self._clock.elapsed_s() >= self._due_s

    @contextmanager
    def poll(self) -> Iterator[None]:
        """Measures the block, which polls."""
        began_s = self._clock.elapsed_s()
        yield
        ended_s = self._clock.elapsed_s()
        self._due_s = ended_s + min((ended_s - began_s) * (1 / SHARE - 1), LONGEST_PAUSE_S)

    def reset(self) -> None:
        """Make the next poll due at once."""
        self._due_s = float("-inf")
