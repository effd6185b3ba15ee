"""What a consumer's group thread waits for: a wake-up by another thread, or that its group's log grows."""

import threading

from tidelog.log.base.clock import Clock
from tidelog.log.follow.tailing import Tailing
from tidelog.log.storage.port import Storage


class GroupWakeup:
    """`wait` is for one thread, `wake` for any. `is_notified`: the kernel notifies it of entries of the followed log.

    Where it does not, it doesn't look for them itself: the membership knows how often that is worth while.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._woken = threading.Event()
        self._tailing: Tailing | None = None
        self._log: str | None = None
        self.is_notified = False

    def wake(self) -> None:
        """End the wait that is going on, or else the next one."""
        self._woken.set()
        tailing = self._tailing
        if tailing is not None:
            tailing.wake()

    def follow(self, log: str | None) -> None:
        """Be notified of this log's entries, by its folder below the lake's root, and of no other's; None: of none."""
        if log == self._log:
            return
        tailing = self._tailing = self._tailing or Tailing(self._storage, self._clock)
        if self.is_notified and self._log is not None:
            tailing.remove(self._log)
        self._log, self.is_notified = log, False
        if log is not None:
            tailing.add(log)
            self.is_notified = tailing.hears(log)
            if not self.is_notified:
                tailing.remove(log)

    def wait(self, timeout_s: float | None) -> bool:
        """Whether the log may have grown; waits until it has, `wake`, or the time is over (None: no end)."""
        tailing = self._tailing
        if tailing is None:
            self._woken.wait(timeout_s)
            self._woken.clear()
            return False
        logs = tailing.wait(0.0 if self._woken.is_set() else timeout_s)
        self._woken.clear()
        if self.is_notified and self._log is not None and not tailing.hears(self._log):  # its folder is gone
            tailing.remove(self._log)
            self.is_notified = False
        return bool(logs)

    def close(self) -> None:
        """Give back what it holds; no thread may be waiting."""
        tailing, self._tailing = self._tailing, None
        if tailing is not None:
            tailing.close()
