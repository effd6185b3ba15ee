"""Files that native code creates and syncs: as those of Python, errors too, and nothing is left where it gives up."""

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from inotify_simple import INotify, flags
from support.native import native_files
from support.os_faults import files_below
from support.unnamed_files import with_unnamed_files

from tidelog.log.base.errors import MissingSegmentError, StorageError
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.storage import LocalStorage, local_drafts
from tidelog.log.storage.local_drafts import DraftStep


@pytest.fixture
def root(tmp_path: Path) -> Path:
    native_files()
    return with_unnamed_files(tmp_path) / "lake"


@pytest.fixture
def storage(root: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    """A store that knows its file system by now; from here on a call of Python's for a new file is a fault."""
    storage = LocalStorage(root)
    storage.put_if_absent("f/first", b"1")

    def refuse(*args: object, **named: object) -> int:
        raise AssertionError(f"a call in Python: {args}")

    for name in ("write", "fsync", "link"):
        monkeypatch.setattr(os, name, refuse)
    return storage


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process grows beyond 1000 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("data", [b"", b"x", b"y" * 900_000])
def test_files_are_created_once_with_their_content(storage: LocalStorage, root: Path, data: bytes) -> None:
    before = open_files()
    storage.put("f/put", memoryview(data))
    assert storage.put_if_absent("f/new", data)
    assert not storage.put_if_absent("f/new", b"another's")
    assert [storage.get(f"f/{name}") for name in ("put", "new")] == [data, data]
    assert files_below(root) == ["f/first", "f/new", "f/put"]
    assert open_files() == before


def test_what_is_there_is_replaced_by_put(root: Path) -> None:
    storage = LocalStorage(root)
    for data in (b"1", b"2", b"3"):
        storage.put("f/a", data)
        assert storage.get("f/a") == data
    assert files_below(root) == ["f/a"]


def test_a_race_that_is_lost_between_the_look_and_the_name(storage: LocalStorage, root: Path) -> None:
    """What comes before an entry takes long: another writer's is there when it ends."""
    assert not storage.put_if_absent("f/a", b"mine", lambda: storage.put("f/a", b"another's"))
    assert storage.get("f/a") == b"another's"


def test_an_entry_is_one_event_for_a_watcher(storage: LocalStorage, root: Path) -> None:
    with INotify(nonblocking=True) as watch:
        watch.add_watch(str(root / "f"), flags.CREATE | flags.MOVED_TO | flags.MOVED_FROM | flags.DELETE)
        assert storage.put_if_absent("f/1", b"x")
        assert [(event.mask, event.name) for event in watch.read(0)] == [(flags.CREATE, "1")]


def test_modes_are_as_of_any_new_file(storage: LocalStorage, root: Path) -> None:
    before = os.umask(0o027)
    try:
        storage.put("f/put", b"1")
        storage.put_if_absent("f/new", b"1")
    finally:
        os.umask(before)
    assert {(root / "f" / name).stat().st_mode & 0o777 for name in ("put", "new")} == {0o640}


def test_new_folders_are_made(root: Path) -> None:
    storage = LocalStorage(root)
    for number in range(3):
        storage.put(f"t/p={number}/a", b"1")
        assert storage.put_if_absent(f"t{number}/log/0", b"1")
    assert len(files_below(root)) == 6


@pytest.mark.usefixtures("small_files")
def test_a_file_that_can_not_be_written_leaves_nothing_and_the_error_is_pythons(root: Path) -> None:
    storage = LocalStorage(root)
    storage.put("f/first", b"1")
    before = open_files()
    for write in (storage.put, storage.put_if_absent):
        with pytest.raises(StorageError, match=r"Could not write .*/f/large: File too large \(EFBIG\)"):
            write("f/large", b"x" * 3000)
    assert files_below(root) == ["f/first"]
    assert open_files() == before


def test_a_folder_on_another_device_is_left_to_python(root: Path) -> None:
    module = local_drafts.NATIVE
    assert module is not None
    root.mkdir()
    folder = os.fsencode(root)
    device = root.stat().st_dev
    assert module.create(folder, device + 1, folder + b"/a", b"1") == errno.EXDEV
    assert module.begin(folder, device + 1, b"1") == -errno.EXDEV
    assert module.begin(folder + b"/none", device, b"1") == -errno.ENOENT
    assert files_below(root) == []


def test_each_step_of_an_entry_says_why_it_failed(root: Path) -> None:
    module = local_drafts.NATIVE
    assert module is not None
    root.mkdir()
    folder = os.fsencode(root)
    fd = module.begin(folder, root.stat().st_dev, b"content")
    try:
        assert module.finish(fd, folder + b"/none/a", folder) == (DraftStep.NAMING, errno.ENOENT)
        assert module.finish(-1, folder + b"/a", folder) == (DraftStep.SYNC, errno.EBADF)
        assert module.finish(fd, folder + b"/a", folder + b"/none")[0] == DraftStep.SYNC_OF_NAME
        assert module.finish(fd, folder + b"/a", folder) == (DraftStep.TAKEN, 0)
        assert module.finish(fd, folder + b"/b", folder) == (DraftStep.DONE, 0)
    finally:
        os.close(fd)
    assert [(root / name).read_bytes() for name in "ab"] == [b"content"] * 2


def test_a_sync_says_what_is_not_there(storage: LocalStorage, root: Path) -> None:
    """Few are synced by the caller and many by threads: the answer is the same."""
    storage.put("f/a", b"1")
    os.mkfifo(root / "f" / "pipe")
    for count in (1, 30):
        there = [f"f/{count}-{number}" for number in range(count)]
        for path in there:
            storage.put(path, b"1")
        for _ in range(2):
            assert storage.sync([*there, "f/a", "f/none", "none/a", "f/pipe", *there]) == ["f/none", "none/a", "f/pipe"]
    with pytest.raises(MissingSegmentError, match="f/none is not there"):
        make_durable(storage, ["f/a", "f/none"])


def test_a_way_through_a_file_can_not_be_synced(storage: LocalStorage) -> None:
    with pytest.raises(StorageError, match=r"Could not sync .*/f/first/a"):
        storage.sync(["f/first/a"])
