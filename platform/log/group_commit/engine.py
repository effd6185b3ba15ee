"""Group commit: many producers' records for one topic become one log entry, and each learns what became of its own.

The engine has no thread and no state outside itself. Whoever owns it submits from any thread, asks when something is
due, and calls `run_once`; a gateway drives one for each topic. Order is that of submission.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    DeliveryTimeoutError,
    MissingSegmentError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    QueueFullError,
    SegmentTooOldError,
    TidelogError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.group_commit.batch import (
    REPEATED,
    Group,
    Landed,
    Limits,
    Submission,
    Waiting,
    counted,
    rows_by_partition,
)
from tidelog.log.rules.appends import ConfigurationChangedError, LogAppendTimeError
from tidelog.log.topic import Topic

__all__ = ["REPEATED", "GroupCommit", "Landed", "Limits", "Submission", "rows_by_partition"]

# What the log has become since the records were staged: they are looked at again and staged anew. Each comes from a
# decision over a newer state than the one before, in which the same can't be found again.
_STAGE_AGAIN = (
    ConfigurationChangedError,
    SegmentTooOldError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownPartitionError,
)


class GroupCommit:
    """Merges what waits for one topic. `submit` may be called from many threads, `run_once` too: they take turns.

    `open_topic` gives a fresh handle of the topic, and creates it where that is allowed; it is called again when the
    topic was deleted. `helpers` write segments beside the caller of `run_once`.
    """

    def __init__(
        self,
        open_topic: Callable[[], Topic],
        clock: Clock,
        ids: Ids,
        limits: Limits | None = None,
        helpers: Executor | None = None,
    ) -> None:
        self._open_topic = open_topic
        self._clock = clock
        self._ids = ids
        self._limits = limits or Limits()
        self._helpers = helpers
        self._topic: Topic | None = None
        self._lock = threading.Lock()
        self._driving = threading.Lock()
        self._queue: deque[Waiting] = deque()
        self._queued_bytes = 0
        self._held_bytes = 0
        self._group: Group | None = None
        # How often an entry was tried again since the engine began.
        self.retries = 0

    def submit(self, submission: Submission) -> Future[Landed]:
        """Let records wait for the next entry; the future is resolved by whoever calls `run_once`.

        Its error is what the records were refused for, or `DeliveryTimeoutError`. Raises `QueueFullError` when as much
        waits as may, `InvalidRecordError` when rows, partitions and sequences don't fit together.
        """
        counts = counted(submission, self._topic.name if self._topic else "")
        size = submission.table.nbytes
        now_s = self._clock.elapsed_s()
        waiting = Waiting(submission, Future(), now_s, now_s + submission.timeout_s, size, counts)
        with self._lock:
            held = self._queued_bytes + self._held_bytes
            if held and held + size > self._limits.waiting_bytes:
                raise QueueFullError(
                    f"{held} bytes of records wait to be committed, and no more than {self._limits.waiting_bytes} may:"
                    " the store takes them more slowly than they come. Try again, or send less."
                )
            self._queue.append(waiting)
            self._queued_bytes += size
        return waiting.future

    @property
    def waiting_bytes(self) -> int:
        """How much is submitted and not answered."""
        with self._lock:
            return self._queued_bytes + self._held_bytes

    def due_s(self) -> float | None:
        """In how many seconds `run_once` has something to do: 0 for now, None when nothing waits."""
        now_s = self._clock.elapsed_s()
        with self._lock:
            if self._group is not None:
                return max(0.0, self._group.not_before_s - now_s)
            if not self._queue:
                return None
            if self._queued_bytes >= self._limits.entry_bytes:
                return 0.0
            return max(0.0, self._queue[0].since_s + self._limits.linger_s - now_s)

    def run_once(self) -> None:
        """Commit what waits as one entry, due or not, or go on with the entry before, once its time has come.

        Returns when the attempt is over; whoever waits has been told, or a later call goes on.
        """
        with self._driving:
            with self._lock:
                group = self._group = self._group or self._take()
            if group is None or self._clock.elapsed_s() < group.not_before_s:
                return
            try:
                self._advance(group)
            except BaseException as e:  # even Ctrl-C: whoever waits must not wait for ever
                _fail(group, e)
                raise
            finally:
                if not group.open:
                    with self._lock:
                        self._group = None
                        self._held_bytes = 0

    def cancel(self, error: Exception, *, in_flight: bool = False) -> None:
        """Fail what waits, and with `in_flight` also what may already be on its way, with `error`."""
        with self._lock:
            queued, self._queue = self._queue, deque()
            self._queued_bytes = 0
            group = self._group
        for waiting in queued:
            waiting.fail(error)
        if in_flight and group is not None:
            _fail(group, error)

    def _take(self) -> Group | None:
        """The next entry's submissions, from the longest waiting on."""
        members: list[Waiting] = []
        taken = 0
        while self._queue and (not members or taken + self._queue[0].size <= self._limits.entry_bytes):
            members.append(self._queue.popleft())
            taken += members[-1].size
        self._queued_bytes -= taken
        self._held_bytes = taken
        return Group(members, self._ids.new()) if members else None

    def _advance(self, group: Group) -> None:
        try:
            while self._left_after_expiry(group):
                if self._attempt(group):
                    return
        except TidelogError as e:
            group.in_doubt = group.staged is not None and (group.in_doubt or isinstance(e, OutcomeUnknownError))
            if not group.in_doubt:
                group.unstage()
            self._put_off(group, e)

    def _attempt(self, group: Group) -> bool:
        """Stage and commit; False when the log has changed meanwhile and it is to be done again."""
        try:
            topic = self._topic = self._topic or self._open_topic()
            if group.staged is None:
                group.stage(topic, topic.now_ms(), self._helpers)
            deadlines = [m.deadline_s for m in group.open]
            if not (group.staged and deadlines):
                if not group.in_doubt:
                    group.unstage()
                return True  # all are answered: refused, repeats, or cancelled meanwhile
            ranges = topic.commit_once(
                group.staged,
                group.metadata,
                acks=min(m.submission.acks for m in group.staged_members),
                request_id=group.request_id,
                producers=group.producers(),
                timeout_s=max(0.0, min(deadlines) - self._clock.elapsed_s()),
            )
        except LogAppendTimeError as e:
            group.at_least_ms = e.at_least_ms
        except (TopicChangedError, UnknownTopicError) as e:
            if isinstance(e, UnknownTopicError) and self._topic is None:
                raise
            self._topic = None
        except _STAGE_AGAIN:
            pass
        except MissingSegmentError:
            group.in_doubt = False  # no entry of this request is there; what took its segments may take the next ones
            raise
        except OutcomeUnknownError:
            group.unknown += 1
            if group.unknown > 1 and all(m.submission.producer for m in group.staged_members):
                # The sequences tell what landed: whichever entry comes first, the other adds nothing.
                group.request_id = self._ids.new()
                group.unknown = 0
            raise
        else:
            group.share(ranges)
            return True
        group.in_doubt = False  # the decision was reached, so no entry of this request is there
        group.unstage()
        return False

    def _left_after_expiry(self, group: Group) -> bool:
        """Answer the members whose time is up; False when none is left."""
        now_s = self._clock.elapsed_s()
        late = [m for m in group.open if m.deadline_s <= now_s]
        for member in late:
            member.fail(_timeout(member, group))
        if late and not group.in_doubt:
            group.unstage()
        return bool(group.open)

    def _put_off(self, group: Group, error: TidelogError) -> None:
        """Try again later, or give up."""
        group.attempts += 1
        if not (error.retriable and group.attempts <= self._limits.retries):
            _fail(group, error)
            return
        pause_s = min(self._limits.backoff_s * 2 ** min(group.attempts - 1, 30), self._limits.most_backoff_s)
        self.retries += 1
        # Not past the time when somebody must be told.
        first_s = min((m.deadline_s for m in group.open), default=0.0)
        group.not_before_s = min(self._clock.elapsed_s() + pause_s * (0.8 + 0.4 * self._ids.fraction()), first_s)


def _fail(group: Group, error: BaseException) -> None:
    for member in group.open:
        member.fail(error)


def _timeout(member: Waiting, group: Group) -> DeliveryTimeoutError:
    seconds = member.submission.timeout_s
    if group.in_doubt:
        return DeliveryTimeoutError(
            f"Whether these records were committed is not known: the store gave no answer in {seconds:g} s. They may be"
            " there. Read the topic to see.",
            maybe_persisted=True,
        )
    return DeliveryTimeoutError(
        f"These records could not be committed within {seconds:g} s, and are not there. Send them again.",
        maybe_persisted=False,
    )
