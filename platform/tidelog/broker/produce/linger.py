"""When what waits for a topic becomes an entry: a rule of values, and the budget of files that it asks.

Small appends cost files, not entries: about a quarter of a millisecond of a processor for each partition that an entry
touches, and the work of maintenance later. So files a second are bounded, by less where the process has little time to
spare. Without need nothing waits: what comes while an entry is written shares the next one anyway.
"""

from collections.abc import Callable, Iterable
from typing import Final

from tidelog.broker.base.settings import Linger

# How long an entry waits for the producers that the one before has answered: for this part of the time that one took,
# and no longer than this.
_SHARE: Final = 0.25
_MOST_S: Final = 0.005
# An entry's share of the topic's next checkpoint, which is a file, too: by the default of log.checkpoint.interval.
_OF_A_CHECKPOINT: Final = 1 / 150


class FileBudget:
    """A bucket of files that refills at `file_rate` up to `linger.file_burst`. Time comes with the calls.

    `load(now_s)`: the share of a core that the process takes, of late.
    """

    def __init__(self, linger: Linger, now_s: float, load: Callable[[float], float]) -> None:
        self._linger = linger
        self._load = load
        self._left = linger.file_burst
        self._at_s = now_s

    def rate(self, now_s: float) -> float:
        """The files a second by which it refills now."""
        return file_rate(self._linger, self._load(now_s))

    def left(self, now_s: float) -> float:
        """The files that may be written now; below 0, the budget is in debt."""
        gained = (now_s - self._at_s) * self.rate(now_s)
        self._left, self._at_s = min(self._linger.file_burst, self._left + gained), now_s
        return self._left

    def told(self, left: float, now_s: float) -> None:
        """The topic's committer says how many are left: it knows what all brokers write."""
        self._left, self._at_s = left, now_s

    def take(self, files: int, now_s: float) -> None:
        """An entry writes `files` small ones. Where it writes any, its share of a checkpoint counts, too."""
        self._left = self.left(now_s) - (files + _OF_A_CHECKPOINT if files else 0)


def file_rate(linger: Linger, load: float) -> float:
    """The small files a second that a topic may cost in a process of this load, a share of a core.

    It falls in a line between `spare` and `busy`: a broker that comes near its limit takes fewer files for what it has
    to do, and does not swing between the two.
    """
    part = min(1.0, max(0.0, (linger.busy - load) / (linger.busy - linger.spare)))
    return linger.file_rate + part * (linger.spare_file_rate - linger.file_rate)


def due_in_s(linger: Linger, files_left: float, rate: float, waiting_bytes: int, waited_s: float) -> float:
    """In how many seconds what waits is due; 0: now. `waited_s`: how long its oldest record has waited.

    `rate`: the files a second by which the budget refills.

    A full entry costs no more than its bytes, so it never waits. A budget that is more than half full asks for no
    linger. Else records linger for others, and until the budget is out of debt; `linger.linger_max_s` at most.
    """
    if waiting_bytes >= linger.enough_bytes:
        return 0.0
    lingers_s = linger.linger_s - waited_s if files_left < linger.file_burst / 2 else 0.0
    in_debt_s = -files_left / rate
    return max(0.0, min(linger.linger_max_s - waited_s, max(lingers_s, in_debt_s)))


def small_files(linger: Linger, sizes: Iterable[tuple[int, int]]) -> int:
    """How many small files an entry writes, by the (partition, bytes) of its batches."""
    totals: dict[int, int] = {}
    for partition, size in sizes:
        totals[partition] = totals.get(partition, 0) + size
    return sum(size < linger.small_file_bytes for size in totals.values())


class NextRound:
    """Producers that were just answered send again at once. An entry that waits for them costs the files of one.

    A client has a few requests on their way at most. What comes while an entry is written would else make an entry of
    its own, for ever, and the files of each topic twice as many. Time comes with the calls.
    """

    def __init__(self) -> None:
        self._units = 0
        self._until_s = float("-inf")

    def answered(self, units: int, waiting: int, took_s: float, now_s: float) -> None:
        """An entry of `units` is answered, which took so long; `waiting` others wait."""
        self._units = units + waiting
        self._until_s = now_s + min(_SHARE * took_s, _MOST_S)

    def completed_by(self, waiting: int) -> bool:
        """Whether the last of the units that wait is the last that was waited for."""
        return waiting == self._units

    def left_s(self, waiting: int, now_s: float) -> float:
        """How long the units that wait do so for others; 0: no longer."""
        return max(0.0, self._until_s - now_s) if waiting < self._units else 0.0


class Overlap:
    """When the next entry is staged while one is committed: as late as may be, so that it holds what came meanwhile.

    Where commits are short nothing is gained, and entries would be twice as many. Times are seconds; of staging and of
    committing an entry the later ones count more.
    """

    def __init__(self, linger: Linger) -> None:
        self._least_s = linger.overlap_s
        self._staging_s = self._commit_s = 0.0

    def wrote(self, took_s: float) -> None:
        """An entry was staged and committed; which part was staging is taken from those before, else for half."""
        both_s = self._staging_s + self._commit_s
        part = self._staging_s / both_s if both_s else 0.5
        self.staged(part * took_s)
        self.committed((1 - part) * took_s)

    def staged(self, took_s: float) -> None:
        """An entry was staged ahead."""
        self._staging_s = _smoothed(self._staging_s, took_s)

    def committed(self, took_s: float) -> None:
        """An entry that was staged ahead was committed."""
        self._commit_s = _smoothed(self._commit_s, took_s)

    def begins_in_s(self, *, is_staged: bool) -> float | None:
        """How long after an entry has begun the next one is to be staged; None: not before that one is committed.

        `is_staged`: whether only its commit is left.
        """
        if self._commit_s < self._least_s:
            return None
        return max(0.0, self._commit_s - self._staging_s) if is_staged else self._commit_s


def _smoothed(before: float, now: float) -> float:
    return (before + now) / 2 if before else now
