"""Names on a local disk that are taken by what is no file: they hide nothing, and no writer waits for them."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support.logs import FakeClock, values

from tidelog.check.lake import Kind, check_lake
from tidelog.log.base.errors import StorageError
from tidelog.log.lake import Lake
from tidelog.log.storage.local import LocalStorage
from tidelog.log.storage.local_files import is_file, is_folder

NEXT = "_delta_log/00000000000000000002.json"


def a_link_below_a_file(at: Path) -> None:
    at.with_name("file").write_bytes(b"")
    at.symlink_to("file/below")


def a_socket(at: Path) -> None:
    before = os.getcwd()
    os.chdir(at.parent)  # a socket's whole path has few bytes
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(at.name)
    os.chdir(before)


STRANGERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (Path.mkdir, "A folder has the name of this object: remove or rename it"),
    "a link to nowhere": (lambda at: at.symlink_to("nowhere"), "is a link to /.*/nowhere, which is not there"),
    "a link to itself": (lambda at: at.symlink_to(at.name), "Symbolic links on this path lead in a circle"),
    "a link below a file": (a_link_below_a_file, "A part of this path is a file, not a folder"),
    "a pipe": (os.mkfifo, "what has this name is no file"),
    "a socket": (a_socket, "what has this name is no file"),
}
each_stranger = pytest.mark.parametrize(("make", "says"), STRANGERS.values(), ids=STRANGERS)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lake(tmp_path: Path, clock: FakeClock) -> Lake:
    """A lake with topic `t` of one record."""
    lake = Lake(tmp_path / "lake", clock=clock)
    lake.create_topic("t", 1)
    lake.topic("t").append(values("a"))
    return lake


@each_stranger
def test_what_has_a_name_in_the_lakes_root_hides_no_topic(
    lake: Lake, tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / "lake/a.b")
    assert lake.topics() == ["t"]
    if make is not Path.mkdir:
        with pytest.raises(StorageError, match=f"{tmp_path}/lake/a.b" if "no file" in says else says):
            lake.topic("a.b").append(values("lost"))
    assert lake.create_topic("a_b", 1).name == "a_b"  # a look for names like it goes over the others
    assert check_lake(lake).green


@each_stranger
def test_a_writer_is_told_at_once_what_has_the_next_entrys_name(
    lake: Lake, tmp_path: Path, clock: FakeClock, make: Callable[[Path], object], says: str
) -> None:
    make(tmp_path / "lake/t" / NEXT)
    began_s = clock.seconds
    for append in (lake.topic("t").append, Lake(lake.uri, clock=clock).topic("t").append):
        with pytest.raises(StorageError, match=says):
            append(values("b"))
    assert clock.seconds == began_s
    (found,) = check_lake(lake).findings
    assert (found.kind, found.where) == (Kind.NAME_TAKEN, NEXT)


@each_stranger
def test_an_object_is_not_created_over_it_and_nothing_is_left(
    tmp_path: Path, make: Callable[[Path], object], says: str
) -> None:
    (tmp_path / "lake/f").mkdir(parents=True)
    make(tmp_path / "lake/f/a")
    before = sorted(os.listdir(tmp_path / "lake/f"))
    storage = LocalStorage(tmp_path / "lake")
    with pytest.raises(StorageError, match=says):
        storage.put_if_absent("f/a", b"1")
    assert sorted(os.listdir(tmp_path / "lake/f")) == before
    assert [found.path for found in storage.list_after("f")] == ["f/file"] * ("file" in before)
    assert storage.strangers("f") == ["a"]
    assert storage.list_folders("f") == ["a"] * (make is Path.mkdir)


def test_links_to_files_and_folders_count_as_these(tmp_path: Path) -> None:
    (tmp_path / "f/folder").mkdir(parents=True)
    (tmp_path / "f/file").write_bytes(b"1")
    for kind in ("folder", "file"):
        (tmp_path / f"f/link to a {kind}").symlink_to(kind)
    storage = LocalStorage(tmp_path)
    assert storage.list_folders("f") == ["folder", "link to a folder"]
    assert [found.path for found in storage.list_after("f")] == ["f/file", "f/link to a file"]
    assert not storage.put_if_absent("f/link to a file", b"2")


@pytest.mark.parametrize("error", [PermissionError(13, "denied"), OSError(5, "input/output error")])
def test_a_link_that_can_not_be_followed_may_lead_to_a_topic(error: OSError) -> None:
    class Entry:
        def is_dir(self) -> bool:
            raise error

        is_file = is_dir

    assert is_folder(Entry())  # type: ignore[arg-type]
    assert is_file(Entry())  # type: ignore[arg-type]
