"""How a log's entries are asked for, one by one and beside one another."""

from contextlib import suppress
from threading import Barrier

import pytest
from support.faults import FaultyStorage

from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import ObjectNotFoundError, StorageUnavailableError
from tidelog.log.base.worker_threads import Helpers
from tidelog.log.door.reading_ahead import ReadingAhead
from tidelog.log.storage import MemoryStorage
from tidelog.log.storage.store_time import StoreTime


class Far(FaultyStorage):
    """A store that says it is behind a network, and notes what it is asked."""

    def __init__(self, entries: int) -> None:
        super().__init__(MemoryStorage("m"), lambda *call: None)
        for version in range(entries):
            self.inner.put(f"log/{version}", b"%d" % version)
        self.asked: list[int] = []
        self.hook = lambda method, path, phase: self.asked.append(int(path[4:])) if phase == "before" else None
        self.threads = Helpers(4)

    def helpers(self) -> Helpers:
        return self.threads


def read_all(storage: FaultyStorage, reading: ReadingAhead | None = None, start: int = 0) -> list[bytes]:
    reading = reading or ReadingAhead(storage, lambda version: f"log/{version}", StoreTime(SystemClock()))
    reading.begin()
    found = []
    with suppress(ObjectNotFoundError):
        while True:
            found.append(reading.get(start + len(found)))
    return found


@pytest.mark.parametrize(
    ("entries", "asked"), [(0, [0]), (1, [0, 1]), (2, [0, 1, 2, 3]), (4, list(range(8))), (7, list(range(8)))]
)
def test_as_many_at_once_as_there_were_before(entries: int, asked: list[int]):
    storage = Far(entries)
    assert read_all(storage) == [b"%d" % version for version in range(entries)]
    assert sorted(storage.asked) == asked


def test_a_look_begins_with_as_many_as_the_last_one_met():
    storage = Far(0)
    reading = ReadingAhead(storage, lambda version: f"log/{version}", StoreTime(SystemClock()))
    there, looks = 0, []
    for new in (5, 1, 0, 1):
        for version in range(there, there + new):
            storage.inner.put(f"log/{version}", b"")
        storage.asked.clear()
        assert len(read_all(storage, reading, there)) == new
        looks.append(sorted(storage.asked))
        there += new
    assert looks == [list(range(8)), list(range(5, 11)), [6, 7], [6, 7]]


def test_an_entry_between_two_looks_is_read_beside_the_look_for_the_next():
    storage = Far(0)
    reading = ReadingAhead(storage, lambda version: f"log/{version}", StoreTime(SystemClock()))
    together = Barrier(2, timeout=60)
    storage.inner.put("log/0", b"")
    assert len(read_all(storage, reading)) == 1
    before = storage.hook

    def wait(method: str, path: str, phase: str) -> None:
        before(method, path, phase)
        if phase == "before":
            together.wait()

    storage.hook = wait
    for version in (1, 2, 3):  # each look's two requests wait for one another
        storage.inner.put(f"log/{version}", b"")
        assert len(read_all(storage, reading, version)) == 1


def test_a_near_store_is_asked_for_one_after_another():
    storage = Far(7)
    near = FaultyStorage(storage.inner, storage.hook)
    assert len(read_all(near)) == 7
    assert storage.asked == list(range(8))


def test_what_came_after_the_look_is_not_taken():
    """Entry 4 is created between the looks at 4 and at 5: then 5 and 6 may be there while 4 wasn't."""
    storage = Far(4)
    storage.inner.put("log/5", b"5")
    reading = ReadingAhead(storage, lambda version: f"log/{version}", StoreTime(SystemClock()))
    assert len(read_all(storage, reading)) == 4
    storage.inner.put("log/4", b"4")
    assert read_all(storage, reading, 4) == [b"4", b"5"]


def test_an_error_is_the_look_s():
    storage = Far(7)
    reading = ReadingAhead(storage, lambda version: f"log/{version}", StoreTime(SystemClock()))
    reading.begin()
    assert [reading.get(version) for version in range(2)] == [b"0", b"1"]

    def no_answer(method: str, path: str, phase: str) -> None:
        if path == "log/3":
            raise StorageUnavailableError("no answer")

    well, storage.hook = storage.hook, no_answer
    with pytest.raises(StorageUnavailableError):
        reading.get(2)
    storage.hook = well
    assert read_all(storage, reading, 2) == [b"%d" % version for version in range(2, 7)]


def test_the_time_of_a_look_is_that_of_its_request():
    class Clock(SystemClock):
        now_s = 0.0

        def elapsed_s(self) -> float:
            self.now_s += 1
            return self.now_s

    reading = ReadingAhead(Far(4), lambda version: f"log/{version}", StoreTime(Clock()))
    times = []
    for version in range(4):
        reading.get(version)
        times.append(reading.looked.elapsed_s)
    assert times == [1, 2, 3, 3]
