"""How busy a broker's process is, of late: what waits for company goes by it."""

from collections.abc import Callable
from typing import Final

# How often the share is taken, in seconds.
EVERY_S: Final = 0.25


class ProcessLoad:
    """The share of one core that a process takes, 1.0 for all of it; several threads may take more.

    `processor_s()`: the processor time of the process, in seconds. Other time comes with the calls. For the loop's
    thread.
    """

    def __init__(self, processor_s: Callable[[], float], now_s: float) -> None:
        self._processor_s = processor_s
        self._at_s = now_s
        self._used_s = processor_s()
        self._share = 0.0

    def share(self, now_s: float) -> float:
        """The share of late: of the last `EVERY_S` or two, half each."""
        passed_s = now_s - self._at_s
        if passed_s >= EVERY_S:
            used_s = self._processor_s()
            latest = (used_s - self._used_s) / passed_s
            self._share = latest if passed_s >= 2 * EVERY_S else (self._share + latest) / 2
            self._at_s, self._used_s = now_s, used_s
        return self._share


def no_load(now_s: float) -> float:  # noqa: ARG001
    """The share of a process that has nothing to do."""
    return 0.0
