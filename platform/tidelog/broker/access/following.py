"""A broker follows the lake's access: what is changed anywhere is in force here within a second."""

import asyncio
import logging
import threading
from contextlib import suppress
from typing import Final

from tidelog.access.access_log import AccessLog
from tidelog.access.state import AccessState
from tidelog.broker.base.access import BrokerAccess
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.delta import layout
from tidelog.log.follow.tailing import Tailing
from tidelog.log.storage.port import OnThisMachine
from tidelog.server.base.blocking import Blocking

logger = logging.getLogger(__name__)

# Between looks where no watch says that the log has grown, or a watch is silent that should not be.
LOOK_EVERY_S: Final = 0.5


class AccessFollower:
    """Keeps a broker's access as the log of access has it. Its methods are for the loop's thread.

    While the store gives no answer, what was known before holds.
    """

    def __init__(self, log: AccessLog, access: BrokerAccess, clock: Clock, blocking: Blocking) -> None:
        self._log = log
        self._access = access
        self._clock = clock
        self._blocking = blocking
        self._loop = asyncio.get_running_loop()
        self._version = -1
        # Of the thread: what it has seen, and whether the store gave no answer.
        self._seen, self._away = -1, False
        self._tailing: Tailing | None = None
        self._thread: threading.Thread | None = None
        self._closing = False

    async def start(self) -> None:
        """Learn what is in force, before any client is served, and follow it. Raises StorageError."""
        await self.look_now()
        self._tailing = Tailing(self._log.storage, self._clock)
        if isinstance(self._log.storage, OnThisMachine):  # elsewhere looks are paid for, and two a second are enough
            self._tailing.add(layout.ACCESS_TABLE)
        self._seen = self._version
        self._thread = threading.Thread(target=self._run, args=(self._tailing,), name="tidelog-access", daemon=True)
        self._thread.start()

    async def look_now(self) -> None:
        """See what was changed up to now, before anything else is decided. Raises StorageError."""
        self._take(*await self._blocking(self._log.seen))

    async def close(self) -> None:
        """Follow no more."""
        self._closing = True
        if self._tailing is not None and self._thread is not None:
            self._tailing.wake()
            await self._blocking(self._thread.join)
            self._tailing.close()
        await self._blocking(self._log.close)

    def _take(self, version: int, state: AccessState) -> None:
        if version > self._version:  # the thread's look may come in after a later one
            self._version = version
            self._access.take(state)

    def _run(self, tailing: Tailing) -> None:
        rounds = Rounds(logger, "Following access")
        while True:
            tailing.wait(LOOK_EVERY_S)
            if self._closing:
                return
            with rounds.round():
                self._look(tailing)

    def _look(self, tailing: Tailing) -> None:
        began_s, known = self._clock.elapsed_s(), self._seen
        try:
            self._seen, state = self._log.seen()
        except TidelogError as e:
            if not self._away:
                logger.warning("Access can't be followed for now; what was known holds. %s", e)
            self._away = True
            return
        self._away = False
        grew = self._seen > known
        tailing.looked(layout.ACCESS_TABLE, found=grew, took_s=self._clock.elapsed_s() - began_s)
        if grew:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._take, self._seen, state)
