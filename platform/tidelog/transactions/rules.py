"""The rules of transactions: pure decisions over what their log says. The log's order alone decides.

Where a Kafka coordinator decides alone, here any process may: of a commit and an abort that race, the log has one.
Source: `TransactionCoordinator`, `TransactionMetadata` (kafka 4.0).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidelog.log.base.errors import (
    ConcurrentTransactionsError,
    InvalidTransactionStateError,
    ProducerFencedError,
    SegmentTooOldError,
    StaleBatchError,
    TransactionAbortedError,
    UnknownTransactionalIdError,
)
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row
from tidelog.transactions.model import (
    EPOCHS_OF_AN_ID,
    MAX_EPOCH,
    Intent,
    IntentPart,
    State,
    Transactional,
    TransactionKey,
    Verdict,
    marker_version,
)
from tidelog.transactions.rows import (
    Expired,
    Floor,
    TransactionsFold,
    expired_row,
    floor_row,
    gone_row,
    transactional_row,
)

INIT, INTENT, ABORT, COMPLETE = "init", "intent", "abort", "done"


def verdict(fold: TransactionsFold, key: TransactionKey) -> Verdict:
    """What the log says of a transaction."""
    transactional = fold.get(key.transactional_id)
    if transactional is None:
        return Verdict.SETTLED
    if transactional.intent is not None and _is(transactional.intent, key):
        return Verdict.COMMITTED
    if (key.epoch, key.number) > (transactional.epoch, transactional.number):
        return Verdict.OPEN
    if (key.epoch, key.number) == (transactional.epoch, transactional.number) and transactional.outcome is not None:
        return transactional.outcome
    return Verdict.SETTLED


def decide_init(
    fold: TransactionsFold, transactional_id: str, timeout_ms: int, new_producer_id: int, now_ms: int
) -> RowOutcome[Transactional]:
    """Begin a new epoch, which fences the one before: what it had open is aborted by that.

    An intent of it stays, to be rolled forward. `new_producer_id` counts for an id that is new, or whose producer id
    has run out of epochs. The response is the id as it is from now on.
    """
    transactional = fold.get(transactional_id)
    epoch = (fold.expired.epoch if transactional is None else transactional.epoch) + 1
    if epoch > MAX_EPOCH:
        raise InvalidTransactionStateError(
            f"Transactional id {transactional_id!r} has used up its epochs ({MAX_EPOCH}). Take another id."
        )
    if transactional is None:
        begun = Transactional(transactional_id, new_producer_id, epoch, timeout_ms, updated_ms=now_ms)
    else:
        begun = replace(
            transactional,
            producer_id=new_producer_id if epoch % EPOCHS_OF_AN_ID == 0 else transactional.producer_id,
            epoch=epoch,
            timeout_ms=timeout_ms,
            number=0,
            outcome=None,
            updated_ms=now_ms,
        )
    return RowOutcome([transactional_row(INIT, begun), *parts_gone(fold, transactional_id)], begun)


def decide_intent(
    fold: TransactionsFold,
    key: TransactionKey,
    parts: Sequence[IntentPart],
    groups: Sequence[str],
    now_ms: int,
    batch: int | None = None,
    completed: TransactionKey | None = None,
) -> RowOutcome[Intent | None]:
    """Commit a transaction: from now on it is to be rolled forward. The response is its intent.

    A repeat changes nothing, and has None for a response when there is nothing left to roll forward. `batch`: the
    caller's own number, which rises; the one that it committed last is a repeat too, in whatever epoch. `completed`: an
    earlier transaction that the caller knows to be complete.
    Raises `ProducerFencedError`, `TransactionAbortedError`, `UnknownTransactionalIdError`; `StaleBatchError` for a
    lower batch; `InvalidTransactionStateError` out of turn; `ConcurrentTransactionsError` while the one before is
    incomplete; `SegmentTooOldError` for a segment below its topic's purge floor.
    """
    transactional = require_epoch(fold, key)
    if key.number == transactional.number:
        if transactional.outcome is Verdict.ABORTED:
            raise _aborted(key)
        return RowOutcome((), transactional.intent)
    if batch is not None and batch <= transactional.batch:
        return _batch_again(transactional, batch)
    _require_next(transactional, key)
    if transactional.intent is not None and (completed is None or not _is(transactional.intent, completed)):
        raise ConcurrentTransactionsError(
            f"Transactional id {key.transactional_id!r}: transaction {transactional.intent.number} of epoch"
            f" {transactional.intent.epoch} is committed, but not in all its topics yet. Roll it forward first."
        )
    _check_floors(fold, parts)
    sequence = fold.sequence + 1
    intent = Intent(key.epoch, key.number, sequence, tuple(parts), tuple(groups))
    decided = replace(
        transactional,
        number=key.number,
        outcome=Verdict.COMMITTED,
        sequence=sequence,
        batch=transactional.batch if batch is None else batch,
        updated_ms=now_ms,
        intent=intent,
    )
    return RowOutcome([transactional_row(INTENT, decided)], intent)


def decide_abort(fold: TransactionsFold, key: TransactionKey, now_ms: int) -> RowOutcome[Verdict]:
    """Abort a transaction unless it is decided. Any process may; the response is the verdict on it."""
    outcome = verdict(fold, key)
    transactional = fold.get(key.transactional_id)
    if outcome is not Verdict.OPEN or transactional is None or transactional.epoch != key.epoch:
        return RowOutcome((), outcome)
    aborted = replace(transactional, number=key.number, outcome=Verdict.ABORTED, updated_ms=now_ms)
    return RowOutcome([transactional_row(ABORT, aborted)], Verdict.ABORTED)


def decide_complete(fold: TransactionsFold, keys: Iterable[TransactionKey], now_ms: int) -> RowOutcome[None]:
    """Mark intents complete that are all in their topics and groups. A repeat changes nothing."""
    rows = []
    for key in keys:
        one = fold.get(key.transactional_id)
        if one is not None and one.intent is not None and _is(one.intent, key):
            rows.append(transactional_row(COMPLETE, replace(one, intent=None, updated_ms=now_ms)))
    return RowOutcome(rows, None)


# --- what else the log keeps -------------------------------------------------------------------------------


def decide_floor(fold: TransactionsFold, topic: str, topic_id: str, version: int) -> RowOutcome[list[str]]:
    """Refuse, from now on, intents that name segments of this topic id below `version` (purging, step 1).

    The response is the transactional ids whose incomplete intents name it: they are to be rolled forward (step 2).
    """
    old = fold.floors.get(topic_id)
    rows = [] if old is not None and old.version >= version else [floor_row(topic_id, Floor(topic, version))]
    return RowOutcome(rows, [one.transactional_id for one in fold.incomplete(topic_id)])


def decide_drop_floors(fold: TransactionsFold, topic_ids: Sequence[str]) -> RowOutcome[None]:
    """Drop the purge floors of topic ids that are gone: intents that name them append nothing."""
    return RowOutcome([floor_row(topic_id, None) for topic_id in topic_ids if topic_id in fold.floors], None)


def decide_expire(fold: TransactionsFold, since_ms: int) -> RowOutcome[list[str]]:
    """Expire transactional ids that did nothing since `since_ms` (ms since the epoch); the response is their names.

    Those with an incomplete intent or an open part stay, and those whose batches are numbered: a batch may come again
    however late. The epochs of an expired id go on if it returns, so that what it left in topics and groups is never
    taken for new.
    """
    gone = [
        transactional
        for transactional in fold.all()
        if transactional.updated_ms < since_ms
        and transactional.intent is None
        and transactional.batch < 0
        and fold.open(transactional.transactional_id) is None
    ]
    if not gone:
        return RowOutcome((), [])
    epoch = max(fold.expired.epoch, *(one.epoch for one in gone))
    sequence = max(fold.expired.sequence, *(one.sequence for one in gone))
    rows = [expired_row(Expired(epoch, sequence)), *(gone_row(one.transactional_id) for one in gone)]
    rows += [row for one in gone for row in parts_gone(fold, one.transactional_id)]
    return RowOutcome(rows, [one.transactional_id for one in gone])


def parts_gone(fold: TransactionsFold, transactional_id: str) -> Iterable[Row]:
    """The rows that remove what brokers noted of the id's transactions."""
    held = fold.held(transactional_id)
    return () if held is None else held.gone_rows(transactional_id)


