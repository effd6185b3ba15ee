"""What a process knows of time: by its machine's two clocks, and by the store's.

A machine that its hypervisor pauses (for a snapshot, or a live migration) doesn't notice: no clock runs inside it,
while other machines go on writing to the store. Only the store's times of objects tell how long that was.
"""

from dataclasses import dataclass, replace

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import InvalidTimestampError
from tidelog.log.delta import layout
from tidelog.log.storage.port import OnThisMachine, Storage

# How old what is known of the store's clock may be at a write.
LEARN_EVERY_S = 600.0
# Some stores tell whole seconds only.
RESOLUTION_MS = 1_000
# A wall clock may be off by this much, and is corrected; one that is off by more is wrong, and no writer uses it.
MOST_OFF_MS = 3_600_000
# How far the two clocks of a machine may drift apart before what was learnt by one of them is in doubt.
_DRIFT_S = 1.0


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

    @property
    def off_ms(self) -> int:
        """How far the store's clock is ahead of the wall clock, as far as that is certain: 0 where they may agree."""
        least, most = self.stored_ms - self.ended.wall_ms, self.stored_ms + RESOLUTION_MS - self.began.wall_ms
        return int(least) if least > 0 else int(min(most, 0))


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
        What was learnt of the store meanwhile, by any log of the process, shows a pause too; infinity where it was
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
        """Learn the store's time by an object in the log's folder, if that is due.

        Not where there is no other clock: in this process's memory.
        """
        if not self._is_due() or not (storage.is_shared or isinstance(storage, OnThisMachine)):
            return
        path, began = f"{folder}/{layout.CLOCK_FILE}", self.moment()
        storage.put(path, b"")
        stored_ms = storage.head(path).modified_ms
        self.learn(began, self.moment(), stored_ms)

    def _is_due(self) -> bool:
        if self._learnt is None:
            return True
        now, ended = self.moment(), self._learnt.ended
        elapsed_s, wall_s = now.elapsed_s - ended.elapsed_s, (now.wall_ms - ended.wall_ms) / 1000
        return max(elapsed_s, wall_s) > LEARN_EVERY_S or abs(elapsed_s - wall_s) > _DRIFT_S

    def now_ms(self) -> int:
        """The wall clock, corrected by what the store's says: ms since the epoch."""
        return self._clock.now_ms() + (0 if self._learnt is None else self._learnt.off_ms)

    def judged_ms(self) -> int:
        """The same, for a writer whose records are judged by it, as a broker's clock judges them.

        Raises `InvalidTimestampError` where the wall clock is off by more than an hour.
        """
        off_ms = 0 if self._learnt is None else self._learnt.off_ms
        if abs(off_ms) > MOST_OFF_MS:
            raise InvalidTimestampError(
                f"This machine's clock is {abs(off_ms) // 1000} s {'behind' if off_ms > 0 else 'ahead of'} the store's,"
                " more than an hour: records would get its times, which keep others from expiring, or expire at once."
                " Nothing was written. Set the clock (NTP), and send them again."
            )
        return self.now_ms()
