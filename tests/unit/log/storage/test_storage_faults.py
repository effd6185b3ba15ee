"""The store that fails on request: which caller gets which error, and what was done."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.faults import FaultyStorage
from support.storage_adapters import names, write

from tidelog.log.base.errors import StorageFullError, StorageUnavailableError
from tidelog.log.storage import MemoryStorage


def failing_at(*point: str) -> FaultyStorage:
    """A store over memory that fails at one (method, path, phase)."""

    def hook(*call: str) -> None:
        if call == point:
            raise StorageUnavailableError("on request")

    return FaultyStorage(MemoryStorage("m"), hook)


@pytest.mark.parametrize(("phase", "stored"), [("before", []), ("after", ["f/a"])])
@pytest.mark.parametrize("method", ["put", "put_if_absent", "create"])
def test_before_means_not_stored_and_after_means_that_the_answer_is_lost(method: str, phase: str, stored: list[str]):
    storage = failing_at(method, "f/a", phase)
    with pytest.raises(StorageUnavailableError):
        write(storage, "f/a", b"1") if method == "create" else getattr(storage, method)("f/a", b"1")
    assert names(storage.inner, "f") == stored
    storage.put("f/other", b"1")


def test_a_full_disk_in_the_middle_of_a_segment_leaves_nothing():
    writes = []

    def full_from_the_second_write_on(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("write", "before"):
            writes.append(path)
            if len(writes) == 2:
                raise StorageFullError("no space")

    storage = FaultyStorage(MemoryStorage("m"), full_from_the_second_write_on)
    with pytest.raises(StorageFullError), storage.create("t/a.parquet") as file:
        pq.write_table(pa.table({"a": range(10)}), file)
    assert set(writes) == {"t/a.parquet"}
    assert names(storage, "t") == []


def test_the_hook_sees_every_call_in_order():
    seen: list[tuple[str, str, str]] = []
    storage = FaultyStorage(MemoryStorage("m"), lambda *call: seen.append(call))
    with storage.create("f/a") as file:
        file.write(b"1")
    storage.sync(["f/a", "f/b"])
    storage.get("f/a")
    storage.open("f/a")
    storage.list_after("f")
    storage.list_folders("")
    storage.delete("f/a")
    around = [("create", "f/a", "before"), ("write", "f/a", "before"), ("write", "f/a", "after")]
    around += [("create", "f/a", "after")]
    for method, path in (("sync", "f/a"), ("sync", "f/b"), ("get", "f/a"), ("open", "f/a"), ("list_after", "f")):
        around += [(method, path, "before"), (method, path, "after")]
    for method, path in (("list_folders", ""), ("delete", "f/a")):
        around += [(method, path, "before"), (method, path, "after")]
    assert seen == around
