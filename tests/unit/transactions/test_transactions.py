"""A producer's transactions over a lake in memory: all or nothing, each once, and what each call refuses."""

from collections.abc import Callable

import numpy as np
import pytest
from support.logs import values
from support.transactions import GROUP, SharedLake, copy, dies_before, offsets_to, stage

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.log.base.errors import (
    InvalidTransactionStateError,
    InvalidTransactionTimeoutError,
    OutcomeUnknownError,
    ProducerFencedError,
    StaleBatchError,
    StorageFullError,
    StorageUnavailableError,
    TopicChangedError,
    TransactionAbortedError,
    UnknownPartitionError,
    UnknownTransactionalIdError,
)
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.model import State
from tidelog.transactions.ports import GroupIdentity
from tidelog.transactions.roll_forward import complete

NOBODY = GroupIdentity(GROUP)


def files(shared: SharedLake, topic: str) -> int:
    return sum(1 for _ in shared.storage.list_after(f"{topic}/partition=0"))


# --- what others see ---------------------------------------------------------------------------------------


def test_nothing_of_a_transaction_is_seen_before_its_commit_and_all_of_it_after() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1", "2")
    stage(producer, "b", "3")
    stage(producer, "a", "4")
    producer.add_offsets(NOBODY, offsets_to(4))
    assert shared.seen() == [[], []]
    assert shared.process().offsets() == {}
    assert producer.commit() == {"a": {0: (0, 3)}, "b": {0: (0, 1)}}
    assert shared.seen() == [["1", "2", "4"], ["3"]]
    assert shared.process().offsets() == {("in", 0): 4}
    assert (shared.first.pending(), shared.first.log.incomplete()) == (0, [])


def test_nothing_of_an_aborted_transaction_is_ever_seen_and_its_files_are_gone() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    producer.add_offsets(NOBODY, offsets_to(4))
    producer.abort()
    assert (shared.seen(), shared.process().stable(), shared.first.pending()) == ([[], []], {}, 0)
    assert files(shared, "a") == 0
    copy(producer, "2", 5)
    assert (shared.seen(), shared.process().stable()) == ([["2"], ["2"]], {("in", 0): 5})


def test_an_abort_that_left_no_trace_writes_none() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    before = shared.first.log.get("x")
    producer.begin()
    stage(producer, "a", "1")
    producer.abort()
    assert shared.first.log.get("x") == before
    producer.begin()
    assert producer.commit() == {}  # an empty one leaves none either
    assert shared.first.log.get("x") == before


def test_records_that_a_topic_can_not_take_are_refused_when_they_are_staged() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    with pytest.raises(UnknownPartitionError):
        producer.stage("a", values("1"), np.array([5], np.int32))
    stage(producer, "a", "0")
    with pytest.raises(TransactionAbortedError, match="no partition 5"):
        producer.commit()
    producer.abort()
    producer.begin()
    shared.first.lake.alter_topic("a", partitions=6)
    producer.stage("a", values("1"), np.array([5], np.int32))
    producer.commit()
    assert shared.process().lake.offsets("a")[5] == (0, 1)


def test_topics_are_created_where_the_lake_allows_it() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "new", "1")
    producer.commit()
    assert shared.seen("new") == [["1"]]


@pytest.mark.parametrize("change", ["alter", "delete", "create again"])
def test_a_topic_that_changed_meanwhile_refuses_the_commit_and_nothing_is_there(change: str) -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "b", "1")
    stage(producer, "a", "1")
    lake = shared.process().lake
    if change == "alter":
        lake.alter_topic("a", config={"cleanup.policy": "compact"})
    else:
        lake.delete_topic("a")
    if change == "create again":
        lake.create_topic("a", 1)
    with pytest.raises(TopicChangedError):
        producer.commit()
    producer.abort()
    assert shared.seen("b") == [[]]


# --- the life of a producer --------------------------------------------------------------------------------

