"""Write fairness on distant stores: of some entries, recent winners back off, so that others get them.

Behind a network the writer that is nearest to the store sees the head first and creates the next entry first, every
time; one from farther away never commits. So a writer that has committed recently leaves every 8th entry to the
others. All writers see an entry's number alike, so that they need no messages for it.
"""

from dataclasses import dataclass

# Of which entries a recent winner backs off: in a log with several writers, and in one with apparently one.
SHARED_EVERY = 8
ALONE_EVERY = 128
# The backoff right after an own commit; it falls to nothing within the second time.
PAUSE_S = 1.0
FORGIVEN_S = 5.0


@dataclass(slots=True)
class FairnessBackoff:
    """One writer's backoff state; `pause_s` 0 disables it. Pure: time (seconds, elapsed clock) comes with the calls."""

    pause_s: float = PAUSE_S
    _committed_s: float = float("-inf")
    _others: int = -ALONE_EVERY
    _entry: int = -1
    _until_s: float = 0.0

    def saw(self, version: int) -> None:
        """Another writer's entry was read. Entries before our first commit don't count as contention."""
        if self._committed_s > float("-inf"):
            self._others = version

    def committed(self, now_s: float) -> None:
        """An entry of our own was committed."""
        self._committed_s = now_s

    def wait_s(self, version: int, now_s: float) -> float:
        """How long to back off before trying for this entry, 0 for not at all. Look at the log again after it."""
        every = SHARED_EVERY if version - self._others < ALONE_EVERY else ALONE_EVERY
        if version % every:
            return 0.0
        if version != self._entry:
            share = max(0.0, 1 - (now_s - self._committed_s) / FORGIVEN_S)
            self._entry, self._until_s = version, now_s + self.pause_s * share
        return max(0.0, self._until_s - now_s)
