"""The keeper of a process' leases: it renews each when it is due, however long the store of another one takes.

One thread waits for what is due, and each renewal has a thread of its own while it lasts, so that a store that hangs
holds up its own leases alone. All of them end with the process, and its leases stand still then. A forked process has
a keeper of its own, which keeps nothing yet: its parent goes on renewing what it had.
"""

import logging
import os
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.shared_threads import Rounds

logger = logging.getLogger(__name__)

# By process, as a fork copies it.
_keepers: Final[dict[int, "LeaseKeeper"]] = {}


class KeptLease:
    """A lease, or several in one store, that a keeper renews until `stop`. `what` it is, for the log."""

    def __init__(self, keeper: "LeaseKeeper", what: str, renew: Callable[[], object], every_s: float) -> None:
        self._keeper = keeper
        self._what = what
        self._renew = renew
        self._every_s = every_s
        self._rounds = Rounds(logger, f"Renewing {what}")
        self._process = os.getpid()
        self._began_s = 0.0
        self._late = 0
        self.is_under_way = False
        self.due_s = keeper.clock.elapsed_s() + every_s

    def stop(self) -> None:
        """Renew it no more; returns when no renewal is under way. In a forked process none is."""
        if os.getpid() == self._process:
            self._keeper.drop(self)

    def begin(self, now_s: float) -> bool:
        """Begin the renewal that is due; False where the one before is still under way, which is logged.

        Of those that are late one after the other the first, second, fourth, eighth … are logged.
        """
        self.due_s = now_s + self._every_s
        if not self.is_under_way:
            self.is_under_way, self._began_s, self._late = True, now_s, 0
            return True
        self._late += 1
        if not self._late & (self._late - 1):
            took_s = now_s - self._began_s
            logger.warning("Renewing %s has taken %.0f s so far: the store does not answer.", self._what, took_s)
        return False

    def renew(self) -> None:
        """Renew it. What that raises is logged."""
        with self._rounds.round():
            self._renew()


class LeaseKeeper:
    """Renews leases by a clock. May be called from many threads; its own ends when there is none to keep."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._changed = threading.Condition()
        self._kept: list[KeptLease] = []
        self._waits = False

    def keep(self, what: str, renew: Callable[[], object], every_s: float) -> KeptLease:
        """Have `renew` called every `every_s` seconds from now on, never twice at once, until `stop`."""
        kept = KeptLease(self, what, renew, every_s)
        with self._changed:
            if not self._waits:
                threading.Thread(target=self._run, name="tidelog-leases", daemon=True).start()
                self._waits = True
            self._kept.append(kept)
            self._changed.notify_all()
        return kept

    def drop(self, kept: KeptLease) -> None:
        """Renew it no more; returns when no renewal is under way."""
        with self._changed:
            if kept in self._kept:
                self._kept.remove(kept)
                self._changed.notify_all()
            while kept.is_under_way:
                self._changed.wait()

    def _run(self) -> None:
        while (kept := self._next()) is not None:
            renewing = threading.Thread(target=self._renew, args=(kept,), name="tidelog-lease", daemon=True)
            try:
                renewing.start()
            except RuntimeError:  # no thread can be had
                self._renew(kept)

    def _next(self) -> KeptLease | None:
        """Wait for the next renewal that begins; None when there is no lease to keep."""
        with self._changed:
            while self._kept:
                now_s = self.clock.elapsed_s()
                kept = min(self._kept, key=attrgetter("due_s"))
                if kept.due_s > now_s:
                    self._changed.wait(kept.due_s - now_s)
                elif kept.begin(now_s):
                    return kept
            self._waits = False
            return None

    def _renew(self, kept: KeptLease) -> None:
        try:
            kept.renew()
        finally:
            with self._changed:
                kept.is_under_way = False
                self._changed.notify_all()


def process_keeper() -> LeaseKeeper:
    """The keeper of this process, by the machine's clock."""
    process = os.getpid()
    return _keepers.get(process) or _keepers.setdefault(process, LeaseKeeper(SystemClock()))
