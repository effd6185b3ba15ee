"""Bugs to plant in the transactions of brokers: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.broker.transactions.coordinator import TransactionCoordinator
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.transactions import part_rules
from tidelog.transactions.open_parts import OpenTransaction
from tidelog.transactions.part_rules import BatchJudge


@contextmanager
def forgets_the_parts_of_a_topic() -> Iterator[None]:
    """A transaction that is ended at a coordinator has the parts of its first topic only."""
    parts = OpenTransaction.parts.fget  # type: ignore[attr-defined]  # a property

    with patch.object(OpenTransaction, "parts", property(lambda self: parts(self)[:1])):
        yield


@contextmanager
def takes_the_requests_of_a_fenced_epoch() -> Iterator[None]:
    """A producer whose id has a newer one goes on as if it were that."""

    def is_any(one: Any, producer: Any) -> bool:
        return bool(one.producer_id == producer.producer_id)

    with patch.object(part_rules, "_is", is_any):
        yield


@contextmanager
def stages_a_repeated_batch_again() -> Iterator[None]:
    """A batch of a transaction that comes again is taken for a new one."""
    with patch.object(BatchJudge, "take", lambda *_: True):
        yield


@contextmanager
def never_times_a_transaction_out() -> Iterator[None]:
    """No broker watches for how long transactions are open."""

    async def never(self: Any, key: Any) -> None:
        if key in self._unfinished.incomplete:
            await finish(self, key)

    finish = TransactionCoordinator._finish
    with patch.object(TransactionCoordinator, "_finish", never):
        yield


@contextmanager
def applies_the_offsets_of_aborted_transactions() -> Iterator[None]:
    """What a transaction was to commit for a group becomes the group's, whatever its outcome."""
    settle = LoggedOffsets.settle

    def always(self: Any, group_id: str, transaction: Any, *, committed: bool) -> None:
        settle(self, group_id, transaction, committed=True)

    with patch.object(LoggedOffsets, "settle", always):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        forgets_the_parts_of_a_topic,
        takes_the_requests_of_a_fenced_epoch,
        stages_a_repeated_batch_again,
        never_times_a_transaction_out,
        applies_the_offsets_of_aborted_transactions,
    )
}
