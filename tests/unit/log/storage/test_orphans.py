"""Discarding what was staged: an error of one file leaves the others to be discarded."""

from support.faults import FaultyStorage

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.storage.memory import MemoryStorage
from tidelog.log.storage.orphans import discard


def test_an_error_of_one_file_does_not_keep_the_others() -> None:
    def hook(method: str, path: str, phase: str) -> None:
        if (method, path, phase) == ("delete", "t/b", "before"):
            raise StorageUnavailableError("away")

    storage = FaultyStorage(MemoryStorage("orphans"), hook)
    for name in "abc":
        storage.put(f"t/{name}", b"x")
    discard(storage, [f"t/{name}" for name in "abc"])
    assert [found.path for found in storage.list_after("t", "")] == ["t/b"]
