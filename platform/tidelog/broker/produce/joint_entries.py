"""The entries of one topic at one broker: what it has staged itself, and what others have handed over, in one entry.

Parts that come while an entry is written share the next one, so nothing waits for company.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import OutcomeUnknownError, TidelogError
from tidelog.log.delta.actions import Metadata
from tidelog.log.group_commit.handing_over import HandedOver
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.joint_appends import PartAnswer, StagedShare
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)

_Waiting = tuple[StagedShare, "Future[Ranges]"]


class JointEntries:
    """Commits parts of one topic, one entry after another.

    `open_topic` gives a handle of it, or raises why it can't be had. `start` has a thread run a call, later; it may be
    called by any thread. `within_s`: how long an entry may take that others wait for, too.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        clock: Clock,
        start: Callable[[Callable[[], None]], None],
        within_s: float,
    ) -> None:
        self._open_topic = open_topic
        self._clock = clock
        self._start = start
        self._within_s = within_s
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._is_busy = False
        self._joint: JointAppend | None = None

    def digest(self, metadata: Metadata | None) -> str:
        """As `CommitPart.digest`."""
        return self._joint_append().digest(metadata)

    def commit(self, part: StagedShare, timeout_s: float) -> Ranges:
        """Commit a part, with what waits, in the thread that calls. Raises as `CommitPart`.

        While another thread commits, the part waits for the next entry: `HandedOver`.
        """
        answer: Future[Ranges] = Future()
        with self._lock:
            waiting = [(part, answer), *self._waiting]
            if self._is_busy:
                self._waiting.append((part, answer))
                raise HandedOver(answer)
            self._is_busy, self._waiting = True, []
        try:
            self._write(waiting, timeout_s if len(waiting) == 1 else max(timeout_s, self._within_s))
        finally:
            with self._lock:
                self._is_busy = bool(self._waiting)
            if self._is_busy:
                self._start(self._run)
        return answer.result()

    def add(self, part: StagedShare) -> "Future[Ranges]":
        """Have a part committed by some thread, soon: its offsets, or what `CommitPart` raises."""
        answer: Future[Ranges] = Future()
        with self._lock:
            self._waiting.append((part, answer))
            begins, self._is_busy = not self._is_busy, True
        if begins:
            self._start(self._run)
        return answer

    def _run(self) -> None:
        """Write entries until nothing waits."""
        while True:
            with self._lock:
                waiting, self._waiting = self._waiting, []
                self._is_busy = bool(waiting)
            if not waiting:
                return
            self._write(waiting, self._within_s)

    def _write(self, waiting: Sequence[_Waiting], timeout_s: float) -> None:
        """One entry of these; each gets its answer, whatever happens."""
        answers: Sequence[PartAnswer]
        try:
            answers = self._joint_append().commit([part for part, _ in waiting], timeout_s)
        except TidelogError as e:  # the topic can't be opened
            answers = [e] * len(waiting)
        except Exception:
            logger.exception("A commit failed by a fault in the program.")
            unknown = OutcomeUnknownError("The commit was broken off. Its records may be there.", request_id="")
            answers = [unknown] * len(waiting)
        for (_, answer), found in zip(waiting, answers, strict=True):
            if isinstance(found, dict):
                answer.set_result(found)
            else:
                answer.set_exception(found)

    def _joint_append(self) -> JointAppend:
        if self._joint is None:
            self._joint = JointAppend(self._open_topic(), self._clock)
        return self._joint
