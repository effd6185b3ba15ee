"""A caller that asks a watch while another thread looks need not wait for all of the lake."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.held_looks import Gate
from support.passing_clock import PassingClock

from tidelog.log.base.errors import StorageError
from tidelog.log.lake import Lake
from tidelog.operations.snapshots import LakeWatch

NAMES = ("a", "b", "c")


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as found:
        for name in NAMES:
            found.create_topic(name, 1)
        yield found


def test_the_first_look_is_shown_as_far_as_it_came(lake, monkeypatch):
    gate = Gate(lake, monkeypatch, "b")
    with LakeWatch(lake, 60) as watch, ThreadPoolExecutor(1) as threads:
        first = threads.submit(watch.look)
        gate.reached.wait()
        so_far = watch.look_soon(0)
        gate.open.set()
        assert (tuple(so_far.topics), so_far.unread) == (("a",), ("b", "c"))
        assert (tuple(first.result().topics), first.result().unread) == (NAMES, ())
        assert watch.look_soon(0) is first.result()


def test_a_later_look_is_not_waited_for_unless_the_last_one_is_forgotten(lake, monkeypatch):
    lake.clock = PassingClock(lake.clock)
    with LakeWatch(lake, 60) as watch, ThreadPoolExecutor(2) as threads:
        before = watch.look()
        lake.clock.passed_s += 60
        gate = Gate(lake, monkeypatch, "b")
        second = threads.submit(watch.look)
        gate.reached.wait()
        assert watch.look_soon(0) is before
        lake.create_topic("d", 1)
        watch.forget()
        third = threads.submit(watch.look_soon, 0)
        gate.open.set()
        assert tuple(second.result().topics) == NAMES
        assert tuple(third.result().topics) == (*NAMES, "d")
        assert watch.look_soon(0) is third.result()


def test_who_waits_for_a_first_look_that_fails_looks_again(lake, monkeypatch):
    reached, go_on, listed = threading.Event(), threading.Event(), lake.storage.list_folders

    def fails(folder):
        monkeypatch.setattr(lake.storage, "list_folders", listed)
        reached.set()
        go_on.wait()
        raise StorageError("the store is away")

    monkeypatch.setattr(lake.storage, "list_folders", fails)
    with LakeWatch(lake, 60) as watch, ThreadPoolExecutor(2) as threads:
        first = threads.submit(watch.look)
        reached.wait()
        second = threads.submit(watch.look_soon, 0)
        go_on.set()
        with pytest.raises(StorageError):
            first.result()
        assert tuple(second.result().topics) == NAMES
