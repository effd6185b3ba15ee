"""Every sentence of the storage port's contract, over every adapter; `test_storage_races.py` has the races."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.storage_adapters import ADAPTERS, WRITES, names, write

from tidelog.log.base.errors import InvalidPathError, ObjectNotFoundError
from tidelog.log.storage import ObjectStorage, Storage
from tidelog.log.storage.port import Distant

every_write = pytest.mark.parametrize("how", WRITES)


@pytest.fixture(params=ADAPTERS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return ADAPTERS[request.param](tmp_path)


def is_distant(storage: Storage) -> bool:
    return isinstance(storage, Distant)


# --- objects -----------------------------------------------------------------------------------------------


@every_write
@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 5000], ids=["empty", "one byte", "1.3 MB"])
def test_what_is_written_is_read(storage: Storage, how: str, data: bytes):
    WRITES[how](storage, "topic/partition=0/a.parquet", data)
    assert storage.get("topic/partition=0/a.parquet") == data
    with storage.open("topic/partition=0/a.parquet") as file:
        assert file.read() == data
    assert [found.size for found in storage.list_after("topic/partition=0")] == [len(data)]


@every_write
def test_a_path_may_hold_any_printable_text(storage: Storage, how: str):
    path = "ordérs=1/a b%20c#d?e+f&g:~日本.json"
    WRITES[how](storage, path, b"odd")
    assert (storage.get(path), names(storage, "ordérs=1")) == (b"odd", [path])
    assert storage.list_folders("") == ["ordérs=1"]
    storage.delete(path)
    assert names(storage, "ordérs=1") == []


def test_other_machines_write_to_a_store_behind_a_network(storage: Storage):
    """And not to this machine's own folders, or to its memory."""
    assert storage.is_shared == is_distant(storage)


def test_an_object_may_lie_in_the_root(storage: Storage):
    assert storage.put_if_absent("__lake.json", b"{}")
    assert (storage.get("__lake.json"), names(storage, "")) == (b"{}", ["__lake.json"])


def test_a_large_object_is_stored_and_read_in_parts(storage: Storage):
    parts = [bytes([i]) * 1_000_000 for i in range(30)]
    write(storage, "f/large", *parts)
    assert storage.get("f/large") == b"".join(parts)
    with storage.open("f/large") as file:
        assert file.seek(-1_500_000, 2) == 28_500_000
        assert file.read(1_000_000) == parts[28][:500_000] + parts[29][:500_000]
        file.seek(3_999_999)
        assert (file.read(2), file.tell()) == (b"\x03\x04", 4_000_001)
        file.seek(29_999_999)
        assert (file.read(5), file.read(5)) == (b"\x1d", b"")


def test_pyarrow_writes_and_reads_parquet(storage: Storage):
    table = pa.table({"position": range(100_000)})
    with storage.create("t/a.parquet") as file, pq.ParquetWriter(file, table.schema) as writer:
        writer.write_table(table, row_group_size=10_000)
    with storage.open("t/a.parquet") as source, pq.ParquetFile(source) as file:
        assert file.num_row_groups == 10
        assert file.read_row_groups([3]).column(0).to_pylist() == list(range(30_000, 40_000))
    with storage.open("t/a.parquet") as source:
        assert pq.read_table(source) == table


def test_put_and_create_replace(storage: Storage):
    for data in (b"first, long", b"2nd"):
        storage.put("a", data)
        assert storage.get("a") == data
    write(storage, "a", b"third")
    assert storage.get("a") == b"third"


def test_put_if_absent_keeps_what_is_there(storage: Storage):
    assert storage.put_if_absent("log/1", b"first") is True
    assert storage.put_if_absent("log/1", b"second") is False
    assert storage.get("log/1") == b"first"
    storage.put("log/2", b"put")
    assert storage.put_if_absent("log/2", b"late") is False
    assert storage.get("log/2") == b"put"
    storage.delete("log/1")
    assert storage.put_if_absent("log/1", b"again") is True


@pytest.mark.parametrize("taken", [False, True])
def test_what_comes_before_an_object_is_done_once_before_it_can_be_seen(storage: Storage, taken: bool):
    storage.put("log/0", b"")
    if taken:
        storage.put("log/1", b"first")
    seen: list[tuple[int, list[str]]] = []
    before = lambda: seen.append((threading.get_ident(), names(storage, "log")))  # noqa: E731
    assert storage.put_if_absent("log/1", b"second", before) is not taken
    assert seen == [(threading.get_ident(), ["log/0", "log/1"] if taken else ["log/0"])]
    assert storage.get("log/1") == (b"first" if taken else b"second")