CALLS: dict[str, Callable[[TransactionManager], object]] = {
    "init": TransactionManager.init,
    "begin": TransactionManager.begin,
    "stage": lambda producer: stage(producer, "a", "1"),
    "add_offsets": lambda producer: producer.add_offsets(NOBODY, offsets_to(1)),
    "commit": TransactionManager.commit,
    "abort": TransactionManager.abort,
}
ALLOWED = {
    TransactionPhase.NEW: {"init"},
    TransactionPhase.READY: {"begin"},
    TransactionPhase.OPEN: {"stage", "add_offsets", "commit", "abort"},
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("phase", ALLOWED)
def test_each_call_has_its_time(phase: TransactionPhase, call: str) -> None:
    shared = SharedLake()
    producer = shared.first.producer()
    if phase is not TransactionPhase.NEW:
        producer.init()
    if phase is TransactionPhase.OPEN:
        producer.begin()
    assert producer.phase is phase
    if call in ALLOWED[phase]:
        CALLS[call](producer)
    else:
        with pytest.raises(InvalidTransactionStateError):
            CALLS[call](producer)
        assert producer.phase is phase


@pytest.mark.parametrize("late", ["commit", "abort"])
def test_a_newer_producer_of_the_same_id_fences_the_older_one_for_good(late: str) -> None:
    shared = SharedLake()
    old = shared.first.ready()
    old.begin()
    stage(old, "a", "old")
    old.add_offsets(NOBODY, offsets_to(3))
    new = shared.process().ready()
    with pytest.raises(ProducerFencedError):
        CALLS[late](old)
    assert old.phase is TransactionPhase.FENCED
    for call in CALLS.values():
        with pytest.raises(ProducerFencedError):
            call(old)
    copy(new, "new")
    assert shared.seen() == [["new"], ["new"]]
    assert shared.process().stable() == {}


def test_a_producer_that_was_forgotten_is_told() -> None:
    shared = SharedLake(transactional_id_expiration_ms="1000")
    producer = shared.first.ready()
    shared.clock.pass_s(2)
    assert shared.process().log.expire() == ["x"]
    assert shared.process().log.expire() == []
    producer.begin()
    stage(producer, "a", "1")
    with pytest.raises(UnknownTransactionalIdError):
        producer.commit()
    again = shared.process().ready()
    copy(again, "2")
    assert shared.seen("a") == [["2"]]


def test_markers_of_a_forgotten_id_are_not_taken_for_those_of_the_new_one() -> None:
    shared = SharedLake(transactional_id_expiration_ms="1000")
    for text in "12":
        producer = shared.process().ready()
        copy(producer, text)
        copy(producer, text * 2)
        producer.close()
        shared.clock.pass_s(2)
        assert shared.process().log.expire() == ["x"]
    assert shared.seen("a") == [["1", "11", "2", "22"]]


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_time_out_that_the_lake_does_not_allow(timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeoutError):
        SharedLake().first.producer(timeout_ms=timeout_ms).init()


def test_what_took_longer_than_its_time_out_is_not_committed() -> None:
    shared = SharedLake()
    producer = shared.first.ready(timeout_ms=1_000)
    producer.begin()
    stage(producer, "a", "1")
    shared.clock.pass_s(1.1)
    with pytest.raises(TransactionAbortedError):
        producer.commit()
    producer.abort()
    copy(producer, "2")
    assert shared.seen("a") == [["2"]]


def test_an_operators_abort_meets_the_open_transaction_and_no_other() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    shared.process().log.abort_open("x")
    with pytest.raises(TransactionAbortedError):
        producer.commit()
    producer.abort()
    copy(producer, "2")
    producer.begin()
    shared.process().log.abort_open("x")
    producer.abort()
    copy(producer, "3")
    assert shared.seen("a") == [["2", "3"]]


def test_a_batch_that_was_committed_is_not_committed_again() -> None:
    shared = SharedLake()
    for text, batch in [("0", 0), ("1", 1)]:
        producer = shared.process().ready()
        producer.begin()
        stage(producer, "a", text)
        producer.commit(batch)
    again = shared.process().ready()
    assert again.committed_batch == 1
    again.begin()
    stage(again, "a", "once more")
    stage(again, "b", "elsewhere")
    assert again.commit(1) == {}
    again.begin()
    stage(again, "a", "2")
    again.commit(2)
    again.begin()
    stage(again, "a", "copied")
    with pytest.raises(StaleBatchError):
        again.commit(1)
    again.abort()
    assert shared.seen() == [["0", "1", "2"], []]


def test_a_batch_without_records_counts_too() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    producer.commit(4)
    assert shared.process().ready().committed_batch == 4


# --- unknown outcomes --------------------------------------------------------------------------------------


def lost(table: str, times: int) -> Callable[[str, str, str], None]:
    """The answers of this number of puts into a table's log are lost."""
    left = [times]

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after") and path.startswith(f"{table}/_delta_log") and left[0]:
            left[0] -= 1
            raise StorageUnavailableError("no answer")

    return hook


@pytest.mark.parametrize("table", ["__transaction_state", "__consumer_offsets", "a", "b"])
def test_lost_answers_change_nothing(table: str) -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    copy(producer, "1", 1)
    shared.storage.hook = lost(table, 3)
    copy(producer, "2", 2)
    shared.storage.hook = lambda *call: None
    copy(producer, "3", 3)
    assert shared.seen() == [["1", "2", "3"], ["1", "2", "3"]]
    assert shared.process().stable() == {("in", 0): 3}


def test_a_commit_without_an_answer_is_taken_up_by_the_next_call_and_can_not_be_aborted() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")

    def silent(method: str, path: str, phase: str) -> None:
        if method in ("put_if_absent", "get") and path.startswith("__transaction_state") and put:
            raise StorageUnavailableError("no answer")
        if (method, phase) == ("put_if_absent", "after") and path.startswith("__transaction_state"):
            put.append(path)
            raise StorageUnavailableError("no answer")

    put: list[str] = []
    shared.storage.hook = silent
    with pytest.raises((OutcomeUnknownError, StorageUnavailableError)):
        producer.commit()
    shared.storage.hook = lambda *call: None
    assert producer.phase is TransactionPhase.COMMITTING
    with pytest.raises(InvalidTransactionStateError):
        stage(producer, "a", "2")
    with pytest.raises(InvalidTransactionStateError, match="is committed"):
        producer.abort()
    producer.commit()
    assert shared.seen("a") == [["1"]]
    copy(producer, "2")
    assert shared.seen("a") == [["1", "2"]]


def test_a_commit_without_an_answer_keeps_its_files_when_its_producer_is_fenced() -> None:
    """Its successor has finished it: an abort, or the end of the older one, must not delete what is in the topics."""
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    put: list[str] = []

    def silent(method: str, path: str, phase: str) -> None:
        if path.startswith("__transaction_state") and (put or (method, phase) == ("put_if_absent", "after")):
            put.append(path)
            raise StorageUnavailableError("no answer")

    shared.storage.hook = silent
    with pytest.raises((OutcomeUnknownError, StorageUnavailableError)):
        producer.commit()
    shared.storage.hook = lambda *call: None
    shared.process().ready()
    with pytest.raises(ProducerFencedError):
        producer.abort()
    producer.close()
    assert shared.seen("a") == [["1"]]


def test_a_commit_without_an_answer_of_which_the_log_keeps_nothing_is_not_taken_for_aborted() -> None:
    """It was completed by another process, and an operator aborted the id's next one: the files are in the topics."""
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    put: list[str] = []

    def silent(method: str, path: str, phase: str) -> None:
        if path.startswith("__transaction_state") and (put or (method, phase) == ("put_if_absent", "after")):
            put.append(path)
            raise StorageUnavailableError("no answer")

    shared.storage.hook = silent
    with pytest.raises((OutcomeUnknownError, StorageUnavailableError)):
        producer.commit()
    shared.storage.hook = lambda *call: None
    other = shared.process()
    (left,) = other.log.incomplete()
    complete(other.lake, other.log, LoggedOffsets(other.groups), left)
    other.log.abort_open("x")
    for _ in range(2):
        with pytest.raises(ProducerFencedError, match="is unknown now"):
            producer.abort()
    assert producer.phase is TransactionPhase.FENCED
    assert shared.seen("a") == [["1"]]


def test_a_commit_that_failed_before_it_was_decided_can_be_repeated_or_aborted() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    for what in ("repeat", "abort"):
        producer.begin()
        stage(producer, "a", what)

        def full(method: str, path: str, phase: str) -> None:
            if method == "put" and path.startswith("__transaction_state"):
                raise StorageFullError("full")

        shared.storage.hook = full
        with pytest.raises(StorageFullError):
            producer.commit()
        shared.storage.hook = lambda *call: None
        with pytest.raises(InvalidTransactionStateError, match="nothing can be added"):
            stage(producer, "a", "more")
        producer.commit() if what == "repeat" else producer.abort()
    assert shared.seen("a") == [["repeat"]]


def test_what_a_dead_producer_has_committed_its_successor_finishes_before_it_begins() -> None:
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    stage(producer, "b", "1")
    dies_before(shared, "b", producer)
    assert shared.seen() == [["1"], []]
    assert [one.state for one in shared.process().log.incomplete()] == [State.PREPARE_COMMIT]
    shared.process().ready()
    assert shared.seen() == [["1"], ["1"]]
    assert shared.process().log.incomplete() == []
    with pytest.raises(ProducerFencedError):
        producer.begin() if producer.phase is TransactionPhase.READY else producer.abort()
