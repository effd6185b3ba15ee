"""Backoff: how long after a failed attempt the next one follows; how often to poll, by what a poll costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tidelog.log.base.clock import Clock

# The share of elapsed time that polls take at most, and the longest pause between two.
SHARE = 0.1
LONGEST_PAUSE_S = 0.25
# Growth that no bound lets through; more would only make immense numbers.
_MOST_GROWN: Final = 60


@dataclass(frozen=True, slots=True)
class BackoffRule:
    """Pauses in seconds: `first_s`, `times` as long after each further failure, `most_s` at most.

    `least`: the part of a pause that is always waited; `spread`: the part that chance adds.
    """

    first_s: float
    most_s: float
    times: float = 2.0
    least: float = 1.0
    spread: float = 0.0

    def pause_s(self, attempt: int, fraction: float = 0.0) -> float:
        """The pause after the `attempt`-th failure in a row, from 1 on; `fraction`: 0 to 1, by chance."""
        grown_s = min(self.first_s * self.times ** min(attempt - 1, _MOST_GROWN), self.most_s)
        return grown_s * (self.least + self.spread * fraction)


class Backoff:
    """The pauses of a rule without chance, one after the other, until `reset`. Not for several threads."""

    def __init__(self, first_s: float, most_s: float, times: float = 2.0) -> None:
        self._rule = BackoffRule(first_s, most_s, times)
        self._failed = 0

    def next_s(self) -> float:
        """The next pause."""
        self._failed += 1
        return self._rule.pause_s(self._failed)

    def reset(self) -> None:
        """Begin with the first one again."""
        self._failed = 0


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
