"""The coordinator of transactions: it ends them, applies what was decided, and aborts those that had their time.

What is decided is in the log of transactions, and what was added is noted there before a client is answered. So any
broker ends any transaction, one that other brokers staged and one whose broker died; which of them coordinates an id
says only which one watches its time.
"""

import asyncio
import logging
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from tidelog.broker.base.context import Context
from tidelog.broker.transactions.end_spans import EndSpans
from tidelog.broker.transactions.errors import NotTransactionCoordinatorError
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ConcurrentTransactionsError, TidelogError
from tidelog.log.storage.orphans import discard
from tidelog.log.storage.port import Distant
from tidelog.server.base.blocking import pause
from tidelog.transactions.model import Intent, Transactional, TransactionKey
from tidelog.transactions.open_parts import OpenTransaction, Place
from tidelog.transactions.part_rules import Ended, LateTransactionError, ProducerIdentity
from tidelog.transactions.roll_forward import complete, roll_forward
from tidelog.transactions.transaction_log import TransactionLog, Unfinished

logger = logging.getLogger(__name__)

# Between looks at what is open: a look is a request to a store that may be far. A gap of PAUSE_S between two is one in
# which the broker itself was frozen, and its clocks begin again.
LOOK_S: Final = 0.5
DISTANT_LOOK_S: Final = 5.0
# The same where nothing is unfinished, and nothing was for a while: most lakes have no transactions.
QUIET_LOOK_S: Final = 2.0
_QUIET_S: Final = 10.0
PAUSE_S: Final = 15.0
# How long an intent may be incomplete before this broker takes it that the one that ended it is gone.
GRACE_S: Final = 2.0
# How often an end is tried that meets a transaction before it.
_TRIES: Final = 3


