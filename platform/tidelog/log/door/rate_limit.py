"""The ceiling on a log's entries per second, which all its writers share by backing off.

Entries stay for `log.min.age.ms` however many there are, and a folder of 100,000 of them is slow for every
engine that lists it. Nor is a listing of a local folder a snapshot: the more entries come during one, the likelier
a reader sees an entry in it and not the one before, and gives up. Each writer sees the log grow, by all writers
alike, and waits while it grows too fast.
"""

from dataclasses import dataclass

ENTRIES_PER_SECOND = 100.0
BURST_ENTRIES = 10_000.0
# At each look this part of a debt is forgiven, and as many entries are added to it: writers that have seen different
# parts of the log come to owe the same, and so to wait alike. The log then grows by as much faster at most.
LEVELLING = 0.1


@dataclass(slots=True)
class Throttle:
    """A bucket that refills at `rate` entries a second up to `burst`. Pure: time comes with the calls."""

    rate: float = ENTRIES_PER_SECOND
    burst: float = BURST_ENTRIES
    _tokens: float | None = None
    _version: int = 0
    _at_s: float = 0.0

    def wait_s(self, version: int, now_s: float) -> float:
        """How long to wait before the next entry, when the log's head is at `version`."""
        if self._tokens is None or version < self._version:
            tokens = self.burst
        else:
            owed = self._tokens if self._tokens > 0 else self._tokens * (1 - LEVELLING) - LEVELLING
            gained = (now_s - self._at_s) * self.rate
            tokens = min(self.burst, owed + gained) - (version - self._version)
        # Debt beyond a second is forgiven: others may have made it.
        self._tokens = max(tokens, -self.rate)
        self._version, self._at_s = version, now_s
        return max(0.0, -self._tokens / self.rate)
