"""What the group side of a consumer waits for, on a disk that the kernel watches and in a store that nobody does."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidelog.clients.consumer.group_wakeup import Bell
from tidelog.log.base.clock import SystemClock
from tidelog.log.delta import layout
from tidelog.log.follow.tailing import WATCHED_PAUSE_S
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
def bell(storage: Storage) -> Iterator[Bell]:
    made = Bell(storage, SystemClock())
    yield made
    made.close()


def timed(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def quiet(bell: Bell) -> None:
    """The looks that a log has due at first are over."""
    assert any(not bell.wait(0.01) for _ in range(1_000))


@pytest.mark.parametrize("follows", [False, True])
def test_a_ring_ends_the_wait_or_the_next_one(bell: Bell, follows: bool) -> None:
    if follows:
        bell.follow("a")
        quiet(bell)
    bell.ring()
    assert timed(lambda: bell.wait(30)) < 5
    threading.Timer(0.1, bell.ring).start()
    assert timed(lambda: bell.wait(30)) < 5
    assert not bell.wait(0.01)


def test_an_entry_of_the_log_ends_the_wait(bell: Bell, storage: Storage) -> None:
    bell.follow("a")
    assert bell.hears
    quiet(bell)
    threading.Timer(0.1, entry, (storage, "a", 1)).start()
    began = time.monotonic()
    assert bell.wait(30)
    assert time.monotonic() - began < WATCHED_PAUSE_S - 1


def test_other_logs_are_not_heard_of(bell: Bell, storage: Storage) -> None:
    bell.follow("a")
    bell.follow("b")
    quiet(bell)
    entry(storage, "a", 1)
    assert not bell.wait(0.2)
    bell.follow(None)
    assert not bell.hears
    entry(storage, "b", 1)
    assert not bell.wait(0.2)


def test_a_log_that_nobody_tells_of_is_not_looked_for() -> None:
    storage = MemoryStorage("m")
    entry(storage, "a", 0)
    bell = Bell(storage, SystemClock())
    bell.follow("a")
    assert not bell.hears
    bell.wait(1.0)  # beginning to follow has rung it
    assert not bell.wait(0.3)
    bell.close()


def test_a_log_that_goes_away_is_heard_of_no_more(bell: Bell, tmp_path: Path) -> None:
    bell.follow("a")
    quiet(bell)
    shutil.rmtree(tmp_path / "a")
    assert bell.wait(30)
    assert not bell.hears
    quiet(bell)
    assert not bell.wait(0.3)


def test_a_ring_after_the_end_is_no_error(bell: Bell) -> None:
    bell.follow("a")
    bell.close()
    bell.ring()
