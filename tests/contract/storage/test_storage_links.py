"""Objects of one store made those of another, without their bytes where both are in one place."""

import errno
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from support import versitygw
from support.logs import FakeClock
from support.storage_adapters import ADAPTERS, names
from support.unnamed_files import with_unnamed_files

from tidelog.log.base.errors import StorageError, StorageUnavailableError
from tidelog.log.storage import LocalStorage, ObjectStorage, Storage, local_links
from tidelog.log.storage.port import Linked, LinksObjects
from tidelog.log.storage.requests import RequestKind

# Those that can link an object of another store of their kind.
LINKING = ("local", "local, temporary files", "memory", "faulty without faults", "s3")


def pair(name: str, root: Path) -> tuple[Storage, Storage]:
    """Two stores of a kind, in one place."""
    if name == "s3":
        place = versitygw.server().place()
        below = (f"{place.uri}/{lake}" for lake in ("source", "lakes/target"))
        source, target = (ObjectStorage(uri, place.options, environment={}) for uri in below)
        return source, target
    (root / "source").mkdir()
    (root / "lakes" / "target").mkdir(parents=True)
    return ADAPTERS[name](root / "source"), ADAPTERS[name](root / "lakes" / "target")


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_store_says_whether_it_links(name: str, tmp_path: Path):
    source, target = pair(name, tmp_path)
    assert (isinstance(target, LinksObjects) and target.links_from(source)) is (name in LINKING)


@pytest.fixture(params=LINKING)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, Storage]:
    return pair(request.param, tmp_path)


def link(stores: tuple[Storage, Storage], *paths: str) -> Linked:
    source, target = stores
    assert isinstance(target, LinksObjects)
    return target.link_in(source, paths)


def test_objects_are_linked_and_those_that_are_missing_are_named(stores: tuple[Storage, Storage]):
    source, target = stores
    paths = [f"t/partition={p}/{i}.parquet" for p in range(3) for i in range(4)]
    for path in paths:
        source.put(path, path.encode())
    source.put("root.json", b"{}")
    done = link(stores, *paths, "t/partition=0/gone", "nowhere/gone", "root.json")
    assert (sorted(done.missing), done.unlinked) == (["nowhere/gone", "t/partition=0/gone"], ())
    assert {path: target.get(path).decode() for path in paths} == {path: path for path in paths}
    assert names(target, "t/partition=1") == paths[4:8]
    assert target.get("root.json") == b"{}"
    assert target.head(paths[0]).size == len(paths[0])


def test_one_that_is_there_is_replaced_and_a_second_time_does_no_harm(stores: tuple[Storage, Storage]):
    source, target = stores
    source.put("t/a", b"whole")
    target.put("t/a", b"who")
    for _ in range(2):
        assert link(stores, "t/a") == Linked()
        assert (target.get("t/a"), names(target, "t")) == (b"whole", ["t/a"])


def test_what_becomes_of_one_is_nothing_to_the_other(stores: tuple[Storage, Storage]):
    source, target = stores
    for path in ("t/a", "t/b", "t/c"):
        source.put(path, b"as it was")
    link(stores, "t/a", "t/b", "t/c")
    source.delete("t/a")
    source.put("t/b", b"another")
    target.put("t/c", b"another")
    assert [target.get(path) for path in ("t/a", "t/b")] == [b"as it was", b"as it was"]
    assert source.get("t/c") == b"as it was"


def test_a_name_with_odd_characters_is_linked(stores: tuple[Storage, Storage]):
    path = "ordérs=1/a b%20c+d&e~日本.parquet"
    stores[0].put(path, b"odd")
    assert link(stores, path) == Linked()
    assert stores[1].get(path) == b"odd"


# --- a local disk ------------------------------------------------------------------------------------------


def test_a_local_disk_has_linked_files_once(tmp_path: Path):
    stores = pair("local", tmp_path)
    stores[0].put("t/a", b"x" * 100_000)
    link(stores, "t/a")
    assert os.path.samefile(tmp_path / "source/t/a", tmp_path / "lakes/target/t/a")


