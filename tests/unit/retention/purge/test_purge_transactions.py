"""Purges and transactions: what a transaction has decided is never taken for an orphan, however late it lands."""

import numpy as np
import pytest
from support.logs import values
from support.purges import HOUR_S, data_files, missing_files
from support.transactions import SharedLake, dies_before

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.key_erasure import erase_keys
from tidelog.retention.purge.run import Purger
from tidelog.transactions.upkeep import TransactionUpkeep


def left_undone() -> tuple[SharedLake, set[str]]:
    """A producer that died hours ago, its transaction decided and in none of its topics; its files in topic "a"."""
    shared = SharedLake()
    producer = shared.process().ready()
    producer.begin()
    for topic in ("a", "b"):
        producer.stage(topic, values("1", key=[b"customer-17"]), np.zeros(1, np.int32))
    dies_before(shared, "a", producer)
    shared.clock.pass_s(3 * HOUR_S)
    return shared, data_files(shared.storage, "a")


def test_a_purge_rolls_forward_what_was_decided() -> None:
    shared, staged = left_undone()
    assert len(staged) == 1
    process = shared.process()
    lake = process.lake
    needed = TransactionUpkeep(lake, LoggedOffsets(process.groups)).needed_files
    with Holder(lake.storage, lake.clock, lake.ids, "purge") as holder:
        done = Purger(lake, holder, needed=needed).purge("a")
    assert [d.why for d in done.deleted] == []
    assert data_files(shared.storage, "a") == staged
    assert shared.seen() == [["1"], ["1"]]
    assert missing_files(shared.storage, "a") == set()


def test_without_its_word_a_purge_would_take_it_for_an_orphan() -> None:
    shared, staged = left_undone()
    lake = shared.process().lake
    with Holder(lake.storage, lake.clock, lake.ids, "purge") as holder:
        done = Purger(lake, holder).purge("a", dry_run=True)
    assert {d.path for d in done.deleted} == staged


@pytest.mark.parametrize("dry_run", [False, True])
def test_forgetting_reaches_what_is_committed_and_not_in_the_topic_yet(dry_run: bool) -> None:
    shared, _ = left_undone()
    process = shared.process()
    transactions = TransactionUpkeep(process.lake, LoggedOffsets(process.groups))
    done = erase_keys(
        process.lake,
        "a",
        [b"customer-17"],
        dry_run=dry_run,
        needed=transactions.needed_files,
        settle=transactions.complete_for,
    )
    assert done.records == (0 if dry_run else 1)
    assert shared.seen() == [[], [] if dry_run else ["1"]]
    assert bool(process.log.incomplete()) is dry_run
