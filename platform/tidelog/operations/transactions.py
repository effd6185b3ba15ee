"""Transactions: what is known of each id, by their log and by the groups whose offsets wait for some."""

from dataclasses import dataclass

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TransactionalIdNotFoundError
from tidelog.log.lake import Lake
from tidelog.transactions.model import State, Transactional
from tidelog.transactions.open_parts import OpenTransaction
from tidelog.transactions.rules import is_ongoing
from tidelog.transactions.transaction_log import TransactionLog


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """A transactional id. `start_ms`: when its open transaction began, as far as its log or offsets that wait say so.

    A transaction of tidelog's own `Producer` that has only written records so far has no row, and is not seen here.
    """

    transactional: Transactional
    state: State
    start_ms: int | None
    partitions: tuple[tuple[str, int], ...]


def read_transactions(lake: Lake) -> list[TransactionSummary]:
    """Every transactional id, sorted."""
    since: dict[str, int] = {}
    written = TransactionLog(lake).all_with_open()
    for view in GroupLog(lake).views().values():
        for (key, _), committed in view.pending.items():
            found = written.get(key.transactional_id)
            if found is not None and is_ongoing(found[0], key):
                began = since.get(key.transactional_id, committed.commit_ms)
                since[key.transactional_id] = min(began, committed.commit_ms)
    return [_summary(transactional, since.get(name), part) for name, (transactional, part) in written.items()]


def _summary(transactional: Transactional, since_ms: int | None, part: OpenTransaction | None) -> TransactionSummary:
    if part is not None:
        return TransactionSummary(transactional, State.ONGOING, part.began_ms, tuple(part.partitions))
    if since_ms is not None:
        return TransactionSummary(transactional, State.ONGOING, since_ms, ())
    intent = transactional.intent
    if intent is None:
        return TransactionSummary(transactional, transactional.state, None, ())
    return TransactionSummary(transactional, transactional.state, transactional.updated_ms, tuple(intent.partitions))


def describe_transaction(lake: Lake, transactional_id: str) -> TransactionSummary:
    """One of them. Raises `TransactionalIdNotFoundError`."""
    for summary in read_transactions(lake):
        if summary.transactional.transactional_id == transactional_id:
            return summary
    raise TransactionalIdNotFoundError(
        f"There is no transactional id {transactional_id!r}: an id begins with its first init_transactions, and is"
        " forgotten after transactional.id.expiration.ms. See 'tidelog transaction list'."
    )