def test_files_that_can_not_be_linked_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stores = pair("local", tmp_path)
    for name in ("a", "b"):
        stores[0].put(f"t/{name}", b"x")
    linked = os.link

    def of_another_disk(source: str, *rest: object, **folders: int) -> None:
        if source == "b":
            raise OSError(18, "Invalid cross-device link")
        linked(source, *rest, **folders)

    monkeypatch.setattr(local_links.os, "link", of_another_disk)
    assert link(stores, "t/a", "t/b", "t/c") == Linked(("t/c",), ("t/b",))


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EACCES])
def test_files_that_can_not_be_linked_over_others_are_named(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stores = pair("local", tmp_path)
    stores[0].put("t/a", b"whole")
    stores[1].put("t/a", b"who")
    linked = os.link

    def refuse(source: str, target: str, **folders: int) -> None:
        if target.endswith(".tmp"):
            raise OSError(number, os.strerror(number))
        linked(source, target, **folders)

    monkeypatch.setattr(local_links.os, "link", refuse)
    assert link(stores, "t/a") == Linked(unlinked=("t/a",))
    assert stores[1].get("t/a") == b"who"


def test_a_file_that_goes_while_it_is_linked_over_another_one_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stores = pair("local", tmp_path)
    stores[0].put("t/a", b"whole")
    stores[1].put("t/a", b"who")
    linked = os.link

    def vanish(source: str, target: str, **folders: int) -> None:
        if target.endswith(".tmp"):
            stores[0].delete("t/a")
        linked(source, target, **folders)

    monkeypatch.setattr(local_links.os, "link", vanish)
    assert link(stores, "t/a") == Linked(missing=("t/a",))


def test_nothing_stays_behind_where_a_name_is_a_folders(tmp_path: Path):
    stores = pair("local", tmp_path)
    stores[0].put("t/a", b"x")
    stores[1].put("t/a/b", b"x")
    with pytest.raises(StorageError, match="A folder has the name"):
        link(stores, "t/a")
    assert os.listdir(tmp_path / "lakes/target/t") == ["a"]


def test_symbolic_links_are_followed_over_others_too(tmp_path: Path):
    stores = pair("local", tmp_path)
    stores[0].put("t/whole", b"whole")
    for name in ("a", "b"):
        (tmp_path / "source/t" / name).symlink_to("whole")
    stores[1].put("t/b", b"who")
    assert link(stores, "t/a", "t/b") == Linked()
    for name in ("a", "b"):
        there = tmp_path / "lakes/target/t" / name
        assert (there.is_symlink(), os.path.samefile(there, tmp_path / "source/t/whole")) == (False, True)


def test_the_names_of_linked_files_and_of_their_folders_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source = LocalStorage(with_unnamed_files(tmp_path / "source"))
    target = LocalStorage(tmp_path / "target")
    source.put("t/partition=0/a", b"x")
    synced: list[str] = []
    monkeypatch.setattr(
        "tidelog.log.storage.local_durability._synced",
        lambda locations, files: synced.extend(locations[files:]) or [1] * len(locations),
    )
    monkeypatch.setattr("tidelog.log.storage.local_durability._fsync", lambda at, kind=0: synced.append(at) or True)
    link((source, target), "t/partition=0/a")
    below = [tmp_path, tmp_path / "target", tmp_path / "target/t", tmp_path / "target/t/partition=0"]
    assert {str(folder) for folder in below} <= set(synced)


def test_links_come_at_a_pace_that_leaves_appends_of_other_processes_their_syncs(tmp_path: Path):
    source, _ = pair("local", tmp_path)
    paths = [f"t/partition={p}/{i:04}" for p in range(2) for i in range(1000)]
    for path in paths:
        source.put(path, b"x")
    there: list[int] = []

    class Noted(FakeClock):
        def sleep(self, seconds: float) -> None:
            there.append(sum(len(names(target, f"t/partition={p}")) for p in range(2)))
            super().sleep(seconds)

    clock = Noted()
    began_s = clock.elapsed_s()
    target = LocalStorage(tmp_path / "target", clock=clock)
    target._helpers._max_workers = 0  # the caller alone links, so that the portions come one after another
    assert target.link_in(source, paths[:200]) == Linked()
    assert clock.elapsed_s() == began_s, "a small branch waits"
    assert target.link_in(source, paths) == Linked()
    assert max(after - before for before, after in pairwise([0, *there])) <= 200
    for _ in range(4):
        target.link_in(source, paths)
    assert 0.49 <= clock.elapsed_s() - began_s <= 0.51, "10,000 links are to take half a second"


def test_files_are_deleted_at_the_same_pace(tmp_path: Path):
    clock = FakeClock()
    began_s = clock.elapsed_s()
    target = LocalStorage(tmp_path, clock=clock)
    for number in range(200):
        target.delete(f"t/{number}")
    assert clock.elapsed_s() == began_s, "a few deletes wait"
    for number in range(9_800):
        target.delete(f"t/{number}")
    assert 0.48 <= clock.elapsed_s() - began_s <= 0.51, "10,000 deletes are to take half a second"


# --- an object store ---------------------------------------------------------------------------------------


def test_no_byte_of_an_object_store_comes_to_the_client(tmp_path: Path):
    source, target = pair("s3", tmp_path)
    assert isinstance(source, ObjectStorage)
    assert isinstance(target, ObjectStorage)
    source.put("t/a", b"x" * 1_000_000)
    before = [store.requests.counts() for store in (source, target)]
    target.link_in(source, ["t/a", "t/b"])
    of_source, of_target = (s.requests.counts().since(b) for s, b in zip((source, target), before, strict=True))
    assert (of_source.total, of_target.by_kind) == (0, {RequestKind.COPY: 2})
    assert (of_target.sent_bytes, of_target.received_bytes) == (0, 0)


def test_objects_of_another_bucket_are_not_linked(tmp_path: Path):
    source, _ = pair("s3", tmp_path)
    target = ObjectStorage("s3://another-bucket/lake", versitygw.server().place().options, environment={})
    assert not target.links_from(source)


@pytest.mark.parametrize(
    ("answer", "raises"),
    [
        (
            OSError("Generic S3 error: Server returned non-2xx status code: 501 Not Implemented: <Code>NotImplemented"),
            False,
        ),
        (
            OSError("Generic S3 error: Server returned non-2xx status code: 400 Bad Request: <Code>InvalidRequest"),
            False,
        ),
        (OSError("Generic S3 error: error sending request"), True),
    ],
)
def test_what_a_store_does_not_copy_is_left_undone(
    answer: str, raises: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stores = pair("s3", tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(f"Generic S3 error: {answer}")

    monkeypatch.setattr("obstore.copy", refuse)
    run: Callable[[], Linked] = lambda: link(stores, "t/a")  # noqa: E731
    if raises:
        with pytest.raises(StorageUnavailableError):
            run()
    else:
        assert run() == Linked(unlinked=("t/a",))
