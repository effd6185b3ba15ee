"""An entry that is staged while the one before it is committed: it lands after that, whatever became of that."""

from typing import Any

import pytest
from support.faults import of_this_thread
from support.group_commits import LONG_S, answers, committed, drive, engine, lake_with, records, sent
from support.logs import Calls, open_lake, quiet, read

from tidelog.log.base.errors import (
    DeliveryTimeoutError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    StorageUnavailableError,
)
from tidelog.log.group_commit import engine as group_commit
from tidelog.log.group_commit.engine import PendingEntry

LOG = "t/_delta_log/"


def at_the_put(storage: Any, act: Any) -> None:
    """Do `act` once, when the next entry's file is about to be created."""

    def hook(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "before") and path.startswith(LOG):
            storage.hook = quiet
            act()

    storage.hook = of_this_thread(hook)


def test_it_only_has_to_be_committed() -> None:
    calls = Calls()
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock)
    first, second = group.begin(sent(7, 0, "a")), group.begin(sent(7, 1, "b"))
    at_the_put(storage, second.stage_ahead)
    first.advance()
    storage.hook = of_this_thread(calls)
    second.advance()
    assert [method for method, path in calls.seen if "partition=" in path] == []
    assert (first.outcomes.ranges, second.outcomes.ranges) == ({0: (0, 1)}, {0: (1, 2)})
    assert read(lake, "t") == ["a", "b"]


def test_its_segments_are_durable_before_its_turn_where_they_have_to_be() -> None:
    for acks, synced in ((-1, True), (1, False)):
        calls = Calls()
        lake, storage, clock = lake_with(1)
        entry = engine(lake, clock).begin(records("a", acks=acks))
        storage.hook = of_this_thread(calls)
        entry.stage_ahead()
        assert any(method == "sync" for method, _ in calls.seen) is synced
        entry.advance()
        assert read(lake, "t") == ["a"]
        if synced:
            storage.inner.lose_power()
            assert read(open_lake(storage.inner, clock), "t") == ["a"]


def test_what_follows_a_batch_that_failed_is_refused() -> None:
    """Else the failed batch, sent again, would count as there already, and be lost."""
    lake, storage, clock = lake_with(1, max_message_bytes="5")
    group = engine(lake, clock)
    committed(group, sent(7, 0, "a"))
    first = group.begin(sent(7, 1, "x" * 6), records("b"))
    second = group.begin(sent(7, 2, "c"), records("d"))
    at_the_put(storage, second.stage_ahead)
    first.advance()
    second.advance()
    assert [type(one.outcomes.errors.get(0)) for one in (first, second)] == [
        RecordTooLargeError, OutOfOrderSequenceError
    ]  # fmt: skip
    assert read(lake, "t") == ["a", "b", "d"]
    live = {segment.path for segment in lake.topic("t").state().all_segments()}
    assert {info.path.partition("/")[2] for info in storage.list_after("t/partition=0")} == live


@pytest.mark.parametrize("lands", [True, False])
def test_a_batch_that_comes_again_while_it_is_on_its_way(*, lands: bool) -> None:
    lake, storage, clock = lake_with(1)
    group = engine(lake, clock)
    first = group.begin(sent(7, 0, "a", timeout_s=LONG_S if lands else 0.5))
    second = group.begin(sent(7, 0, "a"), records("b"))
    if lands:
        at_the_put(storage, second.stage_ahead)
        first.advance()
    else:
        second.stage_ahead()
        clock.pass_s(1)
        first.advance()
        assert isinstance(first.outcomes.errors[0], DeliveryTimeoutError)
    second.advance()
    assert second.outcomes.offsets(2).tolist() == ([-1, 1] if lands else [0, 1])
    assert read(lake, "t") == ["a", "b"]


def test_what_is_late_by_its_turn_is_not_in_it() -> None:
    lake, _, clock = lake_with(1)
    entry = engine(lake, clock).begin(records("late", timeout_s=1.0), records("b"))
    entry.stage_ahead()
    clock.pass_s(2)
    entry.advance()
    assert isinstance(entry.outcomes.errors[0], DeliveryTimeoutError)
    assert read(lake, "t") == ["b"]


def test_it_is_staged_again_when_the_configuration_changes() -> None:
    lake, _, clock = lake_with(1)
    entry = engine(lake, clock).begin(records("a"), records("b" * 10))
    entry.stage_ahead()
    lake.alter_topic("t", config={"max.message.bytes": "5"})
    entry.advance()
    assert isinstance(entry.outcomes.errors[1], RecordTooLargeError)
    assert read(lake, "t") == ["a"]


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("broken", range(24))
def test_any_step_may_fail(broken: int, phase: str) -> None:
    """Store call number `broken` of two overlapping entries fails, or its answer is lost: what is sent again until it
    is acknowledged is there once, in its order.
    """
    lake, storage, clock = lake_with(2)
    group = engine(lake, clock, most=1)
    left, staged = [broken], [False]
    batches = [(0, "a", "b"), (2, "c"), (3, "d")]

    def begin(at: int) -> PendingEntry:
        first, *texts = batches[at]
        now_s = clock.elapsed_s()
        plain = records(f"plain{at}", partition=1, timeout_s=3.0, now_s=now_s)
        return group.begin(sent(7, first, *texts, timeout_s=3.0, now_s=now_s), plain)

    entries = [begin(at) for at in range(3)]

    def hook(method: str, path: str, at: str) -> None:
        if not path.startswith("t/"):
            return
        if (method, at) == ("put_if_absent", "before") and not staged[0]:
            staged[0] = True
            entries[1].stage_ahead()
        if at == phase:
            left[0] -= 1
            if left[0] == -1:
                raise StorageUnavailableError("the store says no")

    storage.hook = of_this_thread(hook)
    for at, entry in enumerate(entries):
        drive(entry, clock)
        if at == 1:
            entries[2].stage_ahead()
    storage.hook = quiet
    sure = [f"plain{at}" for at, entry in enumerate(entries) if 1 not in entry.outcomes.errors]
    for at, entry in enumerate(entries):
        while 0 in entry.outcomes.errors:
            entry = begin(at)
            drive(entry, clock)
    assert read(lake, "t", 0) == ["a", "b", "c", "d"]
    plain = read(lake, "t", 1)
    assert [text for text in dict.fromkeys(plain) if text in sure] == sure
    state = lake.topic("t").state()
    assert [(s.base_offset, s.end) for s in state.segments[0]][-1][1] == state.end(0) == 4


def test_an_error_of_the_store_is_no_outcome_yet() -> None:
    def refuses(method: str, path: str, phase: str) -> None:
        if method in ("put", "sync") and "partition=" in path and phase == "before":
            raise StorageUnavailableError("the store says no")

    for method in ("put", "sync"):
        lake, storage, clock = lake_with(1)
        entry = engine(lake, clock).begin(records("a"))
        storage.hook = of_this_thread(
            lambda called, path, phase, method=method: refuses(called, path, phase) if called == method else None
        )
        entry.stage_ahead()
        assert not entry.is_done
        storage.hook = quiet
        entry.advance()
        assert answers(entry, records("a")) == [[0]]
        assert read(lake, "t") == ["a"]


def test_the_topic_is_known_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry before may have its outcome meanwhile, and asks for it."""
    lake, _, clock = lake_with(1)
    group = engine(lake, clock)
    topic = group.topic()
    seen: list[Any] = []
    monkeypatch.setattr(group_commit, "require_topic", lambda *_: seen.append(group.known))
    assert (group.topic(), seen) == (topic, [topic])
