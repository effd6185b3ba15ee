"""What there is of transactions, for the commands: from their log, and from the groups whose offsets wait for some."""

from dataclasses import dataclass

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TransactionalIdNotFoundError
from tidelog.log.lake import Lake
from tidelog.transactions.model import State, Transactional
from tidelog.transactions.open_parts import OpenTransaction
from tidelog.transactions.rules import is_ongoing
from tidelog.transactions.transaction_log import TransactionLog


@dataclass(frozen=True, slots=True)
class Shown:
    """A transactional id. `start_ms`: when its open transaction began, as far as its log or offsets that wait say so.

    A transaction of tidelog's own `Producer` that has only written records so far has no row, and is not seen here.
    """

    one: Transactional
    state: State
    start_ms: int | None
    partitions: tuple[tuple[str, int], ...]


def transactions(lake: Lake) -> list[Shown]:
    """Every transactional id, sorted."""
    since: dict[str, int] = {}
    known = TransactionLog(lake).all_with_open()
    for view in GroupLog(lake).views().values():
        for (key, _), committed in view.pending.items():
            found = known.get(key.transactional_id)
            if found is not None and is_ongoing(found[0], key):
                began = since.get(key.transactional_id, committed.commit_ms)
                since[key.transactional_id] = min(began, committed.commit_ms)
    return [_shown(one, since.get(name), there) for name, (one, there) in known.items()]


def _shown(one: Transactional, since_ms: int | None, there: OpenTransaction | None) -> Shown:
    if there is not None:
        return Shown(one, State.ONGOING, there.began_ms, tuple(there.partitions))
    if since_ms is not None:
        return Shown(one, State.ONGOING, since_ms, ())
    partitions = () if one.intent is None else tuple(one.intent.partitions)
    return Shown(one, one.state, one.updated_ms if one.intent else None, partitions)


def transaction(lake: Lake, transactional_id: str) -> Shown:
    """One of them. Raises `TransactionalIdNotFoundError`."""
    for shown in transactions(lake):
        if shown.one.transactional_id == transactional_id:
            return shown
    raise TransactionalIdNotFoundError(
        f"There is no transactional id {transactional_id!r}: an id begins with its first init_transactions, and is"
        " forgotten after transactional.id.expiration.ms. See 'tidelog transaction list'."
    )
