"""What a task's status says while the system that it reads or writes is away, and how often it is said."""

import logging
from collections.abc import Callable
from typing import Final

from tidelog.operations.connector_statuses import RunState

logger = logging.getLogger("tidelog.connect")

# A status is a record: while nothing but the count is new, it is written this often.
SAID_EVERY_S: Final = 30.0


class RetryNotes:
    """Counts the tries of one run that failed and are made again; one thread calls it.

    `show`: writes a status of (state, trace, retries). `now_s`: an elapsed clock. `named`: the run, for the log, whose
    secrets `hide` takes out.
    """

    def __init__(
        self, show: Callable[[RunState, str | None, int], None], now_s: Callable[[], float], named: str,
        hide: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self._show = show
        self._now_s = now_s
        self._named = named
        self._hide = hide
        self._trace = ""
        self._said_s = 0.0
        self.count = 0

    def failed(self, error: Exception) -> None:
        """A try has failed, and is made again: the status is RESTARTING, with the reason and the count."""
        self.count += 1
        trace = f"{type(error).__name__}: {error}"
        now_s = self._now_s()
        if trace == self._trace and now_s - self._said_s < SAID_EVERY_S:
            return
        self._trace, self._said_s = trace, now_s
        logger.warning("Tried again: run=%s retries=%d error=%s", self._named, self.count, self._hide(trace))
        self._show(RunState.RESTARTING, trace, self.count)

    def succeeded(self) -> None:
        """A try has succeeded: the status is RUNNING again."""
        if self.count:
            logger.info("Goes on: run=%s retries=%d", self._named, self.count)
            self.count, self._trace = 0, ""
            self._show(RunState.RUNNING, None, 0)
