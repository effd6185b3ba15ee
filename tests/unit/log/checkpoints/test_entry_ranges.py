"""Ranges of entries: in order, with what is not there, and many at once where the store is far away."""

from concurrent.futures import Executor, ThreadPoolExecutor
from threading import Barrier

import pytest

from tidelog.log.base.errors import CorruptLogError, ObjectNotFoundError
from tidelog.log.checkpoints.entry_ranges import AT_ONCE, decoded_entries, find_entries, read_entries
from tidelog.log.delta import layout
from tidelog.log.storage import MemoryStorage


class FarStorage(MemoryStorage):
    """A store behind a network, of which four calls are under way together or none ends."""

    def __init__(self) -> None:
        super().__init__("far")
        self._threads = ThreadPoolExecutor(4)
        self._together = Barrier(4, timeout=20)

    def helpers(self) -> Executor:
        return self._threads

    def get(self, path: str) -> bytes:
        self._together.wait()
        return super().get(path)


def put_entries(storage: MemoryStorage, *versions: int) -> None:
    for version in versions:
        storage.put(f"t/{layout.entry_path(version)}", b"%d" % version)


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1])
def test_a_range_is_read_in_order(count: int) -> None:
    storage = MemoryStorage("near")
    put_entries(storage, *range(count + 5))
    assert list(read_entries(storage, "t", range(2, 2 + count))) == [(v, b"%d" % v) for v in range(2, 2 + count)]


def test_what_is_not_there() -> None:
    storage = MemoryStorage("near")
    put_entries(storage, 1, 3)
    assert list(find_entries(storage, "t", range(4))) == [(0, None), (1, b"1"), (2, None), (3, b"3")]
    with pytest.raises(ObjectNotFoundError, match=layout.entry_path(2)):
        list(read_entries(storage, "t", range(1, 4)))
    with pytest.raises(CorruptLogError):
        list(decoded_entries(storage, "t", range(1, 2)))


def test_a_store_that_is_far_away_is_asked_for_many_at_once() -> None:
    storage = FarStorage()
    put_entries(storage, *range(12))
    assert [v for v, _ in read_entries(storage, "t", range(12))] == list(range(12))
