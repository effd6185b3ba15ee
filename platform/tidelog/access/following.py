"""A process follows the lake's access: what is changed anywhere is in force here within a second."""

import logging
import threading
from typing import Final

from tidelog.access.access_log import AccessLog
from tidelog.access.in_force import AccessInForce
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.delta import layout
from tidelog.log.follow.tailing import Tailing
from tidelog.log.storage.port import OnThisMachine

logger = logging.getLogger(__name__)

# Between looks where no watch says that the log has grown, or a watch is silent that should not be.
LOOK_EVERY_S: Final = 0.5


class AccessFollower:
    """Keeps what is in force as the log of access has it. For many threads.

    A process that must know of a change without being asked has a thread follow (`start`); one that goes by access
    only where it answers a request has each of them `look_again`, and costs nothing between them.
    While the store gives no answer, what was known before holds.
    """

    def __init__(self, log: AccessLog, access: AccessInForce, clock: Clock) -> None:
        self._log = log
        self._access = access
        self._clock = clock
        self._lock = threading.Lock()
        self._version = -1
        self._looked_s = float("-inf")
        self._away = False  # whether the store gave no answer to the last look
        self._tailing: Tailing | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    def look_now(self) -> bool:
        """See what was changed up to now, before anything else is decided; whether there was more than was known.

        Raises StorageError.
        """
        began_s = self._clock.elapsed_s()
        version, state = self._log.seen()
        with self._lock:
            self._looked_s = max(self._looked_s, began_s)
            if version <= self._version:  # a later look of another thread came in before
                return False
            self._version = version
            self._access.take(state)
            return True

    def look_again(self) -> None:
        """See what was changed up to `LOOK_EVERY_S` ago."""
        with self._lock:
            now_s = self._clock.elapsed_s()
            if now_s - self._looked_s < LOOK_EVERY_S:
                return
            self._looked_s = now_s
        self._look()

    def start(self) -> None:
        """Have a thread follow. What is in force is learned before, by `look_now`."""
        self._tailing = Tailing(self._log.storage, self._clock)
        if isinstance(self._log.storage, OnThisMachine):  # elsewhere looks are paid for, and two a second are enough
            self._tailing.add(layout.ACCESS_TABLE)
        self._thread = threading.Thread(target=self._run, args=(self._tailing,), name="tidelog-access", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow no more, and close the log."""
        self._closing = True
        if self._tailing is not None and self._thread is not None:
            self._tailing.wake()
            self._thread.join()
            self._tailing.close()
        self._log.close()

    def _run(self, tailing: Tailing) -> None:
        rounds = Rounds(logger, "Following access")
        while True:
            tailing.wait(LOOK_EVERY_S)
            if self._closing:
                return
            with rounds.round():
                began_s = self._clock.elapsed_s()
                grew = self._look()
                if grew is not None:
                    tailing.looked(layout.ACCESS_TABLE, grew=grew, took_s=self._clock.elapsed_s() - began_s)

    def _look(self) -> bool | None:
        """As `look_now`; None while the store gives no answer."""
        try:
            grew = self.look_now()
        except TidelogError as e:
            if not self._away:
                logger.warning("Access can't be followed for now; what was known holds. %s", e)
            self._away = True
            return None
        self._away = False
        return grew
