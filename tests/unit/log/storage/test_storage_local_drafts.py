"""New files of a local disk: unnamed ones where the file system has them, and its fsync keeps them; else temporary."""

import errno
import gc
import os
import queue
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from inotify_simple import INotify, flags
from support.os_faults import fail_os, files_below, in_python
from support.unnamed_files import with_unnamed_files

from tidelog.log.base.errors import StorageFullError
from tidelog.log.storage import LocalStorage, local_drafts

REFUSALS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EXDEV)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return with_unnamed_files(tmp_path) / "lake"


@pytest.fixture(autouse=True)
def _by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code opens nothing ahead; test_native_files.py has what else it does."""
    in_python(monkeypatch)


def unfinished_while_put(storage: LocalStorage, path: str) -> int:
    """How many temporary files there are in the folder of an object that is about to have its name."""
    seen: list[int] = []
    folder = path.rpartition("/")[0]
    assert storage.put_if_absent(path, b"1", lambda: seen.append(len(storage.unfinished(folder))))
    return seen[0]


def test_an_entry_is_one_event_for_a_watcher(root: Path) -> None:
    """A temporary file would wake each reader twice, first in the middle of the writer's sync."""
    storage = LocalStorage(root)
    storage.put_if_absent("log/0", b"0")
    with INotify(nonblocking=True) as watch:
        watch.add_watch(str(root / "log"), flags.CREATE | flags.MOVED_TO | flags.MOVED_FROM | flags.DELETE)
        for name in "12":
            assert storage.put_if_absent(f"log/{name}", b"x")
        assert not storage.put_if_absent("log/1", b"y")
        assert [(event.mask, event.name) for event in watch.read(0)] == [(flags.CREATE, "1"), (flags.CREATE, "2")]


def test_nothing_is_left_of_a_writer_that_dies_before_its_object_has_its_name(root: Path) -> None:
    assert unfinished_while_put(LocalStorage(root), "log/0") == 0
    assert unfinished_while_put(LocalStorage(root, unnamed=False), "log/1") == 1


def test_modes_are_as_of_any_new_file(root: Path) -> None:
    before = os.umask(0o027)
    try:
        for unnamed in (True, False):
            LocalStorage(root, unnamed=unnamed).put_if_absent(str(unnamed), b"1")
            assert (root / str(unnamed)).stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(before)


# --- opened ahead -------------------------------------------------------------------------------------------


@pytest.fixture
def opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders below the root in which unnamed files were opened."""
    found: list[str] = []
    real = os.open

    def recording(path: str, flag: int, *args: int, **named: int) -> int:
        if opens_an_unnamed_file(path, flag):
            found.append(os.path.relpath(path, root))
        return real(path, flag, *args, **named)

    monkeypatch.setattr(os, "open", recording)
    return found


def spare(root: Path) -> list[str]:
    """The folders below the root in which this process has files without a name."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the folder of this very list
            name = os.readlink(f"/proc/self/fd/{fd}")
            found += [os.path.relpath(os.path.dirname(name), root)] if name.startswith(f"{root}/") else []
    return sorted(found)


def with_spares(root: Path, *folders: str) -> LocalStorage:
    storage = LocalStorage(root)
    for name in ("0", "1"):
        for folder in folders:
            storage.put_if_absent(f"{folder}/{name}", b"1")
    assert spare(root) == sorted(folders)
    return storage


def test_a_file_is_open_before_it_is_asked_for(root: Path, opened: list[str]) -> None:
    """From a folder's second file on; the next ones are opened when an entry has its name, and readers have it."""
    storage = LocalStorage(root)
    for number, expected in enumerate([["log", "p"], ["log", "log", "p", "p"]]):
        opened.clear()
        storage.put(f"p/{number}", b"%d" % number)
        storage.put_if_absent(f"log/{number}", b"entry %d" % number)
        assert sorted(opened) == expected
    opened.clear()
    storage.put("p/2", b"2")
    storage.put_if_absent("log/2", b"entry 2", lambda: opened.append("before the entry's name"))
    assert (opened[0], sorted(opened[1:])) == ("before the entry's name", ["log", "p"])
    assert [storage.get(f"p/{number}") for number in range(3)] == [b"0", b"1", b"2"]
    assert [storage.get(f"log/{number}") for number in range(3)] == [b"entry 0", b"entry 1", b"entry 2"]


