"""Waiting for many logs: the schedule of looks as a table of times, and real waits on a disk and in memory."""

import itertools
import os
import threading
import time
from pathlib import Path

import pytest
from support.waiting import PATIENCE_S, eventually

from tidelog.log.base.clock import SystemClock
from tidelog.log.delta import layout
from tidelog.log.follow.tailing import LAST_PAUSE_S, MOST_LOOKS, WATCHED_PAUSE_S, LookSchedule, Tailing
from tidelog.log.storage import LocalStorage, MemoryStorage, Storage, file_systems
from tidelog.log.storage.file_systems import file_system_of
from tidelog.log.storage.watching import FolderWatcher


def entry(storage: Storage, log: str, version: int) -> None:
    assert storage.put_if_absent(f"{log}/{layout.entry_path(version)}", b"{}")


def tailing(storage: Storage, *logs: str) -> Tailing:
    """Waiting for logs, the first looks done."""
    made = Tailing(storage, SystemClock())
    for log in logs:
        made.add(log)
    seen: set[str] = set()
    while seen != set(logs):
        some = made.wait(PATIENCE_S)
        assert some, seen
        seen |= some
    return made


class TestLookSchedule:
    def test_looks_become_rarer_while_nothing_comes(self) -> None:
        schedule = LookSchedule()
        schedule.add("a", 0.0)
        now, times = 0.0, []
        for _ in range(12):
            assert schedule.due(now) == {"a"}
            times.append(now)
            schedule.looked("a", grew=False, took_s=0.0, now_s=now)
            now = schedule.next_s()
        pauses = [round((b - a) * 1000) for a, b in itertools.pairwise(times)]
        assert pauses == [2, 4, 8, 16, 32, 64, 128, 250, 250, 250, 250]

    def test_a_find_makes_the_next_look_due_soon(self) -> None:
        schedule = LookSchedule()
        schedule.add("a", 0.0)
        for _ in range(10):
            schedule.looked("a", grew=False, took_s=0.0, now_s=0.0)
        schedule.looked("a", grew=True, took_s=0.0, now_s=5.0)
        assert schedule.next_s() == pytest.approx(5.001)

    def test_dear_looks_take_a_tenth_of_the_time(self) -> None:
        schedule = LookSchedule()
        schedule.add("a", 0.0)
        schedule.looked("a", grew=False, took_s=0.02, now_s=1.0)
        assert schedule.next_s() == pytest.approx(1.0 + 0.18)

    def test_many_silent_logs_are_looked_at_less_often(self) -> None:
        schedule = LookSchedule()
        for number in range(1000):
            schedule.add(str(number), 0.0)
        looks, now = 0, 0.0
        while now < 20.0:
            for log in schedule.due(now):
                looks += now > 10
                schedule.looked(log, grew=False, took_s=0.0, now_s=now)
            now = schedule.next_s()
        assert looks <= 10 * MOST_LOOKS * 1.1

    def test_a_watched_log_is_looked_at_seldom(self) -> None:
        schedule = LookSchedule()
        schedule.add("a", 0.0)
        schedule.watched("a", True)
        assert schedule.due(0.0) == {"a"}
        schedule.looked("a", grew=True, took_s=0.0, now_s=0.0)
        assert schedule.next_s() == WATCHED_PAUSE_S

    def test_a_log_is_kept_for_its_last_user(self) -> None:
        schedule = LookSchedule()
        assert [schedule.add("a", 0.0), schedule.add("a", 0.0)] == [True, False]
        assert [schedule.remove("a"), schedule.due(0.0), schedule.remove("a")] == [False, {"a"}, True]
        assert schedule.due(9.0) == set()


