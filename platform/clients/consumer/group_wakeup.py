"""What the group side of a consumer waits for: that somebody rings, or that its group's log grows."""

import threading

from tidelog.log.base.clock import Clock
from tidelog.log.follow.tailing import Tailing
from tidelog.log.storage.port import Storage


class Bell:
    """Waits for one thread; `ring` is for any. `hears`: the kernel tells it of the entries of the log that it follows.

    Where it does not, the bell doesn't look for them itself: how often is worth while, the membership knows.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._rung = threading.Event()
        self._tailing: Tailing | None = None
        self._log: str | None = None
        self.hears = False

    def ring(self) -> None:
        """End the wait that is going on, or else the next one."""
        self._rung.set()
        tailing = self._tailing
        if tailing is not None:
            tailing.wake()

    def follow(self, log: str | None) -> None:
        """Hear of this log's entries, by its folder below the lake's root, and of no other's; None: of none."""
        if log == self._log:
            return
        tailing = self._tailing = self._tailing or Tailing(self._storage, self._clock)
        if self.hears and self._log is not None:
            tailing.remove(self._log)
        self._log, self.hears = log, False
        if log is not None:
            tailing.add(log)
            self.hears = tailing.hears(log)
            if not self.hears:
                tailing.remove(log)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether the log may have grown; waits until it has, somebody rings, or the time is over (None: no end)."""
        tailing = self._tailing
        if tailing is None:
            self._rung.wait(timeout_s)
            self._rung.clear()
            return False
        found = tailing.wait(0.0 if self._rung.is_set() else timeout_s)
        self._rung.clear()
        if self.hears and self._log is not None and not tailing.hears(self._log):  # its folder is gone
            tailing.remove(self._log)
            self.hears = False
        return bool(found)

    def close(self) -> None:
        """Give back what it holds; nobody may be waiting."""
        tailing, self._tailing = self._tailing, None
        if tailing is not None:
            tailing.close()
