"""One producer's transactions: executes what `lifecycle` says is to be done. It knows no client.

init -> begin -> stage, add_offsets ... -> commit | abort -> begin ...
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from typing import NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    OutcomeUnknownError,
    ProducerFencedError,
    SegmentTooOldError,
    TidelogError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Ranges
from tidelog.log.segments.writer import Staged
from tidelog.transactions.lifecycle import (
    REFUSALS,
    Effect,
    Event,
    TransactionPhase,
    TransactionStage,
    move,
    refusal,
    timed_out,
)
from tidelog.transactions.model import Intent, IntentPart, Transactional, TransactionKey, Verdict
from tidelog.transactions.ports import GroupIdentity, GroupOffsets, NoGroups, OffsetToCommit
from tidelog.transactions.roll_forward import CompletionMarkers, complete, roll_forward
from tidelog.transactions.staged_topics import StagedTopics
from tidelog.transactions.transaction_log import TransactionLog

R = TypeVar("R")

# Kafka's default of `transaction.timeout.ms`.
TIMEOUT_MS = 60_000
# How often a request is made when the store gives no answer: each repeat sees what is in the log.
_TRIES = 3

# What became of a transaction after a request to abort it, which leaves none open.
_FOUND = {
    Verdict.ABORTED: Event.FOUND_ABORTED,
    Verdict.COMMITTED: Event.FOUND_COMMITTED,
    Verdict.SETTLED: Event.FOUND_SETTLED,
}


class TransactionManager:
    """The transactions of one producer with a transactional id.

    For one thread at a time, but for `stage`, which several may call at once for different topics.

    What the producer can't go on after, `ProducerFencedError` and `UnknownTransactionalIdError`, every later call
    raises again. `helpers` write segments beside the caller.
    """

    def __init__(
        self,
        lake: Lake,
        transactional_id: str,
        groups: GroupOffsets | None = None,
        *,
        timeout_ms: int = TIMEOUT_MS,
        helpers: Executor | None = None,
    ) -> None:
        self._lake = lake
        self._log = TransactionLog(lake)
        self._groups = groups or NoGroups()
        self._transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._helpers = helpers
        self._stage = TransactionStage.NEW
        self._effects: dict[Effect, Callable[[], None]] = {
            **{effect: partial(self._refuse, effect) for effect in REFUSALS},
            Effect.START_EPOCH: self._start_epoch,
            Effect.START_TIMER: self._start_timer,
            Effect.REQUIRE_IN_TIME: self._require_in_time,
            Effect.SEAL: self._wait_for_adders,
            Effect.FINISH_STAGING: self._finish_staging,
            Effect.REQUEST_INTENT: self._request_intent,
            Effect.APPLY: self._apply,
            Effect.REQUEST_ABORT: lambda: self._abort_in_log(is_known=True),
            Effect.ABORT_OFFSETS: lambda: self._abort_in_log(is_known=bool(self._pending)),
            Effect.CLEAN_UP: self._clean_up,
            Effect.DELETE_STAGED: lambda: self._staged.drop(),
            Effect.RESET: self._reset,
        }
        self._fatal: Exception | None = None
        self._turn = threading.Condition()
        self._adders = 0  # threads that are adding something
        self._id: Transactional | None = None
        self._number = 0  # of the last transaction that is over
        self._decided = 0  # of the last one that the log has decided
        self._committed_batch = -1
        self._ranges: dict[str, Ranges] = {}  # of the commit under way
        self._markers = CompletionMarkers(lake, self._log)
        self._reset()

    def _reset(self) -> None:
        self._staged = StagedTopics(self._lake, self._helpers)
        self._pending: dict[str, None] = {}  # groups that offsets were added of
        self._parts: tuple[IntentPart, ...] | None = None
        self._missing: BaseException | None = None
        self._batch: int | None = None
        self._intent: Intent | None = None
        self._began_s = 0.0

    @property
    def phase(self) -> TransactionPhase:
        """Where the producer is."""
        return self._stage.phase

    @property
    def transactional_id(self) -> str:
        """The producer's transactional id."""
        return self._transactional_id

    @property
    def committed_batch(self) -> int:
        """The batch that this id committed last, -1 for none: see `commit`."""
        return self._committed_batch

    # --- a caller's requests -------------------------------------------------------------------------------

    def init(self) -> Transactional:
        """Fence every earlier producer of this id, and finish what one has committed; returns the id as it is then.

        Its open transactions are aborted by that. Once, unless it failed. Raises `InvalidTransactionStateError`,
        `InvalidTransactionTimeoutError`, `StorageError`, `OutcomeUnknownError` (repeat it).
        """
        self._take(Event.INIT)
        assert self._id is not None
        return self._id

    def begin(self) -> None:
        """Begin a transaction. It costs nothing: the log hears of it when offsets are added, or it is committed."""
        self._take(Event.BEGIN)

    def stage(
        self, topic: str, table: pa.Table, partitions: npt.NDArray[np.int32], compression: str | None = None
    ) -> None:
        """Write records that no reader sees until the transaction is committed. Raises as `StagedTopics.add`."""
        with self._adding():
            self._staged.add(topic, table, partitions, compression)

    def add_staged(self, topic: str, staged: Iterable[Staged]) -> None:
        """Take segments that others have written (Spark's tasks). Raises `TopicChangedError`."""
        with self._adding():
            self._staged.add_staged(topic, staged)

    def add_offsets(self, group: GroupIdentity, offsets: Mapping[tuple[str, int], OffsetToCommit]) -> None:
        """Commit offsets of {(topic, partition)} for a group when, and only when, the transaction is committed.

        Raises what a commit of offsets raises: abort the transaction then.
        """
        with self._adding():
            if offsets:
                self._pending[group.group_id] = None
                self._again(lambda: self._groups.add_pending(group, offsets, self._key()))

    def mark_incomplete(self, error: BaseException) -> None:
        """Something that was to be in the transaction is not, for this reason: it can only be aborted."""
        with self._turn:
            stage = move(self._stage, Event.MARK_INCOMPLETE, self._transactional_id).stage
            if stage is not self._stage:
                self._stage, self._missing = stage, error

    def commit(self, batch: int | None = None) -> dict[str, Ranges]:
        """Commit the transaction; {topic: {partition: (first offset, end offset)}} of what it appended.

        `batch`: the caller's own number of it, which rises from one to the next: a batch that was committed before, in
        this epoch or an earlier one, is not committed again (offsets are not added with batches).
        Raises `TransactionAbortedError`, `TopicChangedError`, `StorageError` before it is decided: abort it. Raises
        `OutcomeUnknownError`, `StorageError` in phase COMMITTING: call commit again, until it returns.
        """
        self._batch, self._ranges = batch, {}
        self._take(Event.COMMIT)
        return self._ranges

    def abort(self) -> None:
        """Abort the transaction: nothing of it is ever seen.

        Raises `InvalidTransactionStateError` when it turns out to be committed: call commit, which finishes it.
        Raises `ProducerFencedError`, by which it is aborted too, unless its commit had no answer: then its successor
        has finished or aborted it. Raises `StorageError`, `OutcomeUnknownError`: repeat it.
        """
        self._take(Event.ABORT)

    def close(self) -> None:
        """End: what is open is aborted. A transaction that is being committed is left to its next finisher."""
        if self.phase is TransactionPhase.OPEN:
            self.abort()
        self._markers.close()

    # --- the table's shell ---------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        """Move by an event, and execute what that asks for."""
        with self._turn:
            if self._fatal is not None:
                raise self._fatal
            moved = move(self._stage, event, self._transactional_id)
            self._stage = moved.stage
        for effect in moved.effects:
            self._effects[effect]()

    @contextmanager
    def _adding(self) -> Iterator[None]:
        """What fails to be added is missing: then the transaction can't be committed any more."""
        with self._turn:
            self._take(Event.ADD)
            self._adders += 1
        try:
            yield
        except BaseException as e:
            self.mark_incomplete(e)
            raise
        finally:
            with self._turn:
                self._adders -= 1
                self._turn.notify_all()

    def _wait_for_adders(self) -> None:
        with self._turn:
            self._turn.wait_for(lambda: not self._adders)

    def _fence(self, error: Exception) -> None:
        try:
            self._take(Event.FENCE)
        finally:
            self._fatal = error

    # --- effects: beginning --------------------------------------------------------------------------------

    def _start_epoch(self) -> None:
        self._id = self._again(lambda: self._log.init(self._transactional_id, self._timeout_ms))
        self._number, self._committed_batch = 0, self._id.batch
        self._complete_earlier()
        self._take(Event.INITIALIZED)

    def _start_timer(self) -> None:
        self._began_s = self._lake.clock.elapsed_s()

    # --- effects: committing -------------------------------------------------------------------------------

    def _require_in_time(self) -> None:
        if self._lake.clock.elapsed_s() - self._began_s > self._timeout_ms / 1000:
            raise timed_out(self._transactional_id, self._timeout_ms)

    def _finish_staging(self) -> None:
        is_repeat = self._batch is not None and self._batch == self._committed_batch
        if self._parts is None and not is_repeat:
            try:
                self._parts = self._staged.parts()
            except BaseException as e:  # a part may be lost by that: then the rest counts for nothing
                self.mark_incomplete(e)
                raise
        is_empty = not self._parts and not self._pending and self._batch is None
        self._take(Event.EMPTY if is_repeat or is_empty else Event.STAGED)

    def _request_intent(self) -> None:
        try:
            self._intent = self._intent_from_log()
        except (ProducerFencedError, UnknownTransactionalIdError) as e:
            self._fence(e)
            raise
        except TransactionAbortedError:
            self._take(Event.OVERRULED)
            raise
        except TidelogError:  # an outcome that is unknown was reported before
            self._take(Event.REFUSED)
            raise
        if self._batch is not None:
            self._committed_batch = self._batch
        self._take(Event.DECIDED)

    def _intent_from_log(self) -> Intent | None:
        """Have the log decide; None when nothing of the intent is left to be applied."""
        written_again = 0
        while True:
            parts, groups = self._parts or (), tuple(self._pending)
            request = partial(self._log.intent, self._key(), parts, groups, self._batch, self._markers.completed)
            try:
                return self._again(request, no_answer=Event.NO_ANSWER)
            except ConcurrentTransactionsError:
                self._complete_earlier()
            except SegmentTooOldError:
                if (written_again := written_again + 1) > _TRIES:
                    raise
                self._staged.write_again()
                self._parts = self._staged.parts()
            except InvalidTransactionStateError:
                if (
                    self._stage is not TransactionStage.REQUESTED
                    or self._log.check_epoch(self._key()).number <= self._number
                ):
                    raise
                # Its number, which it never asked for, is taken.
                self._refuse(Effect.REFUSE_ABORTED)

    def _apply(self) -> None:
        if (intent := self._intent) is not None:
            key = TransactionKey(self._transactional_id, self._key().producer_id, intent.epoch, intent.number)
            self._ranges = self._again(lambda: roll_forward(self._lake, self._groups, key, intent, self._helpers))
            self._markers.applied(key)
        self._number += 1
        self._take(Event.APPLIED)

    # --- effects: aborting ---------------------------------------------------------------------------------

    def _abort_in_log(self, *, is_known: bool) -> None:
        """Abort the transaction where the log may know of it; what it says is reported."""
        key = self._key()
        try:
            outcome = self._again(lambda: self._log.abort(key)) if is_known else Verdict.ABORTED
            if outcome is not Verdict.COMMITTED:
                self._decided = self._log.check_epoch(key).number  # an operator may have aborted more
        except (ProducerFencedError, UnknownTransactionalIdError) as e:
            self._fence(e)
            raise
        self._take(_FOUND[outcome])

    def _clean_up(self) -> None:
        for group in list(self._pending):
            self._again(lambda: self._groups.settle(group, self._key(), committed=False))  # noqa: B023
            del self._pending[group]
        self._staged.drop()
        self._number = self._decided
        self._take(Event.CLEANED)

    def _refuse(self, effect: Effect) -> NoReturn:
        error = refusal(effect, self._transactional_id, self._missing)
        if self._stage is TransactionStage.FENCED:
            self._fatal = error
        raise error from self._missing

    # --- inside --------------------------------------------------------------------------------------------

    def _complete_earlier(self) -> None:
        """Roll forward what this id has committed before."""
        one = self._log.get(self._transactional_id)
        if one is not None:
            self._again(lambda: complete(self._lake, self._log, self._groups, one))

    def _key(self) -> TransactionKey:
        assert self._id is not None  # of a stage past NEW
        return self._id.key(self._number + 1)

    def _again(self, request: Callable[[], R], no_answer: Event | None = None) -> R:
        """Make a request again whose outcome is unknown: each repeat sees what is in the log."""
        tries = 0
        while True:
            try:
                return request()
            except OutcomeUnknownError:
                if no_answer is not None:
                    self._take(no_answer)
                if (tries := tries + 1) == _TRIES:
                    raise