class TransactionCoordinator:
    """One broker's part as coordinator of transactions.

    `begin` and `end` are for worker threads, all else for the loop's.
    """

    def __init__(self, context: Context) -> None:
        self.log = TransactionLog(context.lake)
        self._context = context
        self._groups = LoggedOffsets(GroupLog(context.lake))
        self._lock = threading.Lock()
        # Of each id the transaction that is complete, while the log does not say so.
        self._complete: dict[str, TransactionKey] = {}
        self._unfinished = Unfinished()
        self._version = -1
        # Since when this broker sees what is unfinished, on the elapsed clock.
        self._since_s: dict[TransactionKey, float] = {}
        self._looked_s = self._busy_s = context.clock.elapsed_s()
        self._task = asyncio.get_running_loop().create_task(self._keep_time())

    def require(self) -> None:
        """Refuse while the broker stops: clients go to another one then. Raises `NotTransactionCoordinatorError`."""
        if not self._context.cluster().serves:
            raise NotTransactionCoordinatorError("This broker stops. Look for the coordinator again.")

    def coordinates(self, transactional_id: str) -> bool:
        """Whether this broker coordinates the id."""
        view = self._context.cluster()
        return view.coordinator("transaction", transactional_id).id == view.node_id

    async def close(self) -> None:
        """End: what is complete is marked so."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._mark()

    # --- in worker threads ---------------------------------------------------------------------------------

    def begin(self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None) -> Transactional:
        """Begin a new epoch; what the one before committed is in its topics then. Raises as `TransactionLog.begin`."""
        begun = self.log.begin(transactional_id, timeout_ms, expected)
        complete(self._context.lake, self.log, self._groups, begun.one)
        self._clean_up(begun.dropped)
        return begun.one

    def end(self, producer: ProducerIdentity, *, commit: bool, raises_epoch: bool) -> Ended:
        """End a transaction. It is decided when this returns, and as a rule in all its topics and groups.

        One that has had its time is aborted, whatever its producer asks for, and the producer fenced. Raises as
        `TransactionLog.end`.
        """
        spans, is_late = (
            EndSpans(self._context, self.log, producer),
            partial(self._is_late, self._context.clock.elapsed_s()),
        )
        for _ in range(_TRIES):
            completed = self._complete.get(producer.transactional_id)
            try:
                ended = self.log.end(
                    producer, commit=commit, raises_epoch=raises_epoch, completed=completed, is_late=is_late
                )
            except LateTransactionError as e:
                self._time_out(e.key)
                continue
            except ConcurrentTransactionsError:
                one = self.log.get(producer.transactional_id)
                if one is not None:
                    complete(self._context.lake, self.log, self._groups, one)
                continue
            spans.decided(ended)
            self._apply(ended)
            spans.applied()
            return ended
        raise ConcurrentTransactionsError("The transaction before is not in all its topics yet. Try again.")

    def abort_marker(self, producer_id: int, epoch: int, places: Collection[Place]) -> None:
        """Abort what a producer has open in one of these places. Raises as `TransactionLog.abort_marker`."""
        ended = self.log.abort_marker(producer_id, epoch, places)
        if ended is not None:
            logger.info("Transaction aborted by an operator: producer id %d, epoch %d", producer_id, epoch)
            self._clean_up(ended.dropped)

    def _apply(self, ended: Ended) -> None:
        """Bring a committed transaction into its topics and groups, or remove what an aborted one left.

        What fails is done later, by the next broker that looks: the decision stands.
        """
        if ended.intent is None:
            self._clean_up(ended.dropped)
            return
        key = ended.one.key_of(ended.intent)
        try:
            roll_forward(self._context.lake, self._groups, key, ended.intent)
        except TidelogError as e:
            logger.warning("Committed, and to be completed later: %s (%s)", key, e)
            return
        with self._lock:
            self._complete[key.transactional_id] = key

    def _clean_up(self, dropped: OpenTransaction | None) -> None:
        """Remove what an aborted transaction left; else its groups' readers and a purge do."""
        if dropped is None:
            return
        try:
            for group in dropped.groups:
                self._groups.settle(group, dropped.key, committed=False)
        except TidelogError as e:
            logger.info("Offsets of an aborted transaction are left to their readers: %s (%s)", dropped.key, e)
        lake = self._context.lake
        for part in dropped.parts:
            discard(lake.storage, (f"{lake.topic(part.topic).folder}/{segment.path}" for segment in part.segments))

    def _is_late(self, now_s: float, key: TransactionKey, timeout_ms: int) -> bool:
        """Whether a transaction has had its time, as far as this broker saw: a look may come upon it much later."""
        return now_s - self._since_s.get(key, now_s) >= timeout_ms / 1000

    def _time_out(self, key: TransactionKey) -> None:
        ended = self.log.time_out(key)
        if ended is not None:
            logger.info("Transaction timed out: %s", key)
            self._clean_up(ended.dropped)

    def as_known(self, transactional: Transactional) -> Transactional:
        """The id, without an intent that this broker knows to be complete, while the log does not say so yet."""
        intent, completed = transactional.intent, self._complete.get(transactional.transactional_id)
        is_complete = intent is not None and completed == transactional.key_of(intent)
        return replace(transactional, intent=None) if is_complete else transactional

    # --- in the loop ---------------------------------------------------------------------------------------

    def saw(self, key: TransactionKey) -> None:
        """This broker has added to a transaction: its time runs from now on, unless it does already."""
        self._since_s.setdefault(key, self._context.clock.elapsed_s())

    def appended(self, intent: Intent | None) -> None:
        """What was committed is in its topics: wake the requests that wait there."""
        for part in () if intent is None else intent.parts:
            self._context.topics.committed(part.topic, {segment.partition for segment in part.segments})

    async def _keep_time(self) -> None:
        while True:
            await pause(self._pause_s())
            try:
                await self.look()
                await self._mark()
            except TidelogError as e:
                logger.info("The log of transactions can't be looked at: %s", e)
            except Exception:
                logger.exception("Transactions are not watched for a moment, by a fault in the program.")

    def _pause_s(self) -> float:
        """How long until the next look."""
        if isinstance(self._context.lake.storage, Distant):
            return DISTANT_LOOK_S
        return QUIET_LOOK_S if self._context.clock.elapsed_s() - self._busy_s > _QUIET_S else LOOK_S

    async def look(self) -> None:
        """Look at what is unfinished; abort and complete what has had its time. Raises why it can't be looked at.

        What can't be aborted or completed, as for a topic that can't be opened, holds up nothing else.
        """
        blocking, now_s = self._context.blocking, self._context.clock.elapsed_s()
        before = self._version
        self._unfinished, self._version = await blocking(self.log.unfinished, self._unfinished, before)
        if self._version != before or self._complete or self._unfinished.open or self._unfinished.incomplete:
            self._busy_s = now_s
        timeouts_s = self._watched()
        gap, self._looked_s = now_s - self._looked_s, now_s
        times_s = {} if gap > PAUSE_S else self._since_s
        # What was added since the look began is not in what it saw.
        new = {key: since_s for key, since_s in times_s.items() if since_s >= now_s}
        self._since_s = {key: times_s.get(key, now_s) for key in timeouts_s} | new
        for key, timeout_s in timeouts_s.items():
            if now_s - self._since_s[key] < timeout_s:
                continue
            try:
                await self._finish(key)
            except TidelogError as e:
                logger.info("A transaction is to be finished later: %s (%s)", key, e)

    async def _finish(self, key: TransactionKey) -> None:
        """Abort a transaction that is open, complete one that is committed."""
        transactional = self._unfinished.incomplete.get(key)
        if transactional is None:
            await self._context.blocking(self._time_out, key)
        elif self._complete.get(key.transactional_id) != key:
            await self._context.blocking(complete, self._context.lake, self.log, self._groups, transactional)
            self.appended(transactional.intent)

    def _watched(self) -> Mapping[TransactionKey, float]:
        """How long each transaction may be as it is, of those that this broker coordinates."""
        found = dict.fromkeys(self._unfinished.incomplete, GRACE_S)
        found |= {one.key: timeout_ms / 1000 for one, timeout_ms in self._unfinished.open}
        return {key: timeout_s for key, timeout_s in found.items() if self.coordinates(key.transactional_id)}

    async def _mark(self) -> None:
        """Mark what is complete: a busy producer's next commit says it of the one before, which costs no entry."""
        with self._lock:
            keys = list(self._complete.values())
        if not keys:
            return
        try:
            await self._context.blocking(self.log.mark_complete, *keys)
        except TidelogError as e:
            logger.info("No completion markers were written: %s", e)
            return
        with self._lock:
            for key in keys:
                if self._complete.get(key.transactional_id) == key:
                    del self._complete[key.transactional_id]
