"""Bugs to plant in transactions: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.groups.store import group_log
from tidelog.transactions import roll_forward, rules
from tidelog.transactions.model import Verdict


@contextmanager
def rolls_an_intent_forward_again() -> Iterator[None]:
    """A topic does not look whether it holds an intent."""
    with patch.object(roll_forward.IntentMarker, "is_there", lambda *_: False):
        yield


class _Forgets:
    """What the log says, without that the transactional id's last transaction was aborted."""

    def __init__(self, fold: Any) -> None:
        self._fold = fold

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fold, name)

    def get(self, transactional_id: str) -> Any:
        one = self._fold.get(transactional_id)
        if one is None or one.outcome is not Verdict.ABORTED:
            return one
        return replace(one, number=one.number - 1, outcome=None)


@contextmanager
def takes_an_intent_after_an_abort() -> Iterator[None]:
    """An intent is decided on without a look at the abort before it."""
    decide_intent = rules.decide_intent

    def deaf(fold: Any, key: Any, *more: Any) -> Any:
        one = fold.get(key.transactional_id)
        again = one is not None and (key.epoch, key.number) == (one.epoch, one.number)
        return decide_intent(_Forgets(fold) if again else fold, key, *more)

    with patch.object(rules, "decide_intent", deaf):
        yield


@contextmanager
def counts_the_offsets_of_aborted_transactions() -> Iterator[None]:
    """A reader that finds pending offsets makes them the group's, whatever the transaction's outcome."""
    settle = group_log.settle

    def always(view: Any, transaction: Any, *, committed: bool) -> Any:
        return settle(view, transaction, committed=True)

    with patch.object(group_log, "settle", always):
        yield


@contextmanager
def lets_an_old_epoch_go_on() -> Iterator[None]:
    """A producer whose id has a newer one is not fenced: it commits as if it were that."""
    decide_intent, check = rules.decide_intent, rules.require_epoch

    def unfenced(fold: Any, key: Any, *more: Any) -> Any:
        one = fold.get(key.transactional_id)
        if one is not None and key.epoch < one.epoch:
            key = one.key(one.number + 1)
        return decide_intent(fold, key, *more)

    def known(fold: Any, key: Any) -> Any:
        return fold.get(key.transactional_id) or check(fold, key)

    with patch.object(rules, "decide_intent", unfenced), patch.object(rules, "require_epoch", known):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        rolls_an_intent_forward_again,
        takes_an_intent_after_an_abort,
        counts_the_offsets_of_aborted_transactions,
        lets_an_old_epoch_go_on,
    )
}
