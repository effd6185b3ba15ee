"""The rules of transactions that brokers hold for Kafka's clients: pure decisions, as those in `rules`.

A request names a transactional id, a producer id and Kafka's epoch, a SHORT; the number of the transaction is the log's
matter. What a client adds is in the log before it is answered, so that any broker may end the transaction.
Source: `TransactionCoordinator`, `TransactionMetadata` (kafka 4.2), KIP-98, KIP-360, KIP-890.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    SegmentTooOldError,
    TidelogError,
    UnknownTransactionalIdError,
)
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row
from tidelog.log.rules.sequences import MAX_SEQUENCE, step
from tidelog.log.segments.writer import Staged
from tidelog.log.state.producer_memory import MAX_PRODUCER_ID
from tidelog.transactions.model import (
    EPOCHS_OF_AN_ID,
    MAX_EPOCH,
    Intent,
    Transactional,
    TransactionKey,
    Verdict,
)
from tidelog.transactions.open_parts import (
    NO_SEQUENCE,
    OpenTransaction,
    Place,
    added_row,
    group_row,
    segments_row,
)
from tidelog.transactions.rows import TransactionsFold, transactional_row
from tidelog.transactions.rules import ABORT, INIT, INTENT, decide_init, parts_gone


@dataclass(frozen=True, slots=True)
class ProducerIdentity:
    """The producer that a request names. `epoch`: Kafka's, a SHORT."""

    transactional_id: str
    producer_id: int
    epoch: int


class LateTransactionError(ProducerFencedError):
    """A transaction that was open for longer than its time-out can't end: it is to be aborted, its producer fenced."""

    def __init__(self, key: TransactionKey) -> None:
        super().__init__(f"The transaction {key} was open for longer than transaction.timeout.ms.")
        self.key = key


@dataclass(frozen=True, slots=True)
class TransactionBatch:
    """Records of a producer for one partition of a topic: `count` sequences from `first` on.

    `begins`: they add their partition to the transaction, and begin one that is not there (KIP-890); else it was added
    before.
    """

    producer: ProducerIdentity
    topic: str
    topic_id: str
    partition: int
    first: int
    count: int
    begins: bool

    @property
    def place(self) -> Place:
        """Where they are for."""
        return self.topic_id, self.partition