@dataclass(frozen=True, slots=True)
class Completed:
    """Which intents are complete: all up to `sequence`, and of each id those up to its marker's version."""

    sequence: int
    versions: Mapping[str, int]
    of_expired: int

    def up_to(self, transactional_id: str) -> int:
        """The version of the id's marker up to which its intents are complete."""
        return self.versions.get(transactional_id, self.of_expired)


def completed(fold: TransactionsFold) -> Completed:
    """Which intents are complete by now."""
    incomplete = [one.intent.sequence for one in fold.incomplete() if one.intent is not None]
    versions = {
        transactional.transactional_id: marker_version(transactional.epoch, transactional.number)
        if transactional.intent is None
        else marker_version(transactional.intent.epoch, transactional.intent.number) - 1
        for transactional in fold.all()
    }
    return Completed(
        min(incomplete, default=fold.sequence + 1) - 1, versions, marker_version(fold.expired.epoch + 1, 0) - 1
    )


def is_ongoing(transactional: Transactional, pending: TransactionKey) -> bool:
    """Whether pending offsets of a transaction show that this id has one open."""
    return transactional.state is not State.PREPARE_COMMIT and (pending.epoch, pending.number) == (
        transactional.epoch,
        transactional.number + 1,
    )


def _is(intent: Intent, key: TransactionKey) -> bool:
    return (intent.epoch, intent.number) == (key.epoch, key.number)


