"""What a process knows of time: by its machine's two clocks, and by the store's.

A machine that its hypervisor pauses (for a snapshot, or a live migration) doesn't notice: no clock runs inside it,
while other machines go on writing to the store. Only the store's times of objects tell how long that was.
"""

from dataclasses import dataclass, replace

from tidelog.log import layout
from tidelog.log.clock import Clock
from tidelog.log.storage.port import Storage

# How old what is known of the store's clock may be when somebody writes.
LEARN_EVERY_S = 600.0
# Some stores tell whole seconds only.
RESOLUTION_MS = 1_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment: seconds on the elapsed clock, ms since the epoch on the machine's wall clock.

    `store_ms`: what the store's clock showed then, or already before; None while nothing is known of it.
    """

    elapsed_s: float
    wall_ms: float
    store_ms: float | None


NEVER = Moment(float("-inf"), float("-inf"), None)


@dataclass(frozen=True, slots=True)
class _Learnt:
    """An object got the store's time `stored_ms` between two moments of the machine's."""

    began: Moment
    ended: Moment
    stored_ms: int


class StoreTime:
    """The clocks that one process goes by at one store. For any number of threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._learnt: _Learnt | None = None

    def moment(self) -> Moment:
        """Now.

        The store's time goes on from what was last learnt by the elapsed clock, which never jumps. It may lag, by the
        time that an answer took and by every pause of the machine since, and is never ahead.
        """
        elapsed_s, learnt = self._clock.elapsed_s(), self._learnt
        store_ms = None
        if learnt is not None:
            store_ms = learnt.stored_ms + (elapsed_s - learnt.ended.elapsed_s) * 1000
        return Moment(elapsed_s, self._clock.now_ms(), store_ms)

    def passed_s(self, since: Moment) -> float:
        """The seconds since a moment, by the clock that says most.

        A wall clock is set right after a pause, of which the elapsed clock may never hear; it may also be set back.
        What was learnt of the store meanwhile, by any log of the process, tells of a pause too; infinity where it was
        the first that was learnt, so that a pause before it can't be ruled out.
        """
        now = self.moment()
        passed_s = max(now.elapsed_s - since.elapsed_s, (now.wall_ms - since.wall_ms) / 1000)
        if now.store_ms is None:
            return passed_s
        return max(passed_s, float("inf") if since.store_ms is None else (now.store_ms - since.store_ms) / 1000)

    def learn(self, began: Moment, ended: Moment, stored_ms: int) -> None:
        """Note the store's time of an object that it stored between two moments."""
        self._learnt = _Learnt(began, replace(ended, store_ms=stored_ms), stored_ms)

    def keep(self, storage: Storage, folder: str) -> None:
        """Learn the store's time by an object in the log's folder, if other machines write there and it is due."""
        if not storage.is_shared or not self._is_due():
            return
        path, began = f"{folder}/{layout.CLOCK_FILE}", self.moment()
        storage.put(path, b"")
        stored_ms = storage.head(path).modified_ms
        self.learn(began, self.moment(), stored_ms)

    def _is_due(self) -> bool:
        return self._learnt is None or self.passed_s(self._learnt.ended) > LEARN_EVERY_S
