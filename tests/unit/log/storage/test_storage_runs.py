"""Objects that are created one after another, and wait for the disk together: a crash leaves the first of them."""

import errno
import os
from pathlib import Path

import pytest
from support.os_faults import fail_os, files_below, is_folder
from support.storage_adapters import ADAPTERS, names
from support.unnamed_files import with_unnamed_files

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.storage import LocalStorage, Storage, local_drafts
from tidelog.log.storage.port import CreatesRuns

KINDS = ("local", "local, temporary files", "memory", "faulty without faults")


def entries(first: int, count: int) -> list[tuple[str, bytes]]:
    return [(f"t/log/{number:04d}", f"{number}".encode()) for number in range(first, first + count)]


def create(storage: Storage, objects: list[tuple[str, bytes]]) -> int:
    assert isinstance(storage, CreatesRuns)
    return storage.create_run(objects)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 5, 200])
def test_objects_are_created_up_to_the_first_that_is_there(tmp_path: Path, kind: str, count: int) -> None:
    storage = ADAPTERS[kind](tmp_path)
    assert create(storage, entries(0, count)) == count
    storage.put_if_absent("t/log/0300", b"another's")
    assert create(storage, entries(count, 400)) == 300 - count
    assert names(storage, "t/log") == [path for path, _ in entries(0, 301)]
    assert [storage.get(path) for path, _ in entries(0, 300)] == [data for _, data in entries(0, 300)]
    assert storage.get("t/log/0300") == b"another's"
    assert create(storage, entries(0, 3)) == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return with_unnamed_files(tmp_path) / "lake"


def test_contents_last_before_the_first_name_and_names_before_the_answer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = LocalStorage(root)
    storage.put_if_absent("t/log/first", b"")
    done: list[str] = []
    sync, link = os.fsync, os.link

    def syncing(fd: int) -> None:
        sync(fd)
        done.append("folder" if is_folder(fd) else "file")

    def linking(source: str, target: str, **named: int) -> None:
        link(source, target, **named)  # type: ignore[arg-type]
        done.append(os.path.basename(target))

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "link", linking)
    assert create(storage, entries(0, 6)) == 6
    assert done == ["file"] * 6 + [path[-4:] for path, _ in entries(0, 6)] + ["folder"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_after_an_error_the_first_of_them_are_there(root: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    storage = LocalStorage(root)
    with monkeypatch.context() as patched:
        fail_os(patched, "link", number, lambda _, target, *__: target.endswith("0003"))
        with pytest.raises(Exception, match="0003"):
            create(storage, entries(0, 6))
    assert files_below(root) == [path for path, _ in entries(0, 3)]
    assert create(storage, entries(3, 6)) == 6


def test_a_folder_that_can_not_be_synced_leaves_open_what_is_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(root)
    storage.put_if_absent("t/log/first", b"")
    with monkeypatch.context() as patched:
        fail_os(patched, "fsync", errno.EIO, is_folder)
        with pytest.raises(StorageUnavailableError):
            create(storage, entries(0, 2))


def test_where_unnamed_files_can_not_be_named_each_is_put_by_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_drafts, "_of_descriptor", lambda fd: f"/no/proc/self/fd/{fd}")
    assert create(LocalStorage(root), entries(0, 5)) == 5
    assert files_below(root) == [path for path, _ in entries(0, 5)]
