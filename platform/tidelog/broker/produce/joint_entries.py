"""The entries of one topic at one broker: what it has staged itself, and what others have handed over, in one entry.

Shares that come while an entry is written are in the next one together, so nothing waits for company.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.errors import OutcomeUnknownError, TidelogError
from tidelog.log.delta.actions import Metadata
from tidelog.log.rules.appends import AppendAnswer, StagedShare, refusal
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)

_Waiting = tuple[StagedShare, "Future[AppendAnswer]"]


class JointEntries:
    """Commits shares of one topic, one entry after another.

    `open_topic` gives a handle of it, or raises why it can't be had. `start` has a thread run a call, later; it may be
    called by any thread. `within_s`: how long an entry may take that others wait for, too.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        start: Callable[[Callable[[], None]], None],
        within_s: float,
    ) -> None:
        self._open_topic = open_topic
        self._start = start
        self._within_s = within_s
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        # Whether a thread commits, or is to; else nothing waits.
        self._is_busy = False
        self._topic: Topic | None = None

    def digest(self, metadata: Metadata | None) -> str:
        """As `ShareCommitter.digest`."""
        return self._joint_append().digest(metadata)

    def commit(self, share: StagedShare, timeout_s: float) -> AppendAnswer | Future[AppendAnswer]:
        """Commit a share in the thread that calls. While another one commits, it waits for the next entry."""
        with self._lock:
            if self._is_busy:
                return self._wait(share)
            self._is_busy = True
        try:
            return self._write([share], timeout_s)[0]
        finally:
            with self._lock:
                self._is_busy = bool(self._waiting)
            if self._is_busy:
                self._start(self._run)

    def add(self, share: StagedShare) -> Future[AppendAnswer]:
        """Have a share committed by some thread, soon."""
        with self._lock:
            answer = self._wait(share)
            begins, self._is_busy = not self._is_busy, True
        if begins:
            self._start(self._run)
        return answer

    def _wait(self, share: StagedShare) -> Future[AppendAnswer]:
        answer: Future[AppendAnswer] = Future()
        self._waiting.append((share, answer))
        return answer

    def _run(self) -> None:
        """Write entries until nothing waits."""
        while True:
            with self._lock:
                waiting, self._waiting = self._waiting, []
                self._is_busy = bool(waiting)
            if not waiting:
                return
            answers = self._write([share for share, _ in waiting], self._within_s)
            for (_, outcome), answer in zip(waiting, answers, strict=True):
                outcome.set_result(answer)

    def _write(self, shares: Sequence[StagedShare], timeout_s: float) -> Sequence[AppendAnswer]:
        """One entry of these; each gets its answer, whatever happens."""
        try:
            return self._joint_append().commit_all(shares, timeout_s)
        except TidelogError as e:  # the topic can't be opened
            return [refusal(e)] * len(shares)
        except Exception:
            logger.exception("A commit failed by a fault in the program.")
            unknown = OutcomeUnknownError("The commit was broken off. Its records may be there.", request_id="")
            return [refusal(unknown)] * len(shares)

    def _joint_append(self) -> JointAppend:
        if self._topic is None:
            self._topic = self._open_topic()
        return self._topic.joint
