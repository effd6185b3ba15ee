"""A rate that callers keep: at most a number of bytes, or of files, a second."""

import threading
from typing import Final

from tidelog.log.base.clock import Clock

_BURST_S: Final = 0.25


class Rate:
    """At most `per_s` a second, over all threads; None for no limit.

    What of it was not used passes later, as far as it is that of `burst_s` seconds.
    """

    def __init__(self, clock: Clock, per_s: float | None, burst_s: float = _BURST_S) -> None:
        self._clock = clock
        self._per_s = per_s
        self._burst_s = burst_s
        self._lock = threading.Lock()
        self._free_s = float("-inf")

    def take(self, count: int) -> None:
        """Wait until `count` of them may pass."""
        if self._per_s is None:
            return
        with self._lock:
            now_s = self._clock.elapsed_s()
            self._free_s = max(self._free_s, now_s - self._burst_s) + count / self._per_s
            wait_s = self._free_s - now_s
        if wait_s > 0:
            self._clock.sleep(wait_s)
