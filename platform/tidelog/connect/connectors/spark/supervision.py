"""When an application is started again, and how many run in a worker: rules without processes."""

import threading
from dataclasses import dataclass
from typing import Final

from tidelog.log.base.backoff import BackoffRule

# After running this long, an application that fails has begun again rather than failed again.
_STEADY_S: Final = 600.0


@dataclass
class RestartRule:
    """How long to wait before the next start: doubled with each failure in a row, up to a limit.

    `most`: failures in a row after which the application is given up, -1 for never.
    """

    first_s: float
    limit_s: float
    most: int
    failures: int = 0

    def failed(self, ran_s: float) -> float | None:
        """Count a failure of an application that ran that long; the seconds to wait, None to give it up."""
        if ran_s >= _STEADY_S:
            self.failures = 0
        self.failures += 1
        if 0 <= self.most < self.failures:
            return None
        return BackoffRule(self.first_s, self.limit_s).pause_s(self.failures)


class SparkSlots:
    """How many applications run in this process; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def take(self, limit: int) -> bool:
        """Whether one more may run where at most `limit` do; then it counts until `give`."""
        with self._lock:
            if self._running >= limit:
                return False
            self._running += 1
            return True

    def give(self) -> None:
        """One application less."""
        with self._lock:
            self._running -= 1
