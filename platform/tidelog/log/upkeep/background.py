"""A log's upkeep: checkpoints and trimming, in the background of the programs that commit.

The writer that commits a version due for a checkpoint writes that checkpoint, so that there is one checkpointer at a
time without an election; a writer that ends soon writes an overdue one before.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.checkpoints.reading import newest_checkpoint_version
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.door.commit_loop import Door
from tidelog.log.door.topic_machine import stored_config
from tidelog.log.upkeep.lake_context import LakeContext
from tidelog.log.upkeep.trim import trim

logger = logging.getLogger("tidelog.log")

# Behind the head, a listing of the log folder is complete: entries are not created there any more.
LAG = 100
# The chores run this many lags before a checkpoint is due: their entries are below the version that the checkpoint is
# pinned at.
CHORES_LEAD = 2
LEAST_CHECKPOINT_SPACING_S = 1.0
# A checkpoint takes the longer the more segments there are. It may take this part of the time, and as much again for
# each interval by which the log has grown meanwhile: a program that opens it reads all that.
CHECKPOINTS_SHARE = 0.2
LEAST_TRIM_SPACING_S = 20.0
# How a process remembers when the log grew, for half an hour.
MARKS_APART_S = 0.5
MARKS = 4096


@dataclass(frozen=True, slots=True)
class UpkeepRules:
    """`interval`: entries between checkpoints. `min_age_ms`: how long entries are kept at least."""

    interval: int
    min_age_ms: int

    @property
    def lag(self) -> int:
        """How far behind the head a checkpoint is pinned."""
        return min(LAG, self.interval // 5)


def due_version(head: int, newest: int, rules: UpkeepRules) -> int | None:
    """The version to write a checkpoint of when `newest` is the newest checkpoint's, or None when none is due."""
    pinned = head - rules.lag
    return pinned if pinned - newest >= rules.interval - rules.lag else None


def spacing_s(took_s: float, intervals: float) -> float:
    """How long after the beginning of a checkpoint that took `took_s` the next one may begin.

    `intervals`: how far the head is from it by now.

    >>> spacing_s(0.1, 1), spacing_s(1, 1), spacing_s(1, 2), spacing_s(1, 100)
    (1.1, 6.0, 3.5, 2.0)
    """
    return took_s + max(took_s / min(CHECKPOINTS_SHARE * intervals, 1), LEAST_CHECKPOINT_SPACING_S)