@dataclass(frozen=True, slots=True)
class Begun:
    """A producer that may begin: its id from now on, and what was open before, which is aborted by that."""

    one: Transactional
    dropped: OpenTransaction | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A transaction that has ended: its id from then on, and what is left to do.

    `intent` is to be rolled forward, what `dropped` held is to be removed.
    """

    one: Transactional
    intent: Intent | None = None
    dropped: OpenTransaction | None = None


def decide_begin(
    fold: TransactionsFold,
    transactional_id: str,
    timeout_ms: int,
    new_producer_id: int,
    now_ms: int,
    expected: ProducerIdentity | None = None,
) -> RowOutcome[Begun]:
    """Begin a new epoch, which fences every other producer of the id and aborts what is open.

    `expected`: the caller goes on as this producer and wants the next epoch of it; then a repeat changes nothing
    (KIP-360). Raises `ProducerFencedError` when it is that no more.
    """
    transactional, dropped = fold.get(transactional_id), fold.open(transactional_id)
    if expected is None or transactional is None:
        outcome = decide_init(fold, transactional_id, timeout_ms, new_producer_id, now_ms)
        return RowOutcome(outcome.rows, Begun(outcome.response, dropped))
    if _has_moved(transactional, expected):
        return RowOutcome((), Begun(transactional))
    if not _is(transactional, expected):
        raise _fenced(transactional, expected)
    begun = replace(_next_epoch(transactional, Verdict.ABORTED), timeout_ms=timeout_ms, updated_ms=now_ms)
    return RowOutcome([transactional_row(INIT, begun), *parts_gone(fold, transactional_id)], Begun(begun, dropped))


def decide_add(
    fold: TransactionsFold,
    producer: ProducerIdentity,
    places: Iterable[tuple[str, Place]],
    groups: Iterable[str],
    now_ms: int,
) -> RowOutcome[TransactionKey]:
    """Add partitions, (topic, place) each, and groups to the producer's transaction, which begins by that.

    What is in it already changes nothing. Raises as `require_producer`.
    """
    one = require_producer(fold, producer)
    key, there = one.key(one.number + 1), fold.open(producer.transactional_id)
    known_places = () if there is None else there.places
    known_groups = () if there is None else there.groups
    rows = [added_row(key, topic, place, now_ms) for topic, place in places if place not in known_places]
    rows += [group_row(key, group, now_ms) for group in groups if group not in known_groups]
    return RowOutcome(rows, key)


def require_added(
    fold: TransactionsFold, producer: ProducerIdentity, places: Iterable[Place] = (), groups: Iterable[str] = ()
) -> TransactionKey:
    """The producer's open transaction, which all of this was added to.

    Raises `InvalidTransactionStateError` where it was not, and as `require_producer`.
    """
    require_producer(fold, producer)
    there = fold.open(producer.transactional_id)
    if (
        there is None
        or any(place not in there.places for place in places)
        or any(group not in there.groups for group in groups)
    ):
        raise _not_added(producer)
    return there.key


@dataclass(slots=True)
class BatchJudge:
    """Judges the batches of one attempt one after another, each as if those before it were staged."""

    fold: TransactionsFold
    _last: dict[tuple[str, Place], int] = field(default_factory=dict)

    def take(self, batch: TransactionBatch) -> bool:
        """Whether the batch is new; else its records are staged already, or were in an earlier transaction.

        A batch that is refused changes nothing. Raises as `require_producer`; `InvalidTransactionStateError` where its
        partition was not added; `OutOfOrderSequenceError` for a gap or an overlap: each epoch begins with 0.
        """
        producer, place = batch.producer, batch.place
        transactional = require_producer(self.fold, producer)
        there = self.fold.open(producer.transactional_id)
        if not batch.begins and (there is None or place not in there.places):
            raise _not_added(producer)
        key = producer.transactional_id, place
        last = self._last.get(key)
        if last is None:
            held = self.fold.held(producer.transactional_id)
            known = None if held is None else held.places.get(place)
            last = NO_SEQUENCE if known is None or known.epoch != transactional.epoch else known.last_sequence
        ahead = step(batch.first, -last - 1) if last != NO_SEQUENCE else batch.first
        if ahead == 0:
            self._last[key] = step(batch.first, batch.count - 1)
            return True
        behind = MAX_SEQUENCE + 1 - ahead
        if last != NO_SEQUENCE and batch.count <= behind <= MAX_SEQUENCE // 2:
            return False
        raise OutOfOrderSequenceError(
            f"Topic '{batch.topic}', partition {batch.partition}: the producer of transactional id"
            f" {producer.transactional_id!r} sends sequences from {batch.first} ({batch.count} records), but"
            f" {0 if last == NO_SEQUENCE else step(last, 1)} comes next: records between them are missing, or some of"
            " these are there already."
        )


def staged_before(fold: TransactionsFold, batch: TransactionBatch) -> int:
    """How many records the batch's transaction has in its partition."""
    there = fold.open(batch.producer.transactional_id)
    held = None if there is None else there.places.get(batch.place)
    return 0 if held is None else sum(segment.records for segment in held.segments)


def decide_stage(
    fold: TransactionsFold, parts: Sequence[tuple[TransactionBatch, Sequence[Staged]]], now_ms: int
) -> RowOutcome[list[TidelogError | None]]:
    """Note staged segments as parts of their open transactions; of a producer and place there is one at most.

    The response has, for each, None, or why it is not noted: `SegmentTooOldError` below the topic's purge floor,
    `OutOfOrderSequenceError` also where its records are staged by others by now, and what `BatchJudge` raises.
    A repeat with the same segments changes nothing.
    """
    rows: list[Row] = []
    answers: list[TidelogError | None] = []
    judge = BatchJudge(fold)
    for batch, segments in parts:
        try:
            row = _staged_row(fold, judge, batch, segments, now_ms)
        except TidelogError as e:
            answers.append(e)
            continue
        answers.append(None)
        rows += [] if row is None else [row]
    return RowOutcome(rows, answers)


