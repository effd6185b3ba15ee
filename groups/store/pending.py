"""Offsets that wait for transactions, for readers of a group's offsets: the log of transactions says which count."""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

from tidelog.groups.model import GroupView
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import UnstableOffsetError
from tidelog.transactions.model import TransactionKey, Verdict
from tidelog.transactions.transaction_log import TransactionLog

Verdicts = Mapping[TransactionKey, Verdict]

# Transactions whose time runs here; past that the ones first seen begin again when they are seen again.
_MOST_WATCHED: Final = 10_000


def resolve(
    look: Callable[[], GroupView], ask: Callable[[Collection[TransactionKey]], Verdicts]
) -> tuple[GroupView, Verdicts]:
    """The group as it is when every transaction that has ended counts, and what became of those that offsets wait for.

    `look` gives the group as its log says, `ask` what becomes of transactions, in that order: a transaction that was
    open when the group was read may have ended since, never the other way round. What the log of transactions says no
    more was settled in the group's log before: it is read again, and what still waits there was aborted. What waits for
    an open transaction stays `pending`.
    """
    settled: set[TransactionKey] = set()
    while True:
        view = look()
        keys = {key for key, _ in view.pending}
        answers = ask(keys - settled) if keys - settled else {}
        again = {key for key, verdict in answers.items() if verdict is Verdict.SETTLED}
        if not again:
            verdicts = {key: answers.get(key, Verdict.ABORTED) for key in keys}
            return _counted(view, verdicts), verdicts
        settled |= again


def _counted(view: GroupView, verdicts: Verdicts) -> GroupView:
    if not view.pending:
        return view
    offsets = dict(view.offsets)
    for (key, place), committed in view.pending.items():
        if verdicts[key] is Verdict.COMMITTED:
            offsets[place] = committed
    still_open = {waiting: one for waiting, one in view.pending.items() if verdicts[waiting[0]] is Verdict.OPEN}
    return replace(view, offsets=offsets, pending=still_open)


class Patience:
    """Aborts transactions that groups' offsets wait for, when they have been open for longer than their time-out.

    Only time that this observer itself saw counts, so that no two clocks are compared.
    """

    def __init__(self, transactions: TransactionLog, clock: Clock) -> None:
        self._transactions = transactions
        self._clock = clock
        self._lock = threading.Lock()
        self._since_s: dict[TransactionKey, float] = {}

    def aborts(self, keys: Collection[TransactionKey]) -> bool:
        """Whether one of these open transactions has had its time, and is decided now."""
        now_s = self._clock.elapsed_s()
        with self._lock:
            since_s = {key: self._since_s.setdefault(key, now_s) for key in keys}
            while len(self._since_s) > _MOST_WATCHED:
                del self._since_s[next(iter(self._since_s))]
        late = [key for key in keys if now_s - since_s[key] >= self._timeout_s(key)]
        for key in late:
            self._transactions.abort(key)
            with self._lock:
                self._since_s.pop(key, None)
        return bool(late)

    def _timeout_s(self, key: TransactionKey) -> float:
        one = self._transactions.get(key.transactional_id)
        return 0.0 if one is None else one.timeout_ms / 1000


def unstable(group_id: str, view: GroupView) -> UnstableOffsetError:
    """What is raised while offsets wait for open transactions."""
    (key, (topic, partition)), *_ = view.pending
    return UnstableOffsetError(
        f"Offsets of group {group_id!r} wait for a transaction of {key.transactional_id!r}, that of topic '{topic}',"
        f" partition {partition}, among them: where to go on is known when it ends, at the latest after its"
        " transaction.timeout.ms. Ask again."
    )