# --- refusals ----------------------------------------------------------------------------------------------


def require_epoch(fold: TransactionsFold, key: TransactionKey) -> Transactional:
    """The id of a transaction. Raises `ProducerFencedError`, `UnknownTransactionalIdError`."""
    transactional = fold.get(key.transactional_id)
    if transactional is None:
        raise UnknownTransactionalIdError(
            f"The log of transactions does not know transactional id {key.transactional_id!r}: it did nothing for"
            " transactional.id.expiration.ms, and was forgotten with what it had open. Create a new producer."
        )
    if key.epoch != transactional.epoch:
        raise ProducerFencedError(
            f"Transactional id {key.transactional_id!r} is in epoch {transactional.epoch}, not {key.epoch}: a newer"
            " producer with this id has taken over, and aborted or finished what this one had open. Close this one."
        )
    return transactional


def _require_next(transactional: Transactional, key: TransactionKey) -> None:
    if key.number != transactional.number + 1:
        raise InvalidTransactionStateError(
            f"Transactional id {key.transactional_id!r}: transaction {key.number} of epoch {key.epoch} can't be"
            f" committed, transaction {transactional.number + 1} comes next. Create a new producer."
        )


def _batch_again(transactional: Transactional, batch: int) -> RowOutcome[Intent | None]:
    if batch < transactional.batch:
        raise StaleBatchError(
            f"Transactional id {transactional.transactional_id!r} has already committed batch {transactional.batch},"
            f" and now gets batch {batch}: the query runs from a copied or restored checkpoint, and its batches would"
            " be lost or doubled. Start it with a new checkpoint folder, which makes it a new query."
        )
    return RowOutcome((), transactional.intent)


def _aborted(key: TransactionKey) -> TransactionAbortedError:
    return TransactionAbortedError(
        f"Transaction {key.number} of transactional id {key.transactional_id!r} was aborted: it was open for longer"
        " than transaction.timeout.ms, or an operator aborted it. Nothing of it is there: call abort_transaction, and"
        " begin it again."
    )


def _check_floors(fold: TransactionsFold, parts: Sequence[IntentPart]) -> None:
    for part in parts:
        floor = fold.floors.get(part.topic_id)
        for segment in part.segments if floor is not None else ():
            if floor is not None and segment.known_version < floor.version:
                raise SegmentTooOldError(
                    f"Topic '{part.topic}': segment {segment.path} was written at version {segment.known_version},"
                    f" below the purge floor {floor.version}: its file may already be deleted as an orphan. Write the"
                    " records again."
                )
