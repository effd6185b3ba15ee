"""Crashes between any two calls to the store, and interleavings of several producers: all or nothing, each once."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.crashes import Crash, CrashAt
from support.logs import read
from support.transactions import GROUP, SharedLake, copy, offsets_to, stage

from tidelog.check.lake import check_lake
from tidelog.log.base.errors import (
    InvalidTransactionStateError,
    ProducerFencedError,
    StorageUnavailableError,
    TidelogError,
    TransactionAbortedError,
)
from tidelog.transactions.lifecycle import TransactionPhase
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity


def judge(shared: SharedLake, texts: list[str]) -> int:
    """How many of the transactions with these texts, in order, are there; whole, each once, with their offsets."""
    a, b = shared.seen()
    assert a == b == texts[: len(a)]
    found = shared.process().stable()
    assert found == ({("in", 0): len(a)} if a else {})
    return len(a)


def run_to_crash(moment: int) -> bool:
    """Copy two transactions with a crash at that moment; then another producer goes on. Whether it crashed."""
    shared = SharedLake()
    hook = CrashAt(moment)
    process = shared.process()
    shared.storage.hook = hook
    try:
        producer = process.ready()
        copy(producer, "1", 1)
        copy(producer, "2", 2)
    except Crash:
        pass
    shared.storage.hook = lambda *call: None
    if moment % 2:
        shared.storage.inner.lose_power()
    successor = shared.process()
    producer = successor.ready()
    done = judge(shared, ["1", "2"])
    assert done == 2 or hook.crashed
    for text in range(done + 1, 4):
        copy(producer, str(text), text)
    assert judge(shared, ["1", "2", "3"]) == 3
    producer.close()
    assert (successor.log.incomplete(), successor.pending()) == ([], 0)
    if moment % 20 == 0:
        assert check_lake(shared.storage, deep=True).green
    return hook.crashed


def test_a_crash_between_any_two_calls_leaves_all_or_nothing() -> None:
    moment = 0
    while run_to_crash(moment):
        moment += 1
    assert moment > 60


def test_a_crash_and_a_reader_that_comes_before_the_successor() -> None:
    """A reader of the group's offsets resolves them; the producer that comes next finds the same."""
    for moment in range(0, 200, 3):
        shared = SharedLake()
        hook = CrashAt(moment)
        process = shared.process()
        shared.storage.hook = hook
        with suppress(Crash):
            copy(process.ready(), "1", 1)
        shared.storage.hook = lambda *call: None
        reader = shared.process()
        try:
            before = reader.stable()
        except TidelogError:
            shared.clock.pass_s(61)
            before = reader.stable()
        shared.process().ready()
        assert judge(shared, ["1"]) == len(before)
        if not hook.crashed:
            return
    raise AssertionError("it never came to an end")


# --- interleavings -----------------------------------------------------------------------------------------


class Player:
    """A producer of id x that does one step at a time, and the answers that it got."""

    def __init__(self, shared: SharedLake, name: str) -> None:
        self.process = shared.process()
        self.name = name
        self.producer: TransactionManager = self.process.producer()
        self.count = 0
        self.committed: list[str] = []
        self.unknown: list[str] = []
        self.text = ""

    def step(self, what: str) -> None:
        try:
            getattr(self, what)()
        except ProducerFencedError:
            self.producer = self.process.producer()  # it is closed, and a new one made
        except (InvalidTransactionStateError, TransactionAbortedError, StorageUnavailableError):
            pass

    def init(self) -> None:
        if self.producer.phase in (TransactionPhase.NEW, TransactionPhase.READY):
            self.producer.init()

    def begin(self) -> None:
        self.producer.begin()
        self.count += 1
        self.text = f"{self.name}{self.count}"
        stage(self.producer, "a", self.text)
        stage(self.producer, "b", self.text)

    def offsets(self) -> None:
        self.producer.add_offsets(GroupIdentity(GROUP), offsets_to(self.count % 10))

    def commit(self) -> None:
        text = self.text
        if self.producer.phase in (TransactionPhase.OPEN, TransactionPhase.COMMITTING):
            self.unknown.append(text)
            self.producer.commit()
            self.committed.append(text)

    def abort(self) -> None:
        self.producer.abort()

    def read(self) -> None:
        with suppress(TidelogError):
            self.process.stable()


STEPS = ["init", "begin", "offsets", "commit", "commit", "abort", "read"]
MOVES = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(STEPS), st.integers(0, 9)), max_size=25)


@given(MOVES)
def test_two_producers_with_one_id_in_any_order(moves: list[tuple[int, str, int]]) -> None:
    shared = SharedLake()
    players = [Player(shared, "p"), Player(shared, "q")]
    for who, what, luck in moves:
        shared.storage.hook = failing(luck)
        try:
            players[who].step(what)
        finally:
            shared.storage.hook = lambda *call: None
    shared.process().ready()
    a, b = shared.seen()
    assert sorted(a) == sorted(b)
    assert len(set(a)) == len(a)
    committed = {text for player in players for text in player.committed}
    tried = {text for player in players for text in player.unknown}
    assert committed <= set(a) <= tried
    last = [text for text in a if text[0] == "p"]
    assert last == sorted(last, key=lambda text: int(text[1:]))
    shared.clock.pass_s(61)
    reader = shared.process()
    reader.stable()
    assert reader.pending() == 0


def failing(luck: int) -> Callable[[str, str, str], Any]:
    """Now and then a call in the midst has no answer, and all after it."""
    left = [luck * 3]

    def hook(method: str, path: str, phase: str) -> None:
        left[0] -= 1
        if luck and left[0] == 0 and method != "list_after":
            raise StorageUnavailableError("no answer")

    return hook


def test_a_commit_and_an_abort_that_race() -> None:
    """An observer aborts in the very moment in which the producer commits: before or after its entry."""
    fates = set()
    for moment in range(60):
        shared = SharedLake()
        producer = shared.first.ready()
        producer.begin()
        stage(producer, "a", "1")
        stage(producer, "b", "1")
        producer.add_offsets(GroupIdentity(GROUP), offsets_to(1))
        abort, left = partial(shared.process().log.abort, producer._key()), [moment]

        def race(
            method: str, path: str, phase: str, abort: Callable[[], object] = abort, left: list[int] = left
        ) -> None:
            left[0] -= 1
            if left[0] == -1:
                abort()

        shared.storage.hook = race
        try:
            producer.commit()
        except TransactionAbortedError:
            producer.abort()
            done = 0
        else:
            done = 1
        shared.storage.hook = lambda *call: None
        assert judge(shared, ["1"]) == done
        copy(producer, "2", 2) if done else copy(producer, "1", 1)
        judge(shared, ["1", "2"])
        fates.add(done)
    assert fates == {0, 1}


def test_reading_is_of_the_topics_alone() -> None:
    """Readers of a topic never look up transactions: an open one delays none of them."""
    shared = SharedLake()
    producer = shared.first.ready()
    producer.begin()
    stage(producer, "a", "1")
    lake = shared.process().lake
    asked: list[str] = []
    shared.storage.hook = lambda method, path, phase: asked.append(path)
    assert read(lake, "a") == []
    shared.storage.hook = lambda *call: None
    assert not [path for path in asked if path.startswith("__transaction_state")]
