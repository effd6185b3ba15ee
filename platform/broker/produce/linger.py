"""When what waits for a topic becomes an entry: a rule of values, and the budget of files that it asks.

Small appends cost files, not entries: about half a millisecond of a processor for each partition that an entry
touches. So files a second are bounded. Without need nothing waits: what comes while an entry is written shares the
next one anyway.
"""

from collections.abc import Iterable

from tidelog.broker.base.settings import Linger


class FileBudget:
    """A bucket of files that refills at `linger.file_rate` up to `linger.file_burst`. Time comes with the calls."""

    def __init__(self, linger: Linger, now_s: float) -> None:
        self._linger = linger
        self._left = linger.file_burst
        self._at_s = now_s

    def left(self, now_s: float) -> float:
        """The files that may be written now; below 0, the budget is in debt."""
        gained = (now_s - self._at_s) * self._linger.file_rate
        self._left, self._at_s = min(self._linger.file_burst, self._left + gained), now_s
        return self._left

    def told(self, left: float, now_s: float) -> None:
        """The topic's committer says how many are left: it knows what all brokers write."""
        self._left, self._at_s = left, now_s

    def take(self, files: int, now_s: float) -> None:
        """`files` small ones are written."""
        self._left = self.left(now_s) - files


def due_in_s(linger: Linger, files_left: float, waiting_bytes: int, waited_s: float) -> float:
    """In how many seconds what waits is due; 0: now. `waited_s`: how long its oldest record has waited.

    A full entry costs no more than its bytes, so it never waits. A budget that is more than half full asks for no
    linger. Else records linger for others, and until the budget is out of debt; `linger.linger_max_s` at most.
    """
    if waiting_bytes >= linger.enough_bytes:
        return 0.0
    lingers_s = linger.linger_s - waited_s if files_left < linger.file_burst / 2 else 0.0
    in_debt_s = -files_left / linger.file_rate
    return max(0.0, min(linger.linger_max_s - waited_s, max(lingers_s, in_debt_s)))


def small_files(linger: Linger, sizes: Iterable[tuple[int, int]]) -> int:
    """How many small files an entry writes, by the (partition, bytes) of its batches."""
    totals: dict[int, int] = {}
    for partition, size in sizes:
        totals[partition] = totals.get(partition, 0) + size
    return sum(size < linger.small_file_bytes for size in totals.values())
