"""A topic's entries at one broker: shares that come while an entry is written are in the next one together."""

import threading
from concurrent.futures import Future
from typing import Any

import pytest
from support.logs import memory_lake, open_lake, read, stage

from tidelog.broker.produce.joint_entries import JointEntries
from tidelog.log.appends.joint import JointAppend, configuration_digest
from tidelog.log.base.errors import OutcomeUnknownError, UnknownPartitionError, UnknownTopicError
from tidelog.log.rules.appends import CommitOutcome, StagedShare, committed

LONG_S = 60.0


class World:
    """A lake, and entries whose threads begin when the test says so."""

    def __init__(self) -> None:
        self.lake, self.storage, clock = memory_lake()
        self.lake.create_topic("t", 2)
        self.other = open_lake(self.storage.inner, clock)
        self.begun: list[Any] = []
        self.entries = JointEntries(lambda: self.lake.topic("t"), self.begun.append, within_s=2.0)

    def share(self, *texts: str) -> StagedShare:
        topic = self.other.topic("t")
        return StagedShare(stage(topic, *texts, partition=[0] * len(texts)), configuration_digest(topic.known.metadata))

    def run(self) -> None:
        """Run what was to be run by a thread."""
        while self.begun:
            self.begun.pop(0)()

    @property
    def version(self) -> int:
        return self.lake.topic("t").state().version


@pytest.fixture
def world() -> World:
    return World()


def test_a_share_is_committed_by_the_thread_that_brings_it(world: World) -> None:
    assert world.entries.commit(world.share("a"), LONG_S) == committed({0: (0, 1)})
    assert not world.begun


def test_what_others_handed_over_and_what_was_staged_here_is_one_entry(world: World) -> None:
    before = world.version
    answers = [world.entries.add(world.share("b").repeated()), world.entries.add(world.share("c", "d").repeated())]
    assert len(world.begun) == 1
    own = world.entries.commit(world.share("a"), LONG_S)
    assert isinstance(own, Future)
    world.run()
    ranges = [{0: (0, 1)}, {0: (1, 3)}, {0: (3, 4)}]
    assert [one.result(0) for one in [*answers, own]] == [committed(one) for one in ranges]
    assert world.version == before + 1
    assert read(world.lake, "t") == ["b", "c", "d", "a"]


def test_what_comes_while_an_entry_is_written_shares_the_next_one(world: World) -> None:
    late: list[Any] = []

    def another_comes(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and phase == "before" and not late:
            late.append(None)
            late.extend(world.entries.add(world.share(text)) for text in ("b", "c"))

    before = world.version
    world.storage.hook = another_comes
    assert world.entries.commit(world.share("a"), LONG_S) == committed({0: (0, 1)})
    assert not late[1].done()
    assert len(world.begun) == 1
    world.run()
    assert [one.result(0) for one in late[1:]] == [committed({0: (1, 2)}), committed({0: (2, 3)})]
    assert world.version == before + 2


def test_each_share_gets_its_own_refusal(world: World) -> None:
    good, bad = world.share("a"), world.share("b")
    object.__setattr__(bad.segments[0], "partition", 9)
    answers = [world.entries.add(bad), world.entries.add(good)]
    world.run()
    assert isinstance(answers[0].result(0).error, UnknownPartitionError)
    assert answers[1].result(0) == committed({0: (0, 1)})


def test_a_topic_that_is_gone_refuses_and_a_fault_leaves_in_doubt(world: World, monkeypatch: Any) -> None:
    def gone() -> Any:
        raise UnknownTopicError("gone")

    entries = JointEntries(gone, world.begun.append, 2.0)
    answer = entries.add(world.share("a"))
    world.run()
    assert isinstance(answer.result(0).error, UnknownTopicError)

    def broken(*_: Any) -> Any:
        raise RuntimeError("a fault")

    answer = world.entries.add(world.share("a"))
    with monkeypatch.context() as patched:
        patched.setattr(JointAppend, "commit_all", broken)
        world.run()
    assert answer.result(0).outcome is CommitOutcome.UNKNOWN
    assert isinstance(answer.result(0).error, OutcomeUnknownError)
    # It goes on afterwards.
    again = world.entries.add(world.share("b"))
    world.run()
    assert again.result(0) == committed({0: (0, 1)})


def test_many_threads_lose_no_share() -> None:
    world = World()
    found: list[int] = []
    lock = threading.Lock()
    threads: list[threading.Thread] = []

    def start(call: Any) -> None:
        thread = threading.Thread(target=call)
        with lock:
            threads.append(thread)
        thread.start()

    entries = JointEntries(lambda: world.lake.topic("t"), start, 60.0)
    shares = [[world.share(f"{n}.{i}") for i in range(10)] for n in range(4)]

    def bring(own: list[StagedShare]) -> None:
        for share in own:
            answer = entries.commit(share, LONG_S)
            ranges = (answer.result(30) if isinstance(answer, Future) else answer).required()
            with lock:
                found.append(ranges[0][0])

    bringers = [threading.Thread(target=bring, args=(own,)) for own in shares]
    for thread in bringers:
        thread.start()
    for thread in [*bringers, *threads]:
        thread.join(30)
    assert sorted(found) == list(range(40))
    assert len(read(world.lake, "t")) == 40
