"""One producer's transactions: what it may do when, and what commit and abort come to. It knows no client.

init -> begin -> stage, add_offsets ... -> commit | abort -> begin ...
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    OutcomeUnknownError,
    ProducerFencedError,
    SegmentTooOldError,
    StaleBatchError,
    TidelogError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import Ranges
from tidelog.log.segments.writer import Staged
from tidelog.transactions.model import Intent, Part, Transactional, TransactionKey, Verdict
from tidelog.transactions.ports import GroupIdentity, GroupOffsets, NoGroups, OffsetToCommit
from tidelog.transactions.roll_forward import finish, roll_forward
from tidelog.transactions.staged_topics import StagedTopics
from tidelog.transactions.transaction_log import TransactionLog

logger = logging.getLogger("tidelog.transactions")

R = TypeVar("R")

# Kafka's default of `transaction.timeout.ms`.
TIMEOUT_MS = 60_000
# So often a producer that goes on notes what is everywhere in an entry of its own.
_NOTE_S = 1.0
# How often a decision is made again when the store gives no answer: what is there is seen then.
_TRIES = 3


class Phase(StrEnum):
    """Where a producer is: what it may do next."""

    NEW = "new"
    READY = "ready"
    OPEN = "open"
    # It is decided, or may be: nothing but commit goes on.
    COMMITTING = "committing"
    FENCED = "fenced"


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
        self._phase = Phase.NEW
        self._fatal: Exception | None = None
        self._id: Transactional | None = None
        self._number = 0  # of the last transaction that the log has decided
        self._staged = StagedTopics(lake, helpers)
        self._pending: dict[str, None] = {}  # groups that offsets were added of
        self._parts: tuple[Part, ...] | None = None
        self._missing: BaseException | None = None
        self._turn = threading.Condition()
        self._adders = 0  # threads that are adding something
        self._sealed = False  # nothing is added any more
        self._intent_tried = False
        self._in_doubt = False  # a request went out, and nobody knows what became of it
        self._since_s = 0.0
        self._batch = -1
        # The last transaction that is everywhere, and when one was noted as such.
        self._rolled: TransactionKey | None = None
        self._noted_s = float("-inf")

    @property
    def phase(self) -> Phase:
        """Where the producer is."""
        return self._phase

    @property
    def transactional_id(self) -> str:
        """The producer's transactional id."""
        return self._transactional_id

    # --- beginning -----------------------------------------------------------------------------------------

    def init(self) -> Transactional:
        """Fence every earlier producer of this id, and finish what one has committed; returns the id as it is then.

        Its open transactions are aborted by that. Once, unless it failed. Raises `InvalidTransactionStateError`,
        `InvalidTransactionTimeoutError`, `StorageError`, `OutcomeUnknownError` (repeat it).
        """
        self._require(Phase.NEW)
        self._id = self._again(lambda: self._log.init(self._transactional_id, self._timeout_ms))
        self._number, self._batch = 0, self._id.batch
        self._finish_earlier()
        self._phase = Phase.READY
        return self._id

    @property
    def committed_batch(self) -> int:
        """The batch that this id committed last, -1 for none: see `commit`."""
        return self._batch

    def begin(self) -> None:
        """Begin a transaction. It costs nothing: nobody knows of it until offsets are added, or it is committed."""
        self._require(Phase.READY)
        self._phase = Phase.OPEN
        self._since_s = self._lake.clock.elapsed_s()

    def stage(
        self,
        topic: str,
        table: pa.Table,
        partitions: npt.NDArray[np.int32],
        compression: str | None = None,
        compression_level: int | None = None,
    ) -> None:
        """Write records that nobody sees until the transaction is committed. Raises as `StagedTopics.add`."""
        with self._adding():
            self._staged.add(topic, table, partitions, compression, compression_level)

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

    def miss(self, error: BaseException) -> None:
        """Something that was to be in the transaction is not, for this reason: it can only be aborted."""
        if self._phase is Phase.OPEN:
            self._missing = self._missing or error

    # --- ending --------------------------------------------------------------------------------------------

    def commit(self, batch: int | None = None) -> dict[str, Ranges]:
        """Commit the transaction; {topic: {partition: (first offset, end offset)}} of what it appended.

        `batch`: the caller's own number of it, which rises from one to the next: a batch that was committed before, in
        this epoch or an earlier one, is not committed again (offsets are not added with batches).
        Raises `TransactionAbortedError`, `TopicChangedError`, `StorageError` before it is decided: abort it. Raises
        `OutcomeUnknownError`, `StorageError` in phase COMMITTING: call commit again, until it returns.
        """
        self._require(Phase.OPEN, Phase.COMMITTING)
        if self._missing is not None:
            raise TransactionAbortedError(
                f"The transaction of {self._transactional_id!r} can't be committed: something that was to be in it is"
                f" not ({self._missing}). Call abort_transaction, and begin it again."
            ) from self._missing
        if self._phase is Phase.OPEN and self._lake.clock.elapsed_s() - self._since_s > self._timeout_ms / 1000:
            raise self._timed_out()
        if batch is not None and batch == self._batch:
            self._staged.drop()
            return self._over({}, decided=False)
        if self._parts is None:
            self._parts = self._all_parts()
        if not self._parts and not self._pending and batch is None:
            return self._over({}, decided=False)
        intent = self._decide(batch)
        self._phase = Phase.COMMITTING
        self._batch = self._batch if batch is None else batch
        if intent is None:
            return self._over({}, decided=True)
        key = TransactionKey(self._transactional_id, self._key().producer_id, intent.epoch, intent.number)
        ranges = self._again(lambda: roll_forward(self._lake, self._groups, key, intent, self._helpers))
        self._rolled = key
        self._note_done()
        return self._over(ranges, decided=True)

    def _note_done(self) -> None:
        """Have it noted that the last intent is everywhere: by the next one, or now and then by the background.

        Who commits all the time needs no entries of its own for that.
        """
        now_s = self._lake.clock.elapsed_s()
        if now_s - self._noted_s >= _NOTE_S:
            self._noted_s = now_s
            with suppress(RuntimeError):  # the program is at its end; whoever looks at it next notes it
                self._lake.background.submit(_note_done, self._log, self._rolled)

    def _all_parts(self) -> tuple[Part, ...]:
        """What was staged. Where it can't all be had, a part may be lost by that: then the rest counts for nothing."""
        self._seal()
        try:
            return self._staged.parts()
        except BaseException as e:
            self.miss(e)
            raise

    def _decide(self, batch: int | None) -> Intent | None:
        again = 0
        while True:
            parts = self._parts or ()
            self._intent_tried, self._in_doubt = True, self._phase is Phase.COMMITTING
            try:
                return self._again(
                    lambda: self._log.intent(self._key(), parts, tuple(self._pending), batch, self._rolled)  # noqa: B023
                )
            except ConcurrentTransactionsError:
                self._finish_earlier()
            except SegmentTooOldError:
                if (again := again + 1) > _TRIES:
                    raise
                self._staged.write_again()
                self._parts = self._staged.parts()
            except (ProducerFencedError, UnknownTransactionalIdError) as e:
                self._fence(e)
                raise
            except (TransactionAbortedError, StaleBatchError):
                self._phase = Phase.OPEN  # decided by now: it is not there
                raise
            except InvalidTransactionStateError:
                if self._in_doubt or self._log.check_epoch(self._key()).number <= self._number:
                    raise
                raise TransactionAbortedError(  # its number, which was never asked for, is taken
                    f"The transaction of {self._transactional_id!r} was aborted by an operator, and others that were to"
                    " come after it. Call abort_transaction, and begin it again."
                ) from None
            except TidelogError as e:
                if self._in_doubt or isinstance(e, OutcomeUnknownError):
                    self._phase = Phase.COMMITTING
                raise

    def abort(self) -> None:
        """Abort the transaction: nothing of it is ever seen.

        Raises `InvalidTransactionStateError` when it turns out to be committed: call commit, which finishes it.
        Raises `ProducerFencedError`, by which it is aborted too, unless its commit had no answer: then its successor
        has finished or aborted it. Raises `StorageError`, `OutcomeUnknownError`: repeat it.
        """
        self._require(Phase.OPEN, Phase.COMMITTING)
        self._seal()
        key = self._key()
        # While an intent may be there, nobody but purges may delete the files that it names.
        nobodys = not self._intent_tried
        traces = bool(self._pending) or self._intent_tried
        try:
            found = self._again(lambda: self._log.abort(key)) if traces else Verdict.ABORTED
            nobodys = nobodys or found is Verdict.ABORTED
            if found is Verdict.COMMITTED:
                self._phase = Phase.COMMITTING
                raise InvalidTransactionStateError(
                    f"The transaction of {self._transactional_id!r} is committed, and can't be aborted any more: its"
                    " commit had succeeded without an answer. Call commit again, which finishes it."
                )
            number = self._log.check_epoch(key).number  # an operator may have aborted more
        except (ProducerFencedError, UnknownTransactionalIdError) as e:
            if nobodys:
                self._staged.drop()
            self._fence(e)
            raise
        for group in list(self._pending):
            self._again(lambda: self._groups.settle(group, key, committed=False))  # noqa: B023
            del self._pending[group]
        self._staged.drop()
        self._number = number
        self._over({}, decided=False)

    def close(self) -> None:
        """End: what is open is aborted. A transaction that is being committed is left to whoever finishes it."""
        if self._phase is Phase.OPEN:
            self.abort()
        if self._rolled is not None:
            _note_done(self._log, self._rolled)

    # --- inside --------------------------------------------------------------------------------------------

    def _over(self, ranges: dict[str, Ranges], *, decided: bool) -> dict[str, Ranges]:
        self._number += decided
        self._staged = StagedTopics(self._lake, self._helpers)
        self._pending = {}
        self._parts = None
        self._missing = None
        self._intent_tried = self._sealed = False
        self._phase = Phase.READY
        return ranges

    def _finish_earlier(self) -> None:
        """Roll forward what this id has committed before."""
        one = self._log.get(self._transactional_id)
        if one is not None:
            self._again(lambda: finish(self._lake, self._log, self._groups, one))

    def _key(self) -> TransactionKey:
        if self._id is None:
            raise self._out_of_turn()
        return self._id.key(self._number + 1)

    def _again(self, request: Callable[[], R]) -> R:
        """Make a request again whose outcome is unknown: each sees what is there."""
        for _ in range(_TRIES - 1):
            try:
                return request()
            except OutcomeUnknownError:
                self._in_doubt = True
        return request()

    def _timed_out(self) -> TransactionAbortedError:
        return TransactionAbortedError(
            f"The transaction of {self._transactional_id!r} is open for longer than transaction.timeout.ms"
            f" ({self._timeout_ms}), so that it can't be committed: others may have aborted it, and nobody waits for it"
            " any more. Call abort_transaction, and begin it again; raise transaction.timeout.ms for long ones."
        )

    def _fence(self, error: Exception) -> None:
        self._phase = Phase.FENCED
        self._fatal = error

    @contextmanager
    def _adding(self) -> Iterator[None]:
        """What fails to be added is missing: then the transaction can't be committed any more."""
        with self._turn:
            self._require(Phase.OPEN)
            if self._sealed:
                raise InvalidTransactionStateError(
                    f"The transaction of {self._transactional_id!r} is being committed, or that has failed: nothing can"
                    " be added to it any more. Call commit_transaction again, or abort_transaction."
                )
            self._adders += 1
        try:
            yield
        except BaseException as e:
            self.miss(e)
            raise
        finally:
            with self._turn:
                self._adders -= 1
                self._turn.notify_all()

    def _seal(self) -> None:
        """Have nothing more added, and wait for what is being added."""
        with self._turn:
            self._sealed = True
            self._turn.wait_for(lambda: not self._adders)

    def _require(self, *phases: Phase) -> None:
        if self._fatal is not None:
            raise self._fatal
        if self._phase not in phases:
            raise self._out_of_turn()

    def _out_of_turn(self) -> InvalidTransactionStateError:
        hints = {
            Phase.NEW: "call init_transactions first",
            Phase.READY: "call begin_transaction first",
            Phase.OPEN: "commit or abort it first",
            Phase.COMMITTING: "call commit_transaction again, until it returns",
            Phase.FENCED: "close the producer",
        }
        return InvalidTransactionStateError(
            f"The producer with transactional id {self._transactional_id!r} can't do that now: its transaction is"
            f" {self._phase.value}; {hints[self._phase]}."
        )


def _note_done(log: TransactionLog, key: TransactionKey | None) -> None:
    if key is None:
        return
    try:
        log.done(key)
    except TidelogError as e:
        logger.info("That %s is everywhere could not be noted (%s); whoever looks at it next notes it.", key, e)