class Upkeep:
    """Upkeep of one log. `after_commit` is cheap; the work runs in the lake's background, one piece at a time.

    `chores`: work on this kind of log before each checkpoint, so that the checkpoint has its result.
    """

    def __init__(
        self,
        door: Door[Any],
        lake: LakeContext,
        chores: Sequence[Callable[[], object]] = (),
    ) -> None:
        self._door = door
        self._lake = lake
        self._clock = lake.clock
        self._chores = tuple(chores)
        self._busy = threading.Lock()
        self._looked = self._committed = False
        # (version, when) of some of this process's commits, oldest first.
        self._marks: deque[tuple[int, float]] = deque(maxlen=MARKS)
        self._trimmed_s = float("-inf")
        self._took_s = 0.0
        # The rules as of a topic's metadata and a lake's configuration: each commit asks for them.
        self._ruled: tuple[object, object, UpkeepRules] | None = None

    def after_commit(self, version: int) -> Future[None] | None:
        """Start a checkpoint in the background if `version`, which this process committed, is due for one.

        Raises nothing: the caller's commit is done, whatever becomes of the upkeep.
        """
        self._committed = True
        self._mark(version)
        try:
            rules = self._rules()
            if version > 0 and version % rules.interval == 0:
                return self._lake.background.submit(self._run, (partial(self._checkpoint, False), self._trim), False)
            if self._chores and (version + CHORES_LEAD * rules.lag) % rules.interval == 0:
                return self._lake.background.submit(self._run, self._chores, False)
            return None
        except (InvalidConfigError, RuntimeError):  # another tidelog's configuration; or the lake was closed meanwhile
            logger.warning("Upkeep of %s is put off.", self._door.folder, exc_info=True)
            return None

    def catch_up(self) -> None:
        """Write an overdue checkpoint now, as a writer does that is about to end; a program that only read does not."""
        if not self._committed:
            return
        try:
            due = due_version(self._door.state.version, self._door.checkpoint_version, self._rules())
        except InvalidConfigError:  # another tidelog's configuration
            logger.warning("Upkeep of %s is put off.", self._door.folder, exc_info=True)
            return
        if due is not None:
            self._run((*self._chores, partial(self._checkpoint, True), self._trim), True)

    def _run(self, works: Sequence[Callable[[], object]], ending: bool) -> None:
        if not self._busy.acquire(blocking=ending):
            return
        try:
            for work in works:  # one that fails doesn't hold up the others
                try:
                    work()
                except Exception:
                    # The log works without: the next due commit tries again, and 'tidelog check' says what is overdue.
                    logger.warning("Upkeep of %s failed; it is tried again later.", self._door.folder, exc_info=True)
        finally:
            self._busy.release()

    def _trim(self) -> None:
        if self._clock.elapsed_s() - self._trimmed_s >= LEAST_TRIM_SPACING_S:
            trim(self._door.storage, self._door.folder, self._rules().min_age_ms)
            self._trimmed_s = self._clock.elapsed_s()

    def _rules(self) -> UpkeepRules:
        state, defaults, memo = self._door.state, self._lake.config(), self._ruled
        if memo is None or memo[0] is not state.metadata or memo[1] is not defaults:
            keys = (TopicConfig.log_checkpoint_interval, TopicConfig.log_min_age_ms)
            config = stored_config(self._door.folder, state.overrides, defaults, *keys)
            rules = UpkeepRules(config.log_checkpoint_interval, config.log_min_age_ms)
            memo = self._ruled = (state.metadata, defaults, rules)
        return memo[2]

    def _mark(self, version: int) -> None:
        now_s = self._clock.elapsed_s()
        if not self._marks or now_s - self._marks[-1][1] >= MARKS_APART_S:
            self._marks.append((version, now_s))

    def _since_s(self, version: int) -> float:
        """For how long the log's head has been past `version` at least, as this process saw it."""
        now_s = self._clock.elapsed_s()
        return now_s - next((s for v, s in self._marks if v >= version), now_s)

    def _checkpoint(self, ending: bool) -> None:
        door, rules = self._door, self._rules()
        newest = newest_checkpoint_version(door.storage, door.folder)
        version = due_version(door.state.version, newest, rules)
        looked, self._looked = self._looked, True
        if version is None:  # nothing is due; the newest one may be at the head
            return
        # The newest one was begun when the head was there; how long before our first look is not known.
        spaced = (
            not looked
            or newest < 0
            or self._since_s(newest + rules.lag)
            >= spacing_s(self._took_s, (door.state.version - newest) / rules.interval)
        )
        if not (spaced or ending):
            return
        door.unsynced.drop(newest)
        began_s = self._clock.elapsed_s()
        self._write(version)
        self._took_s = self._clock.elapsed_s() - began_s

    def checkpoint(self, version: int) -> None:
        """Write a checkpoint of `version` now, whatever is due, as maintenance of a log at rest does."""
        with self._busy:
            self._write(version)

    def _write(self, version: int) -> None:
        door = self._door
        # A program that opens the log from this checkpoint does not see which segments were not synced.
        door.storage.sync(door.path(p) for p in door.unsynced.up_to(version))
        # Never taken back, however long this takes: another writer may have written the same one meanwhile, and a
        # floor may rest on it.
        self._lake.checkpointer(door.folder, version, self._clock.now_ms())
        door.unsynced.drop(version)
        door.checkpoint_version = max(door.checkpoint_version, version)
