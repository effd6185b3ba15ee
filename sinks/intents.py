"""Batches over topics as intents of the log of transactions: in all their topics or in none, and once.

Spark calls a sink's commit in any of its Python processes that is idle. So what a process keeps of a transactional id
only saves work: a process that finds itself fenced begins a new epoch, and looks the batch's number up in the log.
"""

import os
import threading
from collections.abc import Callable

from tidelog.log.base.errors import ContendedLogError, ProducerFencedError, StaleBatchError, TidelogError
from tidelog.log.lake import Lake
from tidelog.sinks.tasks import Segments, discard_segments
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import NoGroups
from tidelog.transactions.roll_forward import complete
from tidelog.transactions.transaction_log import TransactionLog

# Attempts of one batch: another process that uses the id fences this one, and has then decided the batch or will.
_ATTEMPTS = 10
_MOST_IDLE = 16


def query_transactional_id(query_id: str) -> str:
    """The transactional id under which a streaming query commits batches over topics."""
    return f"spark-{query_id}"


def txn_transactional_id(app_id: str) -> str:
    """The transactional id under which batch writes with a `txnAppId` commit."""
    return f"spark-txn-{app_id}"


class IdleProducers:
    """A pool of producers: the next batch of the same id needs no new epoch. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each producer holds its lake, so that no other lake gets the same identity.
        self._idle: dict[tuple[int, str], TransactionManager] = {}

    def take(self, lake: Lake, transactional_id: str) -> TransactionManager:
        """A producer for the caller alone until it gives it back: an idle one, else a new one."""
        with self._lock:
            producer = self._idle.pop((id(lake), transactional_id), None)
        return producer or _new(lake, transactional_id)

    def give_back(self, lake: Lake, producer: TransactionManager) -> None:
        """Keep a producer for the next batch. One that failed is not given back: a new one completes its decision."""
        with self._lock:
            self._idle[id(lake), producer.transactional_id] = producer
            if len(self._idle) > _MOST_IDLE:
                del self._idle[next(iter(self._idle))]


# This process's own, for lakes that it keeps open.
PRODUCERS = IdleProducers()
# Ids of finished writes without a number, by process, to be used again: ids must not grow with the number of writes.
_idle_ids: dict[int, list[str]] = {}


def commit_numbered(
    lake: Lake,
    transactional_id: str,
    batch: int,
    segments: Segments,
    producers: IdleProducers,
    *,
    strict: bool,
    counted_before: Callable[[], int] = lambda: -1,
) -> None:
    """Commit a batch as one intent. A repeat of the newest one changes nothing, nor does a lower one unless `strict`.

    `counted_before` returns, before the id's first batch, the newest one that counted in another way, -1 for none.
    Raises `StaleBatchError`, `TopicChangedError`, `UnknownTopicError`, `StorageError`, `OutcomeUnknownError`,
    `ContendedLogError`. A batch that runs again after an error is completed, or committed with what it holds by then.
    """
    for attempt in range(_ATTEMPTS):
        producer = producers.take(lake, transactional_id)
        try:
            committed = _commit(producer, batch, segments, strict, counted_before)
        except ProducerFencedError:
            continue
        except TidelogError:
            # After the first attempt the log may hold an intent that names the segments.
            if attempt == 0 and _is_undecided(producer):
                discard_segments(lake.storage, segments)
            raise
        if not committed and attempt == 0:
            discard_segments(lake.storage, segments)
        producers.give_back(lake, producer)
        return
    raise ContendedLogError(
        f"Batch {batch} of transactional id {transactional_id!r} is not committed: other processes took the id over"
        f" {_ATTEMPTS} times meanwhile. Several drivers run the same query, or use the same txnAppId: stop all but one."
    )


def commit_unnumbered(lake: Lake, segments: Segments) -> None:
    """Commit a write without a number as one intent. Raises as `commit_numbered`.

    After an `OutcomeUnknownError` or `StorageError` the write may be committed, now or later.
    """
    idle = _idle_ids.setdefault(os.getpid(), [])
    try:
        transactional_id = idle.pop()
    except IndexError:
        transactional_id = f"spark-write-{lake.ids.new()}"
    producer = _new(lake, transactional_id)
    try:
        producer.init()
        _add(producer, segments)
        producer.commit()
    except TidelogError:
        if _is_undecided(producer):
            discard_segments(lake.storage, segments)
        raise
    idle.append(transactional_id)


def complete_interrupted(lake: Lake, transactional_id: str) -> None:
    """Complete the transaction of an id whose process died before all topics had their part."""
    log = TransactionLog(lake)
    one = log.get(transactional_id)
    if one is not None:
        complete(lake, log, NoGroups(), one)


def _commit(
    producer: TransactionManager, batch: int, segments: Segments, strict: bool, counted_before: Callable[[], int]
) -> bool:
    """Whether this call committed the segments; in a repeat it does not."""
    if producer.phase is TransactionPhase.NEW:
        producer.init()
    newest = producer.committed_batch
    if newest < 0:
        newest = counted_before()
    if strict and batch < newest:
        raise StaleBatchError(
            f"The lake has already taken batch {newest} of this streaming query, and now gets batch {batch}: the query"
            " runs from a copied or restored checkpoint, and its batches would be lost or doubled. Start it with a new"
            " checkpoint folder, which makes it a new query."
        )
    if batch <= newest:
        return False
    _add(producer, segments)
    producer.commit(batch)
    return True


def _add(producer: TransactionManager, segments: Segments) -> None:
    producer.begin()
    for topic, staged in segments.items():
        producer.add_staged(topic, staged)


def _is_undecided(producer: TransactionManager) -> bool:
    """Whether certainly no intent of the producer names the segments that it was given."""
    return producer.phase in (TransactionPhase.NEW, TransactionPhase.READY, TransactionPhase.OPEN)


def _new(lake: Lake, transactional_id: str) -> TransactionManager:
    # No caller waits for a batch: it is open only while it is committed.
    return TransactionManager(lake, transactional_id, timeout_ms=lake.config().transaction_max_timeout_ms)