def test_what_fails_before_an_object_is_raised_and_nothing_is_stored(storage: Storage):
    def fail() -> None:
        raise error

    error = KeyError("before")
    with pytest.raises(KeyError) as caught:
        storage.put_if_absent("new/a", b"1", fail)
    assert caught.value is error
    assert names(storage, "new") == []
    assert storage.put_if_absent("new/a", b"2")
    assert storage.get("new/a") == b"2"


def test_an_open_file_never_shows_a_mix_of_two_objects(storage: Storage):
    old, new = b"o" * 2_000_000, b"n" * 2_000_000
    storage.put("a", old)
    with storage.open("a") as file:
        seen = file.read(1)
        storage.put("a", new)
        try:
            seen += file.read()
        except Exception as error:
            assert "replaced" in str(error)  # noqa: PT017
        else:
            assert seen == old
    assert storage.get("a") == new


# --- what is not there -------------------------------------------------------------------------------------

MISSING = ["nothing", "no/such/folder/a", "folder/b", "folder"]


@pytest.mark.parametrize("path", MISSING)
@pytest.mark.parametrize("read", ["get", "head", "open"])
def test_reading_what_is_not_there_says_so_and_names_it(storage: Storage, read: str, path: str):
    storage.put("folder/a", b"1")
    with pytest.raises(ObjectNotFoundError) as caught:
        getattr(storage, read)(path)
    assert caught.value.retriable is False
    assert path in str(caught.value)
    assert storage.uri.removeprefix("file://") in str(caught.value)


@pytest.mark.parametrize("path", ["nothing", "no/such/folder/a", "folder/b"])
def test_deleting_what_is_not_there_is_no_error(storage: Storage, path: str):
    storage.put("folder/a", b"1")
    storage.delete(path)
    assert storage.get("folder/a") == b"1"


# obstore's store of files, which is here for the adapter's sake only, fails on folders.
@pytest.mark.parametrize("storage", sorted(ADAPTERS.keys() - {"objects in files"}), indirect=True)
def test_deleting_a_folder_does_nothing(storage: Storage):
    storage.put("folder/a", b"1")
    storage.delete("folder")
    assert storage.get("folder/a") == b"1"


def test_deleting_twice(storage: Storage):
    storage.put("folder/a", b"1")
    storage.delete("folder/a")
    storage.delete("folder/a")
    assert names(storage, "folder") == []
    with pytest.raises(ObjectNotFoundError):
        storage.get("folder/a")


def test_sync_says_what_is_not_there(storage: Storage):
    storage.put("t/a", b"1")
    missing = ["t/missing", "t", "no/folder/b"]
    # Where every put is durable it looks at nothing.
    assert storage.sync(["t/missing", "t/a", "t", "no/folder/b"]) == ([] if is_distant(storage) else missing)
    assert storage.sync([]) == []
    assert storage.sync(iter(["t/a"])) == []
    assert names(storage, "t") == ["t/a"]


@every_write
@pytest.mark.parametrize("size", [0, 1, 20_000_000])
def test_head_tells_what_a_listing_tells(storage: Storage, how: str, size: int):
    WRITES[how](storage, "f/a b%20ü", bytes(size))
    (listed,) = storage.list_after("f")
    assert storage.head("f/a b%20ü") == listed
    assert listed.size == size


# --- create ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 20_000_000], ids=["nothing written", "a byte", "several parts"])
def test_an_error_while_creating_leaves_nothing(storage: Storage, size: int):
    error = KeyError("in the block")
    with pytest.raises(KeyError) as caught:
        write(storage, "new/a", b"x" * size, error=error)
    assert caught.value is error
    assert names(storage, "new") == []
    with pytest.raises(ObjectNotFoundError):
        storage.get("new/a")


def test_an_error_while_creating_keeps_what_was_there(storage: Storage):
    storage.put("f/a", b"old")
    with pytest.raises(KeyError):
        write(storage, "f/a", b"new", error=KeyError())
    assert storage.get("f/a") == b"old"


def test_a_created_object_appears_at_the_end_of_the_block(storage: Storage):
    with storage.create("f/a") as file:
        file.write(b"x" * 20_000_000)
        file.flush()
        assert names(storage, "f") == []
        with pytest.raises(ObjectNotFoundError):
            storage.get("f/a")
    assert names(storage, "f") == ["f/a"]


