"""What the group side of a consumer waits for, on a disk that the kernel watches and in a store without a watcher."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import PATIENCE_S

from tidelog.clients.consumer.group_wakeup import GroupWakeup
from tidelog.log.base.clock import SystemClock
from tidelog.log.delta import layout
from tidelog.log.storage import LocalStorage, MemoryStorage
from tidelog.log.storage.port import Storage


def entry(storage: Storage, log: str, version: int) -> None:
    assert storage.put_if_absent(f"{log}/{layout.entry_path(version)}", b"{}")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    made = LocalStorage(tmp_path)
    entry(made, "a", 0)
    entry(made, "b", 0)
    return made


@pytest.fixture
def wakeup(storage: Storage) -> Iterator[GroupWakeup]:
    made = GroupWakeup(storage, SystemClock())
    yield made
    made.close()


def quiet(wakeup: GroupWakeup) -> None:
    """The looks that a log has due at first are over."""
    assert any(not wakeup.wait(0.01) for _ in range(1_000))


@pytest.mark.parametrize("follows", [False, True])
def test_a_wake_ends_the_wait_or_the_next_one(
    wakeup: GroupWakeup, follows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelog.log.follow.tailing.WATCHED_PAUSE_S", 10 * PATIENCE_S)  # no look ends it
    if follows:
        wakeup.follow("a")
        quiet(wakeup)
    wakeup.wake()
    assert not wakeup.wait(None)
    threading.Timer(0.1, wakeup.wake).start()
    assert not wakeup.wait(None)
    assert not wakeup.wait(0.01)


def test_an_entry_of_the_log_ends_the_wait(
    wakeup: GroupWakeup, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidelog.log.follow.tailing.WATCHED_PAUSE_S", 10 * PATIENCE_S)  # no look finds it
    wakeup.follow("a")
    assert wakeup.is_notified
    quiet(wakeup)
    threading.Timer(0.1, entry, (storage, "a", 1)).start()
    assert wakeup.wait(PATIENCE_S)


def test_no_other_log_wakes_it(wakeup: GroupWakeup, storage: Storage) -> None:
    wakeup.follow("a")
    wakeup.follow("b")
    quiet(wakeup)
    entry(storage, "a", 1)
    assert not wakeup.wait(0.2)
    wakeup.follow(None)
    assert not wakeup.is_notified
    entry(storage, "b", 1)
    assert not wakeup.wait(0.2)


def test_a_log_that_nobody_tells_of_is_not_looked_for() -> None:
    storage = MemoryStorage("m")
    entry(storage, "a", 0)
    wakeup = GroupWakeup(storage, SystemClock())
    wakeup.follow("a")
    assert not wakeup.is_notified
    wakeup.wait(1.0)  # beginning to follow has rung it
    assert not wakeup.wait(0.3)
    wakeup.close()


def test_a_log_that_goes_away_wakes_it_no_more(wakeup: GroupWakeup, tmp_path: Path) -> None:
    wakeup.follow("a")
    quiet(wakeup)
    shutil.rmtree(tmp_path / "a")
    assert wakeup.wait(30)
    assert not wakeup.is_notified
    quiet(wakeup)
    assert not wakeup.wait(0.3)


def test_a_wake_after_the_end_is_no_error(wakeup: GroupWakeup) -> None:
    wakeup.follow("a")
    wakeup.close()
    wakeup.wake()
