"""What operators decide about transactions: aborts of what others have open. Pure, as `rules`.

The producers of such transactions do not know of it. One that adds its parts at brokers is fenced, as by a time-out: it
would go on in a transaction that has lost its first records, and commit the rest.
"""

from collections.abc import Collection

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    TransactionalIdNotFoundError,
)
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.open_parts import Place
from tidelog.transactions.part_rules import Ended, decide_time_out
from tidelog.transactions.rows import TransactionsFold
from tidelog.transactions.rules import decide_abort, decide_init


def decide_abort_open(
    fold: TransactionsFold, transactional_id: str, now_ms: int, producer_id: int | None = None
) -> RowOutcome[TransactionKey]:
    """Abort what a transactional id has open, whatever it is: its commit is refused from then on.

    `producer_id`: only when it still is the id's. Raises `TransactionalIdNotFoundError`,
    `InvalidTransactionStateError` while a committed transaction is incomplete.
    """
    transactional = fold.get(transactional_id)
    if transactional is None or producer_id not in (None, transactional.producer_id):
        raise TransactionalIdNotFoundError(
            f"There is no transactional id {transactional_id!r}"
            + ("" if transactional is None else f" with producer id {producer_id}: it has {transactional.producer_id}")
            + ". See 'tidelog transaction list'."
        )
    there = fold.open(transactional_id)
    if there is not None:
        return RowOutcome(decide_time_out(fold, there.key, now_ms).rows, there.key)
    if transactional.intent is not None:
        raise InvalidTransactionStateError(
            f"Transactional id {transactional_id!r} has committed transaction {transactional.intent.number} of epoch"
            f" {transactional.intent.epoch}, which can't be aborted any more: it is rolled forward by its producer's"
            " next instance, or by maintenance."
        )
    key = transactional.key(transactional.number + 1)
    return RowOutcome(decide_abort(fold, key, now_ms).rows, key)


def decide_abort_marker(
    fold: TransactionsFold, producer_id: int, epoch: int, places: Collection[Place], now_ms: int
) -> RowOutcome[Ended | None]:
    """An abort marker for these places: what the producer has open in one of them is aborted.

    All of it, in other partitions too: no transaction is ever aborted in part. The response is None where nothing is
    open, so that a repeat changes nothing. Raises `InvalidProducerEpochError` for a producer that is in a later epoch.
    Source: `ProducerAppendInfo.appendEndTxnMarker` (kafka 4.2), KIP-664.
    """
    transactional = next((one for one in fold.all() if one.producer_id == producer_id), None)
    if transactional is None:
        return RowOutcome((), None)
    if epoch < transactional.kafka_epoch:
        raise InvalidProducerEpochError(
            f"Producer {producer_id} is in epoch {transactional.kafka_epoch}, not {epoch}: the transaction to abort has"
            " ended."
        )
    there = fold.open(transactional.transactional_id)
    if there is None or not any(place in there.places for place in places):
        return RowOutcome((), None)
    return decide_time_out(fold, there.key, now_ms)


def decide_new_epochs(fold: TransactionsFold, new_producer_id: int, now_ms: int) -> RowOutcome[int]:
    """Begin a new epoch of every transactional id, as `decide_init` does of one; how many there are.

    For a lake that takes another one's place: producers of that one begin again, and none commits here what it began
    there. Producer ids from `new_producer_id` on count for those that have run out of epochs.
    """
    rows: list[Row] = []
    ids = list(fold.all())
    for number, one in enumerate(ids):
        new_id = (new_producer_id + number) % 2**63
        rows.extend(decide_init(fold, one.transactional_id, one.timeout_ms, new_id, now_ms).rows)
    return RowOutcome(rows, len(ids))
