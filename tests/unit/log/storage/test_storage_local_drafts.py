"""New files of a local disk: unnamed ones where the file system has them, and its fsync keeps them; else temporary."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from inotify_simple import INotify, flags
from support.os_faults import fail_os, files_below
from support.unnamed_files import with_unnamed_files

from tidelog.log.storage import LocalStorage, local_drafts

REFUSALS = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.EXDEV)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return with_unnamed_files(tmp_path) / "lake"


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