def _staged_row(
    fold: TransactionsFold, judge: BatchJudge, batch: TransactionBatch, segments: Sequence[Staged], now_ms: int
) -> Row | None:
    name = batch.producer.transactional_id
    there = fold.open(name)
    held = None if there is None else there.places.get(batch.place)
    if held is not None and {s.path for s in segments} <= {s.path for s in held.segments}:
        return None
    is_new = judge.take(batch)
    floor = fold.floors.get(batch.topic_id)
    if floor is not None and any(segment.known_version < floor.version for segment in segments):
        raise SegmentTooOldError(
            f"Topic '{batch.topic}': a segment was written at a version below the purge floor {floor.version}: its file"
            " may already be deleted as an orphan. Write the records again."
        )
    if not is_new:
        raise OutOfOrderSequenceError(
            f"Topic '{batch.topic}', partition {batch.partition}: another broker has staged these records meanwhile."
        )
    transactional = require_producer(fold, batch.producer)
    slot = 1 if held is None else held.taken + 1
    last = step(batch.first, batch.count - 1)
    key = transactional.key(transactional.number + 1)
    return segments_row(key, slot, batch.topic, batch.topic_id, segments, last, now_ms)


def decide_end(
    fold: TransactionsFold,
    producer: ProducerIdentity,
    now_ms: int,
    *,
    commit: bool,
    raises_epoch: bool,
    completed: TransactionKey | None = None,
    is_late: Callable[[TransactionKey, int], bool] | None = None,
) -> RowOutcome[Ended]:
    """End a producer's transaction; the response says what is left to do. A repeat changes nothing.

    `raises_epoch`: the producer goes on in the next epoch (KIP-890), else in the same. `completed`: an earlier
    transaction that the caller knows to be complete. `is_late`: whether a transaction was open for longer than these
    milliseconds, its time-out. Raises as `require_producer`; `InvalidTransactionStateError` when nothing is open, or it
    ended the other way; `ConcurrentTransactionsError` while the one before is incomplete; `LateTransactionError`.
    """
    asked = Verdict.COMMITTED if commit else Verdict.ABORTED
    transactional = fold.get(producer.transactional_id)
    if raises_epoch and transactional is not None and _has_moved(transactional, producer):
        return _ended_before(transactional, asked)
    transactional = require_producer(fold, producer)
    there = fold.open(producer.transactional_id)
    if there is None and not (raises_epoch and not commit):
        if raises_epoch or not transactional.number:
            raise _nothing_open(transactional)
        return _ended_before(transactional, asked)
    if there is not None and is_late is not None and is_late(there.key, transactional.timeout_ms):
        raise LateTransactionError(there.key)
    number = transactional.number + 1
    ended = replace(transactional, number=number, outcome=asked, updated_ms=now_ms)
    event, intent = ABORT, None
    if commit and there is not None:
        if transactional.intent is not None and (
            completed is None or transactional.key_of(transactional.intent) != completed
        ):
            raise ConcurrentTransactionsError(
                f"Transactional id {transactional.transactional_id!r}: its transaction before is committed, but"
                " not in all its topics yet. Roll it forward first."
            )
        sequence = fold.sequence + 1
        intent = Intent(transactional.epoch, number, sequence, there.parts, there.groups)
        event, ended = INTENT, replace(ended, sequence=sequence, intent=intent)
    if raises_epoch:
        ended = _next_epoch(ended, asked)
    return RowOutcome([transactional_row(event, ended)], Ended(ended, intent, None if commit else there))


def decide_time_out(fold: TransactionsFold, key: TransactionKey, now_ms: int) -> RowOutcome[Ended | None]:
    """Abort a transaction that has had its time, and fence its producer; None when it is not open any more.

    Source: `TransactionCoordinator.abortTimedOutTransactions`.
    """
    transactional, there = fold.get(key.transactional_id), fold.open(key.transactional_id)
    if transactional is None or there is None or there.key != key:
        return RowOutcome((), None)
    fenced = replace(_next_epoch(transactional, None), updated_ms=now_ms)
    return RowOutcome([transactional_row(ABORT, fenced)], Ended(fenced, dropped=there))


