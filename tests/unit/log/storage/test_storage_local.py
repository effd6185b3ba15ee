"""The local adapter: what is synced and when, and what a root may be."""

import errno
import os
import pickle
import threading
from pathlib import Path

import pytest
from support.os_faults import fail_os, files_below, in_python, is_folder
from support.storage_adapters import names, write
from support.unnamed_files import with_unnamed_files

from tidelog.log.base.errors import InvalidUriError, ObjectNotFoundError, StorageUnavailableError
from tidelog.log.storage import LocalStorage, local

OPERATIONS = ("fsync", "link", "rename", "unlink")


@pytest.fixture(params=["unnamed", "temporary"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The way by which new files get their names is in the root's own name, for `storage_at`."""
    return (with_unnamed_files(tmp_path) if request.param == "unnamed" else tmp_path) / request.param


def storage_at(root: Path) -> LocalStorage:
    return LocalStorage(root, unnamed="unnamed" in root.parts)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, root: Path) -> list[str]:
    """The calls that matter for durability as `operation path-in-root`, new files without their name as NEW."""
    in_python(monkeypatch)
    recorded: list[str] = []

    def short(what: int | str) -> str:
        path = f"/proc/self/fd/{what}" if isinstance(what, int) else what
        relative = os.path.relpath(os.readlink(path) if path.startswith("/proc/") else path, root)
        is_new = relative.endswith((".tmp", " (deleted)"))
        return os.path.join(os.path.dirname(relative), "NEW") if is_new else relative

    def record(operation: str) -> None:
        real = getattr(os, operation)

        def recording(*args: int | str, **named: object) -> object:
            recorded.append(" ".join([operation, *map(short, args)]))
            return real(*args, **named)

        monkeypatch.setattr(os, operation, recording)

    for operation in OPERATIONS:
        record(operation)
    monkeypatch.setattr(local, "start_writeback", lambda fd: recorded.append(f"writeback {short(fd)}"))
    return recorded


def gone(root: Path, folder: str) -> list[str]:
    """How a new file in `folder` ends: an unnamed one by itself."""
    return [] if root.name == "unnamed" else [f"unlink {folder}/NEW"]


# --- durability ---------------------------------------------------------------------------------------------


def test_put_if_absent_syncs_content_then_folders_above_then_names_then_the_folder(root: Path, calls: list[str]):
    storage = storage_at(root)
    assert storage.put_if_absent("t/log/0", b"0")
    assert calls == [
        "fsync t/log/NEW",
        "fsync t",
        "fsync .",
        "fsync ..",  # the root is new as well
        "link t/log/NEW t/log/0",
        *gone(root, "t/log"),
        "fsync t/log",
    ]
    calls.clear()
    assert storage.put_if_absent("t/log/1", b"1")
    assert calls == ["fsync t/log/NEW", "link t/log/NEW t/log/1", *gone(root, "t/log"), "fsync t/log"]


def test_what_comes_before_an_object_is_synced_while_its_content_is_written(root: Path, calls: list[str]):
    """And before it has its name. The kernel writes the content meanwhile, so that its own sync finds little left."""
    storage = storage_at(root)
    storage.put_if_absent("t/log/0", b"0")
    storage.put("t/p/a", b"1")
    storage.sync(["t/p/a"])
    calls.clear()
    assert storage.put_if_absent("t/log/1", b"1", lambda: calls.extend(storage.sync(["t/p/a"])))
    assert calls == [
        "writeback t/log/NEW",
        "fsync t/p/a",
        "fsync t/p",
        "fsync t/log/NEW",
        "link t/log/NEW t/log/1",
        *gone(root, "t/log"),
        "fsync t/log",
    ]


def test_many_objects_are_synced_at_the_same_time(root: Path, monkeypatch: pytest.MonkeyPatch):
    """Each of four syncs ends only when all have begun."""
    storage = storage_at(root)
    paths = [f"t/p{i}/a" for i in range(4)]
    for path in paths:
        storage.put(path, b"1")
    storage.sync(paths)
    real, together = os.fsync, threading.Barrier(4)

    def fsync(fd: int) -> None:
        real(fd)
        together.wait(timeout=60)

    monkeypatch.setattr(os, "fsync", fsync)
    assert storage.sync(paths) == []


def test_folders_that_another_process_made_are_synced_too(root: Path, calls: list[str]):
    (root / "t/log").mkdir(parents=True)
    storage_at(root).put_if_absent("t/log/0", b"0")
    assert {"fsync t", "fsync .", "fsync .."} <= set(calls)


def test_new_folders_above_the_root_are_synced_as_well(root: Path, calls: list[str]):
    storage = storage_at(root / "a/b")
    storage.put_if_absent("0", b"0")
    assert {"fsync a", "fsync .", "fsync .."} <= set(calls)


def test_a_lost_race_leaves_no_file_and_costs_no_folder_sync(root: Path, calls: list[str]):
    storage = storage_at(root)
    storage.put_if_absent("log/0", b"0")
    calls.clear()
    assert not storage.put_if_absent("log/0", b"other")
    assert calls == gone(root, "log")
    assert files_below(root) == ["log/0"]


def test_a_race_that_is_lost_at_the_last_moment_leaves_no_file_either(
    root: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
):
    storage = storage_at(root)
    storage.put_if_absent("log/0", b"0")
    calls.clear()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not storage.put_if_absent("log/0", b"other")
    assert calls == ["fsync log/NEW", "link log/NEW log/0", *gone(root, "log")]
    assert files_below(root) == ["log/0"]


def test_put_and_create_and_delete_sync_nothing(root: Path, calls: list[str]):
    storage = storage_at(root)
    storage.put("f/a", b"1")
    write(storage, "f/b", b"2")
    storage.delete("f/a")
    named = "link" if root.name == "unnamed" else "rename"
    assert calls == [f"{named} f/NEW f/a", "rename f/NEW f/b", "unlink f/a"]


def test_sync_syncs_files_and_each_folder_once_and_the_folders_above(root: Path, calls: list[str]):
    storage = storage_at(root)
    for path in ("t/p/a", "t/p/b", "u/c"):
        storage.put(path, b"1")
    calls.clear()
    assert storage.sync(["t/p/a", "t/p/b", "t/p/missing", "u/c", "no/folder"]) == ["t/p/missing", "no/folder"]
    assert {call: calls.count(call) for call in calls if call not in ("fsync .", "fsync ..")} == dict.fromkeys(
        ("fsync t/p/a", "fsync t/p/b", "fsync u/c", "fsync t", "fsync t/p", "fsync u"), 1
    )
    assert {"fsync .", "fsync .."} <= set(calls)


def test_a_folder_with_a_new_name_is_synced_again_and_the_ones_above_are_not(root: Path, calls: list[str]):
    storage = storage_at(root)
    storage.put("t/p/a", b"1")
    storage.sync(["t/p/a"])
    storage.put("t/p/b", b"1")
    calls.clear()
    storage.sync(["t/p/b"])
    assert sorted(calls) == ["fsync t/p", "fsync t/p/b"]


def test_a_folder_made_again_is_synced_again(root: Path, calls: list[str]):
    storage = storage_at(root)
    storage.put_if_absent("t/a", b"1")
    storage.delete("t/a")
    (root / "t").rmdir()
    calls.clear()
    storage.put_if_absent("t/a", b"1")
    assert calls[:2] == ["fsync t/NEW", "fsync ."]


def test_a_failed_sync_after_the_link_is_an_unknown_outcome(root: Path, monkeypatch: pytest.MonkeyPatch):
    storage = storage_at(root)
    storage.put_if_absent("log/0", b"0")
    with monkeypatch.context() as patch:
        fail_os(patch, "fsync", errno.EIO, is_folder)
        with pytest.raises(StorageUnavailableError):
            storage.put_if_absent("log/1", b"1")
        # The writer asks again: the name is there, but nothing says yet that it will last.
        with pytest.raises(StorageUnavailableError):
            storage.put_if_absent("log/1", b"1")
    assert files_below(root) == ["log/0", "log/1"]


def test_a_repeat_after_a_failed_folder_sync_syncs_the_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch, calls: list[str]
):
    storage = storage_at(root)
    storage.put_if_absent("log/0", b"0")
    with monkeypatch.context() as patch:
        fail_os(patch, "fsync", errno.EIO, is_folder)
        with pytest.raises(StorageUnavailableError):
            storage.put_if_absent("log/1", b"1")
    for synced in (True, False):  # the first repeat settles it for good
        calls.clear()
        assert storage.put_if_absent("log/1", b"1") is False
        assert ("fsync log" in calls) == synced