class TestWatched:
    def test_an_entry_ends_the_wait_and_names_its_log(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tidelog.log.follow.tailing.WATCHED_PAUSE_S", 10 * PATIENCE_S)  # no look finds it
        storage = LocalStorage(tmp_path)
        for log in ("a", "b", "c"):
            entry(storage, log, 0)
        waiting = tailing(storage, "a", "b", "c")
        assert waiting.hears("a")
        writer = threading.Timer(0.05, entry, (storage, "b", 1))
        writer.start()
        assert waiting.wait(PATIENCE_S) == {"b"}
        waiting.close()

    def test_entries_between_waits_are_not_missed(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        for version in range(1, 200):
            entry(storage, "a", version)
        assert waiting.wait(PATIENCE_S) == {"a"}
        assert waiting.wait(0.01) == set()
        waiting.close()

    def test_files_that_are_no_entries_end_no_wait(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        storage.put(f"a/{layout.LAST_CHECKPOINT}", b"{}")
        storage.put(f"a/{layout.checkpoint_path(0)}", b"x")
        assert waiting.wait(0.05) == set()
        waiting.close()

    def test_a_log_that_comes_into_being_is_noticed_and_watched_then(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        waiting = tailing(storage, "new")
        threading.Timer(0.05, entry, (storage, "new", 0)).start()
        eventually(lambda: waiting.wait(1) == {"new"} and (tmp_path / "new").exists(), "it is noticed")
        waiting.wait(LAST_PAUSE_S)
        assert waiting._schedule.unwatched == []
        waiting.close()

    @pytest.mark.parametrize("there", ["", "new", "new/_tidelog"])
    def test_a_log_that_is_not_there_yet_is_heard_of_when_it_comes(
        self, tmp_path: Path, there: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("tidelog.log.follow.tailing.WATCHED_PAUSE_S", 10 * PATIENCE_S)  # no look finds it
        (tmp_path / there).mkdir(parents=True, exist_ok=True)
        storage = LocalStorage(tmp_path)
        waiting = tailing(storage, "new", "never")
        waiting.looked("new", grew=False, took_s=0)
        assert waiting._schedule.unwatched == []
        for folder in ("other", "new", "new/_tidelog", "new/_delta_log"):
            (tmp_path / folder).mkdir(exist_ok=True)
            waiting.wait(0)
        assert waiting._schedule.unwatched == []
        assert waiting.hears("new")
        entry(storage, "new", 0)
        assert waiting.wait(PATIENCE_S) == {"new"}
        waiting.remove("new")
        waiting.remove("never")
        assert not waiting._unborn
        waiting.close()

    def test_a_removed_log_ends_no_wait(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        entry(storage, "b", 0)
        waiting = tailing(storage, "a", "b")
        waiting.remove("a")
        entry(storage, "a", 1)
        assert waiting.wait(0.05) == set()
        entry(storage, "b", 1)
        assert waiting.wait(PATIENCE_S) == {"b"}
        waiting.close()

    def test_a_deleted_folder_is_looked_at_from_then_on(self, tmp_path: Path) -> None:
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        os.rename(tmp_path / "a", tmp_path / "gone")
        os.rename(tmp_path / "gone/_delta_log", tmp_path / "gone/old")
        assert waiting.wait(PATIENCE_S) == {"a"}
        waiting.looked("a", grew=False, took_s=0)
        assert waiting.wait(PATIENCE_S) == {"a"}
        waiting.close()


class TestWithoutWatcher:
    def test_limits_of_the_kernel_lead_to_looks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(self: FolderWatcher, folder: str, *, anything: bool = False) -> None:
            raise OSError(28, "inotify watch limit reached")

        monkeypatch.setattr(FolderWatcher, "add", full)
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        assert waiting.wait(PATIENCE_S) == {"a"}
        waiting.close()

    def test_no_more_watchers_lead_to_looks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(self: FolderWatcher) -> None:
            raise OSError(24, "inotify instance limit reached")

        monkeypatch.setattr(FolderWatcher, "__init__", none)
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        assert not waiting.hears("a")
        assert waiting.wait(PATIENCE_S) == {"a"}
        waiting.close()

    def test_a_network_disk_is_not_watched(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(file_systems, "file_system_of", lambda path, mounts: "nfs4")
        storage = LocalStorage(tmp_path)
        entry(storage, "a", 0)
        waiting = tailing(storage, "a")
        assert not waiting.hears("a")
        waiting.close()

    def test_another_store_is_looked_at(self) -> None:
        waiting = tailing(MemoryStorage("m"), "a")
        assert waiting.wait(PATIENCE_S) == {"a"}
        waiting.close()


class TestWake:
    def test_any_thread_ends_the_wait(self, tmp_path: Path) -> None:
        waiting = tailing(LocalStorage(tmp_path))
        threading.Timer(0.02, waiting.wake).start()
        assert waiting.wait(None) == set()
        waiting.close()

    def test_a_call_between_waits_ends_the_next_and_only_that(self, tmp_path: Path) -> None:
        waiting = tailing(LocalStorage(tmp_path))
        for _ in range(100_000):
            waiting.wake()
        for _ in range(100_000):
            if not waiting._poll.poll(0):
                break
            waiting.wait(None)
        began = time.monotonic()
        waiting.wait(0.05)
        assert time.monotonic() - began >= 0.045
        waiting.close()

    def test_a_closed_one_may_be_woken(self, tmp_path: Path) -> None:
        waiting = tailing(LocalStorage(tmp_path))
        waiting.close()
        waiting.wake()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/lake", "ext4"),
        ("/data/net/lake", "nfs4"),
        ("/data/network", "ext4"),
        ("/with space/x", "xfs"),
        ("/twice", "tmpfs"),
        ("/other", "overlay"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    mounts = [
        "22 1 0:20 / / rw,relatime - overlay overlay rw",
        "23 22 8:1 / /data rw shared:1 - ext4 /dev/sda1 rw",
        "24 23 0:50 / /data/net rw - nfs4 server:/x rw",
        r"25 22 8:2 / /with\040space rw - xfs /dev/sdb rw",
        "26 22 8:3 / /twice rw - ext4 /dev/sdc rw",
        "27 22 0:60 / /twice rw - tmpfs tmpfs rw",
    ]
    assert file_system_of(path, iter(mounts)) == kind


def test_a_wake_after_the_end_writes_into_nobodys_file(tmp_path: Path) -> None:
    """The number of a closed file is soon another's."""
    ended = tailing(MemoryStorage("ended"))
    number = ended._waker
    with (tmp_path / "file").open("wb") as file:
        ended.close()
        os.dup2(file.fileno(), number)
        ended.wake()
        os.close(number)
    assert (tmp_path / "file").read_bytes() == b""
