"""Batches over topics as intents of the log of transactions: in all their topics or in none, and once.

Spark calls a sink's commit in whichever of its Python processes is idle. So what a process keeps of a transactional id
only saves work: a process that finds itself fenced begins a new epoch, and by its number the log tells whether a batch
is there.
"""

import os
import threading
from collections.abc import Callable

from tidelog.log.base.errors import ContendedLogError, ProducerFencedError, StaleBatchError, TidelogError
from tidelog.log.lake import Lake
from tidelog.sinks.staged_files import Segments, delete
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import NoGroups
from tidelog.transactions.roll_forward import complete
from tidelog.transactions.transaction_log import TransactionLog

# How often a batch begins again when another process with the id comes in between. Each time that one has decided, or
# will: two that go on at once don't need many.
_TURNS = 10
_MOST_AT_REST = 16


def query_transactional_id(query_id: str) -> str:
    """The transactional id with which a streaming query commits batches over topics."""
    return f"spark-{query_id}"


def txn_transactional_id(app_id: str) -> str:
    """The transactional id with which batch writes with a `txnAppId` commit."""
    return f"spark-txn-{app_id}"


class Producers:
    """Producers that are at rest: the next batch of the same id needs no new epoch. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each holds its lake, whose identity is not another's for so long.
        self._at_rest: dict[tuple[int, str], TransactionManager] = {}

    def take(self, lake: Lake, transactional_id: str) -> TransactionManager:
        """A producer for the caller alone until it gives it back: one at rest, else a new one."""
        with self._lock:
            producer = self._at_rest.pop((id(lake), transactional_id), None)
        return producer or _new(lake, transactional_id)

    def give_back(self, lake: Lake, producer: TransactionManager) -> None:
        """Let the next one have it. One that failed is not given back: the next one completes what it decided."""
        with self._lock:
            self._at_rest[id(lake), producer.transactional_id] = producer
            if len(self._at_rest) > _MOST_AT_REST:
                del self._at_rest[next(iter(self._at_rest))]


# This process's own, for lakes that it keeps open.
PRODUCERS = Producers()
# Ids at rest for writes without a number, by process: their number must not grow with the writes'.
_ids_at_rest: dict[int, list[str]] = {}


def commit_numbered(
    lake: Lake,
    transactional_id: str,
    batch: int,
    segments: Segments,
    producers: Producers,
    *,
    strict: bool,
    counted_before: Callable[[], int] = lambda: -1,
) -> None:
    """Commit a batch as one intent. A repeat of the newest one changes nothing, nor does a lower one unless `strict`.

    `counted_before` tells, before the id's first batch, the newest one that counted in another way, -1 for none.
    Raises `StaleBatchError`, `TopicChangedError`, `UnknownTopicError`, `StorageError`, `OutcomeUnknownError`,
    `ContendedLogError`. Run again after an error, the batch is finished or begun again, whatever it holds by then.
    """
    for turn in range(_TURNS):
        producer = producers.take(lake, transactional_id)
        try:
            committed = _commit(producer, batch, segments, strict, counted_before)
        except ProducerFencedError:
            continue
        except TidelogError:
            # After a turn the log may hold an intent that names the segments.
            if turn == 0 and _is_undecided(producer):
                delete(lake.storage, segments)
            raise
        if not committed and turn == 0:
            delete(lake.storage, segments)
        producers.give_back(lake, producer)
        return
    raise ContendedLogError(
        f"Batch {batch} of transactional id {transactional_id!r} is not committed: other processes took the id over"
        f" {_TURNS} times meanwhile. Several drivers run the same query, or use the same txnAppId: stop all but one."
    )


def commit_once(lake: Lake, segments: Segments) -> None:
    """Commit a write without a number as one intent. Raises as `commit_numbered`.

    After an `OutcomeUnknownError` or `StorageError` it may be there, or get there.
    """
    at_rest = _ids_at_rest.setdefault(os.getpid(), [])
    try:
        transactional_id = at_rest.pop()
    except IndexError:
        transactional_id = f"spark-write-{lake.ids.new()}"
    producer = _new(lake, transactional_id)
    try:
        producer.init()
        _add(producer, segments)
        producer.commit()
    except TidelogError:
        if _is_undecided(producer):
            delete(lake.storage, segments)
        raise
    at_rest.append(transactional_id)


def finish_left(lake: Lake, transactional_id: str) -> None:
    """Finish what an id has committed and a process that died did not bring into all topics."""
    log = TransactionLog(lake)
    one = log.get(transactional_id)
    if one is not None:
        complete(lake, log, NoGroups(), one)


def _commit(
    producer: TransactionManager, batch: int, segments: Segments, strict: bool, counted_before: Callable[[], int]
) -> bool:
    """Whether the segments are committed now; they aren't in a repeat."""
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
    """Whether it is certain that no intent of the producer's names what it was given."""
    return producer.phase in (TransactionPhase.NEW, TransactionPhase.READY, TransactionPhase.OPEN)


def _new(lake: Lake, transactional_id: str) -> TransactionManager:
    # No caller waits for a batch: it is open only while it is committed.
    return TransactionManager(lake, transactional_id, timeout_ms=lake.config().transaction_max_timeout_ms)
