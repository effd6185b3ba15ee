"""Whose turn an entry is, where the round trip to the store decides who wins a race.

Behind a network the writer that is nearest to the store sees the head first and is there first, every time; one from
farther away never gets an entry in. So some entries are left to those who waited longest, told by the entry's number,
which all writers see alike, without a word between them.
"""

from dataclasses import dataclass

# Every so manieth entry is left to others: of a log with several writers, and of one that seems to have only one.
SHARED_EVERY = 8
ALONE_EVERY = 128
# For so long by a writer that has just committed, and the less the longer ago that is, down to not at all.
PAUSE_S = 1.0
FORGIVEN_S = 5.0


@dataclass(slots=True)
class Turns:
    """One writer's manners; `pause_s` 0 means none. Pure: time (seconds on the elapsed clock) comes with the calls."""

    pause_s: float = PAUSE_S
    _committed_s: float = float("-inf")
    _others: int = -ALONE_EVERY
    _entry: int = -1
    _until_s: float = 0.0

    def saw(self, version: int) -> None:
        """Somebody else's entry is there. What came before one's own first is history."""
        if self._committed_s > float("-inf"):
            self._others = version

    def committed(self, now_s: float) -> None:
        """An entry of one's own is there."""
        self._committed_s = now_s

    def wait_s(self, version: int, now_s: float) -> float:
        """How long to wait before trying for this entry: 0 when it is one's turn. Look at the log again after it."""
        every = SHARED_EVERY if version - self._others < ALONE_EVERY else ALONE_EVERY
        if version % every:
            return 0.0
        if version != self._entry:
            share = max(0.0, 1 - (now_s - self._committed_s) / FORGIVEN_S)
            self._entry, self._until_s = version, now_s + self.pause_s * share
        return max(0.0, self._until_s - now_s)
