"""Threads that serve several users: an error ends one round of theirs, and never the thread."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.errors import TidelogError

# After rounds that fail, one after the other.
_PAUSES: Final = BackoffRule(0.01, 1.0)


class Rounds:
    """The rounds of one thread. `doing`: what it does, for the log. For one thread.

    `pause`: waits for seconds, or until the thread is to end; called after a round that failed, so that one which fails
    at once takes no processor. None: the thread has pauses of its own.
    """

    def __init__(self, logger: logging.Logger, doing: str, pause: Callable[[float], object] | None = None) -> None:
        self._logger = logger
        self._doing = doing
        self._pause = pause
        self._failed = 0

    @contextmanager
    def round(self) -> Iterator[None]:
        """What is raised within the block ends there, whatever it is; it is logged, and the caller goes on.

        Of rounds that fail one after the other the first, second, fourth, eighth … are logged.
        """
        try:
            yield
        except Exception as error:
            self._failed += 1
            if not self._failed & (self._failed - 1):
                self._tell(error)
            if self._pause is not None:
                self._pause(_PAUSES.pause_s(self._failed))
        else:
            self._failed = 0

    def _tell(self, error: Exception) -> None:
        again = f" {self._failed} times" if self._failed > 1 else ""
        if isinstance(error, TidelogError):
            self._logger.warning("%s failed%s, and goes on: %s", self._doing, again, error)
        else:
            self._logger.error("%s failed%s, and goes on: this is a bug.", self._doing, again, exc_info=error)