def test_a_short_write_is_continued(root: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    storage = storage_at(root)
    storage.put("a", b"0123456789")
    storage.put_if_absent("b", b"0123456789")
    write(storage, "c", b"0123456789")
    assert [storage.get(path) for path in "abc"] == [b"0123456789"] * 3


def test_unfinished_files_of_a_crashed_writer_are_not_listed(root: Path):
    storage = storage_at(root)
    storage.put("f/a", b"1")
    (root / "f/.0f-17-3.tmp").write_bytes(b"half")
    assert names(storage, "f") == ["f/a"]


def test_a_file_deleted_while_it_is_listed_is_left_out(root: Path):
    storage = storage_at(root)
    for path in ("f/a", "f/b", "f/c"):
        storage.put(path, b"1")
    listing = storage.list_after("f")
    assert next(listing).path == "f/a"
    storage.delete("f/b")
    assert [found.path for found in listing] == ["f/c"]


# --- the rest -----------------------------------------------------------------------------------------------


def test_the_root_is_absolute_and_its_address_round_trips(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(root.parent)
    storage = LocalStorage(f"{root.name}/")
    assert storage.uri == f"file://{root}"
    storage.put("a", b"1")
    monkeypatch.chdir("/")
    assert storage.get("a") == b"1"


def test_opening_creates_nothing(root: Path):
    storage = storage_at(root)
    assert (names(storage, ""), storage.list_folders("")) == ([], [])
    with pytest.raises(ObjectNotFoundError):
        storage.get("a")
    assert not root.exists()


@pytest.mark.parametrize("char", "%?#")
def test_a_root_that_other_engines_read_differently_is_refused(root: Path, char: str):
    with pytest.raises(InvalidUriError, match="have meanings on which"):
        LocalStorage(f"{root}{char}x")


def unfinished_name(storage: LocalStorage, root: Path) -> str:
    with storage.create("f/a"):
        (name,) = os.listdir(root / "f")
    storage.delete("f/a")
    return name


def test_copies_in_other_processes_name_their_unfinished_files_otherwise(root: Path, monkeypatch: pytest.MonkeyPatch):
    storage = storage_at(root)
    copy = pickle.loads(pickle.dumps(storage))
    own, copied = (unfinished_name(one, root).rsplit("-", 2) for one in (storage, copy))
    assert (own[0] != copied[0], own[1], copied[1]) == (True, str(os.getpid()), str(os.getpid()))
    monkeypatch.setattr(os, "getpid", lambda: 4321)  # as in a forked child, which has its parent's count
    assert unfinished_name(storage, root).rsplit("-", 2)[:2] == [own[0], "4321"]