# --- producers ---------------------------------------------------------------------------------------------


def require_producer(fold: TransactionsFold, producer: ProducerIdentity) -> Transactional:
    """The id of a request's producer. Raises `UnknownTransactionalIdError`, `ProducerFencedError`."""
    transactional = fold.get(producer.transactional_id)
    if transactional is None or transactional.producer_id != producer.producer_id:
        raise UnknownTransactionalIdError(
            f"Transactional id {producer.transactional_id!r} has "
            + ("no producer" if transactional is None else f"producer id {transactional.producer_id}")
            + f", not {producer.producer_id}: it was forgotten, or given to another producer. Create a new producer."
        )
    if not _is(transactional, producer):
        raise _fenced(transactional, producer)
    return transactional


def _is(transactional: Transactional, producer: ProducerIdentity) -> bool:
    return (transactional.producer_id, transactional.kafka_epoch) == (producer.producer_id, producer.epoch)


def _has_moved(transactional: Transactional, producer: ProducerIdentity) -> bool:
    """Whether the producer itself went on from this epoch to the id's newest by its last request, which it repeats.

    An epoch that begins with an outcome was begun so; one that another producer or a time-out began has none.
    """
    if transactional.number or transactional.outcome is None:
        return False
    if transactional.kafka_epoch:
        return (producer.producer_id, producer.epoch) == (transactional.producer_id, transactional.kafka_epoch - 1)
    return (
        producer.epoch == EPOCHS_OF_AN_ID - 1
        and _successor(transactional, producer.producer_id) == transactional.producer_id
    )


def _next_epoch(transactional: Transactional, outcome: Verdict | None) -> Transactional:
    """The id in its next epoch, which has the next producer id when those of this one are used up."""
    epoch = transactional.epoch + 1
    if epoch > MAX_EPOCH:
        raise InvalidTransactionStateError(
            f"Transactional id {transactional.transactional_id!r} has used up its epochs ({MAX_EPOCH}). Take another"
            " id."
        )
    producer_id = (
        transactional.producer_id if epoch % EPOCHS_OF_AN_ID else _successor(transactional, transactional.producer_id)
    )
    return replace(transactional, epoch=epoch, producer_id=producer_id, number=0, outcome=outcome)


def _successor(transactional: Transactional, producer_id: int) -> int:
    """The producer id that follows: it shows which one was before."""
    name = f"{producer_id}:{transactional.transactional_id}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest()) & MAX_PRODUCER_ID


def _ended_before(transactional: Transactional, asked: Verdict) -> RowOutcome[Ended]:
    if transactional.outcome is not asked:
        raise InvalidTransactionStateError(
            f"The last transaction of {transactional.transactional_id!r} was {transactional.outcome or 'never begun'},"
            f" and can't be {asked} any more."
        )
    return RowOutcome((), Ended(transactional, transactional.intent if asked is Verdict.COMMITTED else None))


def _nothing_open(transactional: Transactional) -> InvalidTransactionStateError:
    return InvalidTransactionStateError(
        f"Transactional id {transactional.transactional_id!r} has no open transaction: nothing was added to one."
    )


def _not_added(producer: ProducerIdentity) -> InvalidTransactionStateError:
    return InvalidTransactionStateError(
        f"The partition or group was not added to the transaction of {producer.transactional_id!r}: it has ended, or"
        " the request of another one comes late. Abort, and begin again."
    )


def _fenced(transactional: Transactional, producer: ProducerIdentity) -> ProducerFencedError:
    return ProducerFencedError(
        f"Transactional id {transactional.transactional_id!r} is in epoch {transactional.kafka_epoch}, not"
        f" {producer.epoch}: a newer producer with this id has taken over, or its transaction was open for longer"
        " than transaction.timeout.ms. Close this one."
    )
