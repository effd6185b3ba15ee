"""The local adapter's failures: what is left after them, and what an errno becomes."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.os_faults import fail_os, files_below, in_python, is_folder
from support.storage_adapters import WRITES, write

from tidelog.log.base.errors import StorageError, StorageFullError, StoragePermissionError, StorageUnavailableError
from tidelog.log.storage import LocalStorage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


# --- what is left -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_failed_sync_of_the_content_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    storage = LocalStorage(root)
    fail_os(monkeypatch, "fsync", number, lambda fd: not is_folder(fd))
    with pytest.raises(StorageError) as caught:
        storage.put_if_absent("log/0", b"0")
    assert not isinstance(caught.value, StorageUnavailableError)
    assert files_below(root) == []


def test_a_failed_sync_of_a_folder_above_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch):
    fail_os(monkeypatch, "fsync", errno.EIO, is_folder)
    with pytest.raises(StorageError) as caught:
        LocalStorage(root).put_if_absent("t/log/0", b"0")
    assert not isinstance(caught.value, StorageUnavailableError)
    assert files_below(root) == []


@pytest.mark.parametrize("how", WRITES)
def test_a_disk_that_fills_up_in_the_middle_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, how: str):
    storage = LocalStorage(root)
    storage.put("f/a", b"old")
    real, room = os.write, [1_000_000]
    in_python(monkeypatch)

    def write_until_full(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(fd, bytes(data[: room[0]]))
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write_until_full)
    with pytest.raises(StorageFullError):
        WRITES[how](storage, "f/b", b"x" * 3_000_000)
    assert files_below(root) == ["f/a"]


def test_an_error_at_the_end_of_create_is_mapped_and_keeps_the_old(root: Path, monkeypatch: pytest.MonkeyPatch):
    storage = LocalStorage(root)
    storage.put("f/a", b"old")
    fail_os(monkeypatch, "write", errno.EDQUOT)
    with pytest.raises(StorageFullError):
        write(storage, "f/a", b"small enough to stay in the buffer until the end")
    assert storage.get("f/a") == b"old"
    assert files_below(root) == ["f/a"]


def test_an_interrupt_while_writing_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        LocalStorage(root).put_if_absent("f/a", b"1")
    assert files_below(root) == []


# --- errno --------------------------------------------------------------------------------------------------

OPEN_ERRORS = [
    (errno.EACCES, StoragePermissionError),
    (errno.EPERM, StoragePermissionError),
    (errno.EROFS, StoragePermissionError),
    (errno.ENOSPC, StorageFullError),
    (errno.EDQUOT, StorageFullError),
    (errno.ENOTDIR, StorageError),
    (errno.ENAMETOOLONG, StorageError),
    (errno.EMFILE, StorageError),
    (errno.EIO, StorageError),
    (errno.ESTALE, StorageError),
]
METHODS: dict[str, Callable[[LocalStorage], object]] = {
    "get": lambda storage: storage.get("f/a"),
    "put": lambda storage: storage.put("f/a", b"1"),
    "put_if_absent": lambda storage: storage.put_if_absent("f/a", b"1"),
    "create": lambda storage: write(storage, "f/a", b"1"),
    "sync": lambda storage: storage.sync(["f/a"]),
}


@pytest.mark.parametrize(("number", "kind"), OPEN_ERRORS)
@pytest.mark.parametrize("method", METHODS)
def test_errors_of_opening_a_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, method: str, number: int, kind: type[StorageError]
):
    fail_os(monkeypatch, "open", number)
    with pytest.raises(StorageError) as caught:
        METHODS[method](LocalStorage(root))
    assert type(caught.value) is kind
    assert f"{root}/f/a" in str(caught.value)
    assert errno.errorcode[number] in str(caught.value)


@pytest.mark.parametrize(
    ("method", "operation"),
    [("put_if_absent", "link"), ("put", "link or rename"), ("create", "rename"), ("delete", "unlink")],
)
@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, StoragePermissionError),
        (errno.EPERM, StoragePermissionError),
        (errno.EROFS, StoragePermissionError),
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EMLINK, StorageError),
        (errno.EIO, StorageUnavailableError),
        (errno.ETIMEDOUT, StorageUnavailableError),
        (errno.ESTALE, StorageUnavailableError),
    ],
)
def test_errors_of_changing_a_name_are_unknown_outcomes_unless_proven(
    root: Path, monkeypatch: pytest.MonkeyPatch, method: str, operation: str, number: int, kind: type[StorageError]
):
    storage = LocalStorage(root)
    # Only the call on the object's own name fails; unfinished files can be removed.
    for one in operation.split(" or "):
        fail_os(monkeypatch, one, number, lambda *paths: paths[-1] == f"{root}/f/a")
    with pytest.raises(StorageError) as caught:
        {**METHODS, "delete": lambda storage: storage.delete("f/a")}[method](storage)
    assert type(caught.value) is kind
    assert f"{root}/f/a" in str(caught.value)
    assert not root.exists() or files_below(root) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.EACCES, StoragePermissionError), (errno.EIO, StorageError), (errno.ENAMETOOLONG, StorageError)],
)
def test_errors_of_head(root: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[StorageError]):
    storage = LocalStorage(root)
    storage.put("f/a", b"1")
    fail_os(monkeypatch, "stat", number)
    with pytest.raises(StorageError) as caught:
        storage.head("f/a")
    assert type(caught.value) is kind
    assert f"{root}/f/a" in str(caught.value)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOTDIR, errno.EIO])
def test_errors_of_listing(root: Path, monkeypatch: pytest.MonkeyPatch, number: int):
    kind = StoragePermissionError if number == errno.EACCES else StorageError
    fail_os(monkeypatch, "scandir", number)
    for list_it in (LocalStorage(root).list_after, LocalStorage(root).list_folders):
        with pytest.raises(StorageError) as caught:
            list_it("f")
        assert type(caught.value) is kind


def test_errors_of_sync(root: Path, monkeypatch: pytest.MonkeyPatch):
    storage = LocalStorage(root)
    storage.put("f/a", b"1")
    fail_os(monkeypatch, "fsync", errno.EIO)
    with pytest.raises(StorageError) as caught:
        storage.sync(["f/a"])
    assert caught.value.retriable is False  # the kernel forgets a lost page: a second fsync would succeed


def test_a_lake_below_a_file_says_what_is_wrong(root: Path):
    root.write_bytes(b"a file")
    storage = LocalStorage(root)
    for method in (*METHODS.values(), lambda storage: storage.open("f/a"), lambda storage: storage.list_after("")):
        with pytest.raises(StorageError, match=r"is a file, not a folder.*check the lake's address"):
            method(storage)


def test_an_object_named_like_a_folder_is_refused(root: Path):
    storage = LocalStorage(root)
    storage.put("f/a", b"1")
    for call in (lambda: storage.put("f", b"2"), lambda: write(storage, "f", b"2")):
        with pytest.raises(StorageError, match="A folder has the name of this object"):
            call()
    assert files_below(root) == ["f/a"]
