"""Processes on cores of their own: which, and that they stay there."""

import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pytest

from tidelog.cli.broker import pinning
from tidelog.cli.broker.pinning import cores_for, has_quota, pin

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="cores are Linux's")


@pytest.fixture
def files(tmp_path):
    """A process without a quota."""
    (tmp_path / "cgroup").write_text("0::/\n")
    (tmp_path / "groups").mkdir()
    return tmp_path / "cgroup", tmp_path / "groups"


def test_each_process_gets_a_core_of_its_own(files, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3, 5, 7})
    for _ in range(20):
        cores = cores_for(3, *files)
        assert len(set(cores)) == 3
        assert set(cores) <= {2, 3, 5, 7}
    assert len({cores_for(1, *files)[0] for _ in range(200)}) == 4


def test_fewer_cores_than_processes_are_shared(files, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert cores_for(3, *files) == [None] * 3


@pytest.mark.parametrize(
    ("listed", "file", "says", "bounded"),
    [
        ("0::/a/b", "a/b/cpu.max", "200000 100000", True),
        ("0::/a/b", "a/cpu.max", "200000 100000", True),
        ("0::/a/b", "a/b/cpu.max", "max 100000", False),
        ("0::/", "cpu.max", "50000 100000", True),
        ("3:cpu,cpuacct:/a\n2:memory:/a", "cpu/a/cpu.cfs_quota_us", "50000", True),
        ("3:cpu,cpuacct:/a", "cpu/a/cpu.cfs_quota_us", "-1", False),
        ("2:memory:/a", "cpu/a/cpu.cfs_quota_us", "50000", False),
    ],
)
def test_a_quota_is_seen(files, monkeypatch, listed, file, says, bounded):
    cgroup, groups = files
    cgroup.write_text(listed)
    (groups / file).parent.mkdir(parents=True, exist_ok=True)
    (groups / file).write_text(says)
    assert has_quota(cgroup, groups) is bounded
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert (cores_for(2, cgroup, groups) == [None, None]) is bounded


def test_without_cgroups_there_is_no_quota(tmp_path):
    assert not has_quota(tmp_path / "cgroup", tmp_path)


def test_another_system_pins_nothing(monkeypatch):
    monkeypatch.setattr(pinning.sys, "platform", "darwin")
    assert cores_for(1) == [None]


def pinned(core):
    """In a forked process: where it, and a thread that it has begun then, may run."""
    pin(core)
    found = [os.sched_getaffinity(0)]
    thread = threading.Thread(target=lambda: found.append(os.sched_getaffinity(0)))
    thread.start()
    thread.join()
    return found, pa.cpu_count(), pa.io_thread_count()


def test_a_process_stays_on_its_core():
    cores = sorted(os.sched_getaffinity(0))
    with ProcessPoolExecutor(1, mp_context=get_context("forkserver")) as forked:
        for core in cores:
            assert forked.submit(pinned, core).result() == ([{core}, {core}], 1, 1)
    assert sorted(os.sched_getaffinity(0)) == cores
