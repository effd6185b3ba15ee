"""Groups' offsets in transactions: they wait, count when it commits, and delay no reader for long."""

import pytest
from support.transactions import GROUP, SharedLake, copy, offsets_to, stage

from tidelog.groups.model import CommittedOffset, GroupView
from tidelog.groups.store.group_log import resolve
from tidelog.log.base.errors import (
    IllegalGenerationError,
    OffsetOutOfRangeError,
    StorageFullError,
    TransactionAbortedError,
    UnstableOffsetError,
)
from tidelog.transactions.model import TransactionKey, Verdict
from tidelog.transactions.ports import GroupIdentity

NOBODY = GroupIdentity(GROUP)


def test_offsets_wait_for_their_transaction() -> None:
    shared = SharedLake()
    copy(shared.first.ready("other"), "0", 2)
    producer = shared.first.ready()
    producer.begin()
    producer.add_offsets(NOBODY, offsets_to(5))
    reader = shared.process()
    assert reader.offsets() == {("in", 0): 2}
    with pytest.raises(UnstableOffsetError):
        reader.stable()
    producer.commit()
    assert reader.stable() == reader.offsets() == {("in", 0): 5}


def test_whoever_waits_for_longer_than_the_time_out_aborts_the_transaction() -> None:
    shared = SharedLake()
    producer = shared.first.ready(timeout_ms=30_000)
    producer.begin()
    stage(producer, "a", "1")
    producer.add_offsets(NOBODY, offsets_to(5))
    reader = shared.process()
    for _ in range(3):
        with pytest.raises(UnstableOffsetError):
            reader.stable()
        shared.clock.pass_s(10)
    assert reader.stable() == {}
    with pytest.raises(TransactionAbortedError):
        producer.commit()
    producer.abort()
    assert (shared.seen("a"), shared.first.pending()) == ([[]], 0)


def test_a_reader_finishes_what_a_dead_producer_has_committed() -> None:
    """The intent is there, and its producer died before the group heard of it."""
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    producer.add_offsets(NOBODY, offsets_to(5))

    def die(method: str, path: str, phase: str) -> None:
        if path.startswith("__consumer_offsets"):
            raise StorageFullError("dead")

    shared.storage.hook = die
    with pytest.raises(StorageFullError):
        producer.commit()
    shared.storage.hook = lambda *call: None
    reader = shared.process()
    assert reader.offsets() == {("in", 0): 5}
    assert reader.pending() == 1
    assert reader.stable() == {("in", 0): 5}
    assert reader.pending() == 0


def test_offsets_of_a_fenced_producer_do_not_count_and_do_not_hold_up() -> None:
    shared = SharedLake()
    old = shared.first.ready()
    old.begin()
    old.add_offsets(NOBODY, offsets_to(5))
    shared.process().ready()
    reader = shared.process()
    assert reader.stable() == {}
    assert reader.pending() == 0


def test_offsets_are_refused_as_those_of_any_commit_and_the_transaction_can_be_aborted() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    with pytest.raises(OffsetOutOfRangeError):
        producer.add_offsets(NOBODY, offsets_to(11))
    with pytest.raises(IllegalGenerationError):
        producer.add_offsets(GroupIdentity(GROUP, "gone", 0), offsets_to(1))
    producer.abort()
    assert shared.process().stable() == {}


def test_a_commit_without_a_transaction_stands_against_offsets_that_wait_since_before() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    producer.add_offsets(NOBODY, offsets_to(5))
    shared.process().groups.commit_offsets(GROUP, {("in", 0): CommittedOffset(7)})
    producer.commit()
    assert shared.process().stable() == {("in", 0): 7}


@pytest.mark.parametrize("first", ["older", "newer"])
def test_of_two_transactions_offsets_those_written_last_stand(first: str) -> None:
    shared = SharedLake()
    older, newer = shared.process().ready("older"), shared.process().ready("newer")
    for producer, offset in ((older, 3), (newer, 6)):
        producer.begin()
        producer.add_offsets(NOBODY, offsets_to(offset))
    for producer in (older, newer) if first == "older" else (newer, older):
        producer.commit()
    assert (shared.process().stable(), shared.first.pending()) == ({("in", 0): 6}, 0)


def test_a_group_that_is_deleted_or_forgotten_takes_what_waits_with_it() -> None:
    shared = SharedLake(offsets_retention_minutes="1")
    producer = shared.first.ready(timeout_ms=900_000)
    producer.begin()
    producer.add_offsets(NOBODY, offsets_to(5))
    shared.clock.pass_s(120)
    assert shared.first.groups.expire_offsets(shared.clock.now_ms()) == {}
    assert shared.first.pending() == 1
    shared.first.groups.delete_group(GROUP)
    assert shared.first.pending() == 0
    producer.commit()
    assert shared.process().stable() == {}


# --- a transaction of which its log says no more ------------------------------------------------------------

PLACE = ("in", 0)
KEY = TransactionKey("x", 77, 0, 1)
WAITING = GroupView(offsets={PLACE: CommittedOffset(2)}, pending={(KEY, PLACE): CommittedOffset(5)})
SETTLED_SINCE = GroupView(offsets={PLACE: CommittedOffset(5)})


@pytest.mark.parametrize(
    ("looks", "told", "offset"),
    [
        ([WAITING], Verdict.COMMITTED, 5),
        ([WAITING], Verdict.ABORTED, 2),
        ([WAITING, SETTLED_SINCE], Verdict.SETTLED, 5),  # committed between the two looks, and forgotten
        ([WAITING, WAITING], Verdict.SETTLED, 2),  # it still waits: then it was aborted
    ],
)
def test_what_a_group_is_believed_to_have_read(looks: list[GroupView], told: Verdict, offset: int) -> None:
    left = iter(looks)
    view, _ = resolve(lambda: next(left), lambda keys: dict.fromkeys(keys, told))
    assert view.offsets[PLACE].offset == offset
    assert not list(left)
