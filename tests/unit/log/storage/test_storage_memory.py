"""The store in memory, and the one that loses power: what that takes, and time from a clock."""

import doctest
from collections.abc import Callable

import pytest
from support import memory_disk
from support.memory_disk import MemoryDisk
from support.storage_adapters import names, write

from tidelog.log.storage import MemoryStorage, memory
from tidelog.log.storage.memory import MemoryStorage as Store


class Ticks:
    """A clock whose every reading is one ms after the last."""

    def __init__(self) -> None:
        self.ms = 0

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def elapsed_s(self) -> float:
        return self.ms / 1000

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


def put_a_sync_put_a(storage: Store) -> None:
    storage.put("f/a", b"old")
    storage.sync(["f/a"])
    storage.put("f/a", b"new")


def delete_durable(storage: Store, *then: Callable[[Store], object]) -> None:
    storage.put_if_absent("f/a", b"old")
    storage.delete("f/a")
    for call in then:
        call(storage)


POWER_LOSS: list[tuple[str, Callable[[Store], object], dict[str, bytes]]] = [
    ("put is lost", lambda s: s.put("f/a", b"1"), {}),
    ("create is lost", lambda s: write(s, "f/a", b"1"), {}),
    ("put_if_absent lasts", lambda s: s.put_if_absent("f/a", b"1"), {"f/a": b"1"}),
    ("put, then sync", lambda s: (s.put("f/a", b"1"), s.sync(["f/a"])), {"f/a": b"1"}),
    ("create, then sync", lambda s: (write(s, "f/a", b"1"), s.sync(["f/a"])), {"f/a": b"1"}),
    ("sync of another", lambda s: (s.put("f/a", b"1"), s.put("f/b", b"2"), s.sync(["f/b"])), {"f/b": b"2"}),
    ("sync before the put", lambda s: (s.sync(["f/a"]), s.put("f/a", b"1")), {}),
    ("a later entry saves no segment", lambda s: (s.put("f/a", b"1"), s.put_if_absent("f/b", b"2")), {"f/b": b"2"}),
    ("a replacement falls back", put_a_sync_put_a, {"f/a": b"old"}),
    ("a replacement, synced", lambda s: (put_a_sync_put_a(s), s.sync(["f/a"])), {"f/a": b"new"}),
    ("a refused put_if_absent saves nothing", lambda s: (s.put("f/a", b"1"), s.put_if_absent("f/a", b"2")), {}),
    ("a delete is undone", delete_durable, {"f/a": b"old"}),
    ("a delete of what is not durable", lambda s: (s.put("f/a", b"1"), s.delete("f/a")), {}),
    (
        "a delete lasts after a later sync in its folder",
        lambda s: delete_durable(s, lambda s: s.put("f/b", b"2"), lambda s: s.sync(["f/b"])),
        {"f/b": b"2"},
    ),
    (
        "a delete lasts after a later put_if_absent in its folder",
        lambda s: delete_durable(s, lambda s: s.put_if_absent("f/b", b"2")),
        {"f/b": b"2"},
    ),
    (
        "a sync in another folder settles no delete",
        lambda s: delete_durable(s, lambda s: s.put_if_absent("g/b", b"2"), lambda s: s.put_if_absent("f/g/c", b"3")),
        {"f/a": b"old", "g/b": b"2", "f/g/c": b"3"},
    ),
    (
        "a new object under a deleted name",
        lambda s: delete_durable(s, lambda s: s.put("f/a", b"new")),
        {"f/a": b"old"},
    ),
    (
        "a new durable object under a deleted name",
        lambda s: delete_durable(s, lambda s: s.put_if_absent("f/a", b"new")),
        {"f/a": b"new"},
    ),
]


@pytest.mark.parametrize(("did", "left"), [case[1:] for case in POWER_LOSS], ids=[case[0] for case in POWER_LOSS])
def test_power_loss(did: Callable[[Store], object], left: dict[str, bytes]):
    storage = MemoryDisk("m")
    did(storage)
    storage.lose_power()
    found = [path for folder in ("f", "f/g", "g") for path in names(storage, folder)]
    assert {path: storage.get(path) for path in found} == left
    storage.lose_power()  # what survived once survives again
    assert [path for folder in ("f", "f/g", "g") for path in names(storage, folder)] == found


def test_the_store_goes_on_after_a_power_loss():
    storage = MemoryDisk("m")
    storage.put("f/a", b"1")
    storage.lose_power()
    assert storage.put_if_absent("f/a", b"2")
    storage.delete("f/a")
    assert names(storage, "f") == []


def test_times_come_from_the_clock_and_return_with_the_content():
    storage = MemoryDisk("m", Ticks())
    storage.put_if_absent("a", b"")  # 1 ms
    storage.put("b", b"")  # 2 ms
    storage.put("a", b"")  # 3 ms
    assert [(found.path, found.modified_ms) for found in storage.list_after("")] == [("a", 3), ("b", 2)]
    storage.lose_power()
    assert [(found.path, found.modified_ms) for found in storage.list_after("")] == [("a", 1)]


def test_a_listing_is_a_snapshot():
    storage = MemoryStorage("m")
    storage.put("f/a", b"")
    listing = storage.list_after("f")
    storage.put("f/b", b"")
    assert [found.path for found in listing] == ["f/a"]


def test_what_was_stored_can_not_be_changed_from_outside():
    storage, data = MemoryStorage("m"), bytearray(b"abc")
    storage.put("a", data)
    data[0] = 0
    assert storage.get("a") == b"abc"


def test_the_example_in_the_docstring():
    for module in (memory, memory_disk):
        assert doctest.testmod(module).failed == 0
