"""Transactions that go wrong half way: what is lost spoils the whole, and other producers go on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.logs import values
from support.transactions import GROUP, SharedLake, copy, offsets_to, stage
from support.waiting import eventually

from tidelog.log.base.errors import (
    InvalidTransactionStateError,
    OutcomeUnknownError,
    StorageFullError,
    StorageUnavailableError,
    TransactionAbortedError,
)
from tidelog.transactions.lifecycle import TransactionPhase, TransactionStage
from tidelog.transactions.ports import GroupIdentity


def test_a_segment_that_could_not_be_written_spoils_the_transaction_for_good() -> None:
    """Its rows are gone: a commit that is repeated must not bring the rest alone."""
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    stage(producer, "b", "1")

    def full(method: str, path: str, phase: str) -> None:
        if method == "put" and path.startswith("b/partition"):
            raise StorageFullError("full")

    shared.storage.hook = full
    with pytest.raises(StorageFullError):
        producer.commit()
    shared.storage.hook = lambda *call: None
    with pytest.raises(TransactionAbortedError, match="full"):
        producer.commit()
    producer.abort()
    assert shared.seen() == [[], []]
    copy(producer, "2")
    assert shared.seen() == [["2"], ["2"]]


def test_what_comes_while_a_transaction_is_committed_is_refused_and_what_had_begun_is_in_it() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    begun, go_on = threading.Event(), threading.Event()

    def hold(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("get", "before") and path.startswith("b/_delta_log") and not begun.is_set():
            begun.set()
            assert go_on.wait(20)

    stage(producer, "a", "1")
    shared.storage.hook = hold
    with ThreadPoolExecutor(2) as others:
        adding = others.submit(stage, producer, "b", "1")
        assert begun.wait(20)
        committing = others.submit(producer.commit)
        eventually(lambda: producer._stage is not TransactionStage.OPEN, "the commit has begun")
        with pytest.raises(InvalidTransactionStateError, match="nothing can be added"):
            stage(producer, "a", "late")
        assert not committing.done()
        go_on.set()
        adding.result(20)
        committing.result(20)
    assert shared.seen() == [["1"], ["1"]]
    copy(producer, "2")
    assert shared.seen() == [["1", "2"], ["1", "2"]]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_however_often_an_operator_aborts_the_producer_aborts_once_and_goes_on(times: int) -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "0")
    producer.begin()
    stage(producer, "a", "1")
    producer.add_offsets(GroupIdentity(GROUP), offsets_to(4))
    shared.clock.pass_s(5)  # the one before is noted as done
    producer._log.mark_complete(producer._markers.completed)
    for _ in range(times):
        shared.process().log.abort_open("x")
    with pytest.raises(TransactionAbortedError):
        producer.commit()
    producer.abort()
    copy(producer, "2", 5)
    assert (shared.seen("a"), shared.process().stable()) == ([["0", "2"]], {("in", 0): 5})


def test_a_commit_without_an_answer_that_an_abort_came_before_is_aborted_and_not_repeated() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")

    def silent(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and path.startswith("__transaction_state"):
            raise StorageUnavailableError("no answer")

    shared.storage.hook = silent
    with pytest.raises(OutcomeUnknownError):
        producer.commit()
    assert producer.phase is TransactionPhase.COMMITTING
    shared.storage.hook = lambda *call: None
    shared.process().log.abort_open("x")
    with pytest.raises(TransactionAbortedError):
        producer.commit()
    assert producer.phase is TransactionPhase.OPEN
    producer.abort()
    copy(producer, "2")
    assert shared.seen("a") == [["2"]]


def test_a_program_that_ends_commits_without_its_background() -> None:
    """In a handler of `atexit`: executors take no more work by then."""
    shared = SharedLake()
    producer = shared.first.ready()
    with ThreadPoolExecutor(1) as ended:
        pass
    shared.first.lake.background = ended
    copy(producer, "1", 3)
    producer.close()
    assert (shared.seen(), shared.first.log.incomplete()) == ([["1"], ["1"]], [])


def test_maintenance_settles_what_waits_for_transactions_that_have_ended() -> None:
    shared = SharedLake(offsets_retention_minutes="1")
    old = shared.first.ready()
    old.begin()
    old.add_offsets(GroupIdentity(GROUP), offsets_to(5))
    shared.process().ready()
    groups = shared.first.groups
    assert groups.expire_offsets(shared.clock.now_ms(), dry_run=True) == {}
    assert shared.first.pending() == 1
    assert groups.expire_offsets(shared.clock.now_ms()) == {}
    assert (shared.first.pending(), groups.groups()) == (0, [])


def test_an_error_of_one_topic_is_told_when_nothing_is_written_to_the_others_any_more() -> None:
    """Else the abort would miss what is written after it. Helpers write beside the caller, whose topic fails here."""
    shared = SharedLake()
    told, written = threading.Event(), threading.Event()

    def full(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put", "before") and path.startswith("a/partition"):
            raise StorageFullError("full")
        if (method, phase) == ("put", "after") and path.startswith("b/partition"):
            told.wait(0.2)  # long enough for a caller that does not wait
            written.set()

    with ThreadPoolExecutor(1) as helpers:
        producer = shared.first.ready(helpers=helpers)
        producer.begin()
        stage(producer, "a", "1")
        stage(producer, "b", "1")
        shared.storage.hook = full
        with pytest.raises(StorageFullError):
            producer.commit()
        assert written.is_set()
        told.set()
        producer.abort()
        shared.storage.hook = lambda *call: None
        copy(producer, "2")
    assert shared.seen() == [["2"], ["2"]]
    assert len(list(shared.storage.list_after("b/partition=0"))) == 1


def test_large_parts_of_several_topics_are_written_by_one_helper() -> None:
    """Its own segments are a topic's, and not to be waited for by that helper."""
    shared = SharedLake()
    for topic in ("c", "d"):
        shared.first.lake.create_topic(topic, 2)
    with ThreadPoolExecutor(1) as helpers:
        producer = shared.first.ready(helpers=helpers)
        producer.begin()
        for topic in ("a", "c", "d"):
            rows = values(*("x" * 300_000 for _ in range(2)))
            producer.stage(topic, rows, np.array([0, 0 if topic == "a" else 1], np.int32))
        assert [*producer.commit()] == ["a", "c", "d"]
