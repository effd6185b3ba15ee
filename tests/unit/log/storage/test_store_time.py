"""What a process knows of the store's clock, and how long ago something was by all the clocks it has."""

import pytest
from support.faults import FaultyStorage
from support.logs import Calls, FakeClock

from tidelog.log.storage import LocalStorage, MemoryStorage, file_systems
from tidelog.log.storage.store_time import LEARN_EVERY_S, NEVER, StoreTime


class TwoClocks(FakeClock):
    """Clocks that a test moves apart: `pause` stops both, `set_by` moves the wall clock alone."""

    def set_by(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


def learnt(clock: FakeClock, stored_ms: int, answer_s: float = 0.0) -> StoreTime:
    time = StoreTime(clock)
    began = time.moment()
    clock.pass_s(answer_s)
    time.learn(began, time.moment(), stored_ms)
    return time


def test_nothing_is_known_at_first() -> None:
    time = StoreTime(FakeClock())
    assert time.moment().store_ms is None
    assert time.passed_s(NEVER) == float("inf")


def test_the_stores_time_goes_on_by_the_elapsed_clock() -> None:
    clock = TwoClocks()
    time = learnt(clock, 50_000)
    clock.pass_s(3)
    clock.set_by(-3_600)
    assert time.moment().store_ms == 53_000


@pytest.mark.parametrize(
    ("elapsed_s", "set_by_s", "passed_s"),
    [(3, 0, 3), (3, 100, 103), (3, -100, 3), (0, 0, 0)],
    ids=["as one", "the wall clock is set ahead", "it is set back", "no time"],
)
def test_the_clock_that_says_most_counts(elapsed_s: float, set_by_s: float, passed_s: float) -> None:
    clock = TwoClocks()
    time = StoreTime(clock)
    since = time.moment()
    clock.pass_s(elapsed_s)
    clock.set_by(set_by_s)
    assert time.passed_s(since) == passed_s


def test_what_the_store_says_counts_too_and_what_came_before_it_is_long_ago() -> None:
    clock = FakeClock()
    time = StoreTime(clock)
    before = time.moment()
    time.learn(before, time.moment(), 50_000)
    assert time.passed_s(before) == float("inf")
    since = time.moment()
    time.learn(since, time.moment(), 122_000)  # the machine was paused in between
    assert time.passed_s(since) == 72


def test_the_store_is_asked_where_others_write_and_every_ten_minutes() -> None:
    clock = FakeClock()
    calls = Calls()
    storage = FaultyStorage(MemoryStorage("times", clock), calls, shared=True)
    time = StoreTime(clock)
    for pause_s, asked in ((0, ["put", "head"]), (LEARN_EVERY_S, []), (1, ["put", "head"])):
        clock.pass_s(pause_s)
        time.keep(storage, "t")
        assert calls.take() == asked
    storage.shared = False
    clock.pass_s(LEARN_EVERY_S * 2)
    time.keep(storage, "t")
    assert calls.take() == []


@pytest.mark.parametrize(
    ("kind", "shared"), [("ext4", False), ("overlay", False), ("nfs4", True), ("cifs", True), ("9p", True), ("", True)]
)
def test_a_folder_that_others_may_mount_is_shared(
    tmp_path, monkeypatch: pytest.MonkeyPatch, kind: str, shared: bool
) -> None:
    monkeypatch.setattr(file_systems, "file_system_of", lambda path, mounts: kind)
    assert LocalStorage(tmp_path).is_shared == shared


def test_where_the_kind_of_a_file_system_is_not_told_a_folder_may_be_shared(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(file_systems.sys, "platform", "darwin")
    assert LocalStorage(tmp_path).is_shared
