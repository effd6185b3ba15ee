"""A caller that asks for a snapshot while another thread takes one need not wait for all of the lake."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.held_looks import Gate
from support.passing_clock import PassingClock

from tidelog.log.base.errors import StorageError
from tidelog.log.lake import Lake
from tidelog.operations.snapshots import SnapshotReader

NAMES = ("a", "b", "c")


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as found:
        for name in NAMES:
            found.create_topic(name, 1)
        yield found


def test_the_first_snapshot_is_shown_as_far_as_it_came(lake, monkeypatch):
    gate = Gate(lake, monkeypatch, "b")
    with SnapshotReader(lake, 60) as reader, ThreadPoolExecutor(1) as threads:
        first = threads.submit(reader.read)
        gate.reached.wait()
        so_far = reader.latest(0)
        gate.open.set()
        assert (tuple(so_far.topics), so_far.unread) == (("a",), ("b", "c"))
        assert (tuple(first.result().topics), first.result().unread) == (NAMES, ())
        assert reader.latest(0) is first.result()


def test_a_later_snapshot_is_not_waited_for_unless_the_last_one_is_invalid(lake, monkeypatch):
    lake.clock = PassingClock(lake.clock)
    with SnapshotReader(lake, 60) as reader, ThreadPoolExecutor(2) as threads:
        before = reader.read()
        lake.clock.passed_s += 60
        gate = Gate(lake, monkeypatch, "b")
        second = threads.submit(reader.read)
        gate.reached.wait()
        assert reader.latest(0) is before
        lake.create_topic("d", 1)
        reader.invalidate()
        third = threads.submit(reader.latest, 0)
        gate.open.set()
        assert tuple(second.result().topics) == NAMES
        assert tuple(third.result().topics) == (*NAMES, "d")
        assert reader.latest(0) is third.result()


def test_a_caller_that_waits_for_a_first_snapshot_that_fails_takes_one(lake, monkeypatch):
    reached, go_on, listed = threading.Event(), threading.Event(), lake.storage.list_folders

    def fails(folder):
        monkeypatch.setattr(lake.storage, "list_folders", listed)
        reached.set()
        go_on.wait()
        raise StorageError("the store is away")

    monkeypatch.setattr(lake.storage, "list_folders", fails)
    with SnapshotReader(lake, 60) as reader, ThreadPoolExecutor(2) as threads:
        first = threads.submit(reader.read)
        reached.wait()
        second = threads.submit(reader.latest, 0)
        go_on.set()
        with pytest.raises(StorageError):
            first.result()
        assert tuple(second.result().topics) == NAMES