def test_helpers_open_files_ahead_where_others_wait_for_what_is_stored(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, real = with_spares(root, "f"), os.open
    may_open, opened_by = threading.Event(), queue.SimpleQueue[threading.Thread]()

    def waiting(path: str, flag: int, *args: int, **named: int) -> int:
        if not opens_an_unnamed_file(path, flag):
            return real(path, flag, *args, **named)
        may_open.wait(30)
        fd = real(path, flag, *args, **named)
        opened_by.put(threading.current_thread())
        return fd

    storage.prepare_beside()
    monkeypatch.setattr(os, "open", waiting)
    assert storage.put_if_absent("f/2", b"2")
    assert opened_by.empty()
    may_open.set()
    assert opened_by.get(timeout=30) is not threading.current_thread()


def test_an_object_is_replaced_by_one_whose_file_was_open(root: Path) -> None:
    storage = with_spares(root, "f")
    storage.put("f/0", b"new")
    storage.put("f/0", b"newer")
    assert storage.get("f/0") == b"newer"
    assert files_below(root) == ["f/0", "f/1"]


@pytest.mark.parametrize("data", [b"", b"1"])
@pytest.mark.parametrize("put", [LocalStorage.put, LocalStorage.put_if_absent])
def test_an_object_has_the_time_of_its_put(root: Path, put: Callable[..., object], data: bytes) -> None:
    """Writers learn the store's time by an empty one."""
    storage = with_spares(root, "f")
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{fd}").startswith(f"{root}/f/"):
                os.utime(int(fd), (7, 7))
    put(storage, "f/2", data)
    assert storage.head("f/2").modified_ms > 7_000
    assert spare(root) == ([] if put is LocalStorage.put else ["f"])


def test_few_files_are_open_and_none_when_the_store_is_gone(root: Path) -> None:
    storage = with_spares(root, *(f"f{number}" for number in range(10, 26)))
    for name in "01":  # each folder is forgotten before its second file
        for number in range(30, 60):
            storage.put_if_absent(f"f{number}/{name}", b"1")
    assert spare(root) == []
    storage.put_if_absent("f59/2", b"1")
    assert spare(root) == ["f59"]
    del storage
    gc.collect()
    assert spare(root) == []


def test_a_forked_process_writes_no_file_of_its_parent(root: Path) -> None:
    storage = with_spares(root, "f")
    child = os.fork()
    if not child:
        try:
            storage.put_if_absent("f/child", b"the child's")
            storage.put_if_absent("f/child 2", b"the child's second")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    storage.put_if_absent("f/parent", b"the parent's")
    names = ("child", "child 2", "parent")
    assert [storage.get(f"f/{name}") for name in names] == [b"the child's", b"the child's second", b"the parent's"]


def test_a_folder_that_is_gone_is_made_again(root: Path) -> None:
    storage = with_spares(root, "f")
    shutil.rmtree(root / "f")
    assert storage.put_if_absent("f/2", b"2")
    assert storage.get("f/2") == b"2"


def test_what_is_opened_ahead_fails_no_call(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(root)
    storage.put_if_absent("f/0", b"0")
    there = root / "f/1"
    fail_os(monkeypatch, "open", errno.ENOSPC, lambda *args: opens_an_unnamed_file(*args) and there.exists())
    assert storage.put_if_absent("f/1", b"1")
    with pytest.raises(StorageFullError):
        storage.put_if_absent("f/2", b"2")


# --- where there are none -----------------------------------------------------------------------------------


def opens_an_unnamed_file(path: str, flag: int, *_: object) -> bool:
    return bool(flag & os.O_TMPFILE == os.O_TMPFILE)


def names_an_unnamed_file(source: str, *_: object) -> bool:
    return source.startswith("/proc/")


@pytest.mark.parametrize("number", REFUSALS)
@pytest.mark.parametrize(("operation", "when"), [("open", opens_an_unnamed_file), ("link", names_an_unnamed_file)])
def test_a_file_system_that_knows_none_is_asked_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, operation: str, when: Callable[..., bool], number: int
) -> None:
    asked: list[object] = []
    storage = LocalStorage(root)
    fail_os(monkeypatch, operation, number, lambda *args: when(*args) and (asked.append(args) or True))
    called: list[int] = []
    for name in "abc":
        assert storage.put_if_absent(f"f/{name}", name.encode(), lambda: called.append(1))
        assert storage.get(f"f/{name}") == name.encode()
    assert (len(asked), len(called)) == (1, 3)
    assert not storage.put_if_absent("f/a", b"other")
    assert files_below(root) == ["f/a", "f/b", "f/c"]


def test_without_proc_they_can_not_be_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_drafts, "_of_descriptor", lambda fd: f"/no/proc/self/fd/{fd}")
    storage = LocalStorage(root)
    assert storage.put_if_absent("f/a", b"1")
    assert unfinished_while_put(storage, "f/b") == 1
    assert files_below(root) == ["f/a", "f/b"]


@pytest.mark.parametrize("kind", ["btrfs", "overlay", "fuse", ""])
def test_where_their_sync_may_do_nothing_they_are_not_used(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """btrfs syncs no file without a name: its entry would be there after a power loss, and empty."""
    monkeypatch.setattr(local_drafts, "type_of", lambda folder: kind)
    assert unfinished_while_put(LocalStorage(root), "log/0") == 1


def test_other_errors_are_the_callers(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(root)
    storage.put("log/0", b"")
    fail_os(monkeypatch, "open", errno.ENOSPC, opens_an_unnamed_file)
    with pytest.raises(Exception, match="Free space there"):
        storage.put_if_absent("log/1", b"1")
    assert files_below(root) == ["log/0"]