def test_a_file_closed_inside_the_block_is_stored_at_its_end(storage: Storage):
    with storage.create("f/a") as file:
        file.write(b"data")
        file.close()
        assert names(storage, "f") == []
    assert storage.get("f/a") == b"data"


def test_two_may_create_one_path_at_once(storage: Storage):
    with storage.create("f/a") as outer:
        outer.write(b"outer")
        write(storage, "f/a", b"inner")
        assert storage.get("f/a") == b"inner"
    assert storage.get("f/a") == b"outer"


# --- listings ----------------------------------------------------------------------------------------------


def test_a_listing_is_in_lexical_order(storage: Storage):
    stored = ["10", "9", "a", "B", "_x", ".hidden", "é", "a-", "a.b", "00000000000000000010.json"]
    for name in stored:
        storage.put(f"log/{name}", b"")
    assert names(storage, "log") == [f"log/{name}" for name in sorted(stored)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("", ["000", "001", "002", "010"]),
        ("000", ["001", "002", "010"]),
        ("0005", ["001", "002", "010"]),
        ("00", ["000", "001", "002", "010"]),
        ("002", ["010"]),
        ("010", []),
        ("9", []),
        ("!", ["000", "001", "002", "010"]),
    ],
)
def test_a_listing_starts_after_a_name_that_need_not_exist(storage: Storage, after: str, expected: list[str]):
    for name in ("001", "010", "000", "002"):
        storage.put(f"t/log/{name}", b"")
    assert names(storage, "t/log", after) == [f"t/log/{name}" for name in expected]


@pytest.mark.parametrize("after", ["", "a"])
def test_a_listing_is_of_one_folder_only(storage: Storage, after: str):
    for path in ("log/b", "log/sub/x", "log/c/y/z", "log2/b", "lo", "logb", "z"):
        storage.put(path, b"")
    assert names(storage, "log", after) == ["log/b"]
    assert names(storage, "", after) == ["lo", "logb", "z"]


def test_missing_and_emptied_folders_list_as_empty(storage: Storage):
    assert names(storage, "") == []
    assert storage.list_folders("") == []
    storage.put("f/a", b"")
    storage.delete("f/a")
    for folder in ("f", "f/g", "other", "f/a"):
        assert names(storage, folder) == []
        assert storage.list_folders(folder) == []


def test_folders_are_listed_by_name_and_sorted(storage: Storage):
    for path in ("orders/_delta_log/0", "delays/x", "Z/x", "orders/partition=0/a", "orders/b", "file"):
        storage.put(path, b"")
    assert storage.list_folders("") == ["Z", "delays", "orders"]
    assert storage.list_folders("orders") == ["_delta_log", "partition=0"]
    assert storage.list_folders("delays") == []


def test_a_listing_knows_when_an_object_was_stored(storage: Storage):
    before = int(time.time() * 1000)
    storage.put("f/a", b"1")
    after = int(time.time() * 1000)
    (found,) = storage.list_after("f")
    # A file system stamps with a clock that ticks every few ms, S3 and its like to the second.
    tick = 1000 if isinstance(storage, ObjectStorage) else 50
    assert before - tick <= found.modified_ms <= after + 50


# --- paths -------------------------------------------------------------------------------------------------

REFUSED = ["", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/..", ".", "./a", "a/./b", "a\0b", "a\nb", "a\\b"]
REFUSED += [".x.tmp", "a/.x.tmp", "a/\ud800"]


@pytest.mark.parametrize("path", REFUSED)
def test_paths_that_are_none_are_refused_and_reach_nothing(storage: Storage, path: str):
    calls: list[Callable[[], object]] = [
        lambda: storage.get(path),
        lambda: storage.head(path),
        lambda: storage.put(path, b""),
        lambda: storage.put_if_absent(path, b""),
        lambda: write(storage, path, b""),
        lambda: storage.open(path),
        lambda: storage.delete(path),
    ]
    if path:  # "" is the root, a folder
        calls += [lambda: storage.list_after(path), lambda: storage.list_folders(path)]
    if not is_distant(storage):  # whose sync looks at nothing
        calls.append(lambda: storage.sync([path]))
    for call in calls:
        with pytest.raises(InvalidPathError) as caught:
            call()
        assert repr(path) in str(caught.value)
    assert names(storage, "") == []


@pytest.mark.parametrize("path", ["..a", "a..", "...", "a/..b/c", ".tmp.x", "x.tmp", "-", "*"])
def test_paths_that_look_odd_are_fine(storage: Storage, path: str):
    storage.put(path, b"1")
    assert storage.get(path) == b"1"
