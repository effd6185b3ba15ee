"""A clock, ids and short words for tests of the log: no real time, no real chance."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from support.faults import FaultyStorage
from support.memory_disk import MemoryDisk

from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta.actions import Action, Add, CommitInfo, Entry, Metadata, Remove, Txn
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.delta.schema import DELTA_SCHEMA, PARTITION_COLUMNS
from tidelog.log.door.commit_loop import Door
from tidelog.log.lake import Lake
from tidelog.log.segments.staging import stage_records
from tidelog.log.segments.writer import Staged, stats_json
from tidelog.log.storage import Storage
from tidelog.log.topic import Topic

START_MS = 1_700_000_000_000


class _Deciding(threading.local):
    """Whether this thread is inside a decision, which must not ask the clock, nor chance."""

    active = False

    def refuse(self) -> None:
        assert not self.active, "a decision asked the clock, or chance: they come with the request (rule D3)"


_deciding = _Deciding()


@contextmanager
def watched_decisions() -> Iterator[None]:
    """Meanwhile a decision that asks a `FakeClock` or `CountingIds` fails the test that it is in."""
    real = Door.commit

    def commit(self: Door[Any], decide: Callable[[Any], Any], **options: Any) -> Any:
        def watched(state: Any) -> Any:
            _deciding.active = True
            try:
                return decide(state)
            finally:
                _deciding.active = False

        return real(self, watched, **options)

    Door.commit = commit  # type: ignore[method-assign]
    try:
        yield
    finally:
        Door.commit = real  # type: ignore[method-assign]


class FakeClock:
    """Stands still until a caller sleeps or a test moves it."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.ms = now_ms
        self.seconds = 1_000.0

    def now_ms(self) -> int:
        _deciding.refuse()
        return self.ms

    def elapsed_s(self) -> float:
        _deciding.refuse()
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.pass_s(seconds)

    def pass_s(self, seconds: float) -> None:
        self.seconds += seconds
        self.ms += int(seconds * 1000)


class CountingIds:
    """Ids 1, 2, 3 in the form of UUIDs, and always the same fraction."""

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._lock = threading.Lock()

    def new(self) -> str:
        _deciding.refuse()
        with self._lock:
            self._next += 1
            return f"00000000-0000-4000-8000-{self._next:012d}"

    def fraction(self) -> float:
        _deciding.refuse()
        return 0.5

    def secret(self, size: int) -> bytes:
        return self.new().encode().ljust(size, b".")[-size:]


class Calls:
    """A hook for `FaultyStorage` that counts calls to the store: [("get", path), ...]."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, method: str, path: str, phase: str) -> None:
        if phase == "before":
            self.seen.append((method, path))

    def take(self) -> list[str]:
        """The methods called since the last take, in order."""
        methods = [method for method, _ in self.seen]
        self.seen.clear()
        return methods


def quiet(*call: str) -> None:
    """A hook that does nothing."""


_stores = iter(range(1 << 30))


def memory_lake(
    hook: Callable[[str, str, str], None] = quiet, clock: FakeClock | None = None
) -> tuple[Lake, FaultyStorage, FakeClock]:
    """A lake in memory behind a store that fails on request, all on one fake clock."""
    clock = clock or FakeClock()
    storage = FaultyStorage(MemoryDisk(f"lake-{next(_stores)}", clock), hook)
    return open_lake(storage, clock), storage, clock


def open_lake(storage: Storage, clock: FakeClock, **more: Any) -> Lake:
    """Another process's view of the same store."""
    return Lake(storage.uri, storage=storage, clock=clock, ids=CountingIds(1_000_000 * next(_stores)), **more)


def values(*texts: str, **columns: Any) -> pa.Table:
    """A table of records with these values."""
    return pa.table({"value": [t.encode() for t in texts], **columns})


def read(lake: Lake, topic: str, partition: int = 0, start: int | None = None, end: int | None = None) -> list[str]:
    """The values of a range, as text."""
    batches = lake.topic(topic).read(partition, start, end)
    return [v.decode() for b in batches for v in b.column("value").to_pylist()]


def read_offsets(lake: Lake, topic: str, partition: int = 0, **bounds: int) -> list[tuple[int, str]]:
    """(offset, value) of a range."""
    batches = lake.topic(topic).read(partition, **bounds)
    return [
        (offset, value.decode())
        for b in batches
        for offset, value in zip(b.column("offset").to_pylist(), b.column("value").to_pylist(), strict=True)
    ]


# --- entries by hand ---------------------------------------------------------------------------------------


def metadata(partitions: int = 2, topic_id: str = "id-1", name: str = "t", **more: str) -> Metadata:
    """A topic's metaData; `more` are table properties with `_` for `.`."""
    configuration = {
        "tidelog.format": "2",
        "tidelog.topic.id": topic_id,
        "tidelog.partitions": str(partitions),
        **{k.replace("_", "."): v for k, v in more.items()},
    }
    return Metadata("table-1", name, DELTA_SCHEMA, PARTITION_COLUMNS, configuration, START_MS)


def add(partition: int, base: int, end: int | None, path: str = "", **more: Any) -> Add:
    """A segment of [base, end); without an end it has no tags."""
    count = 1 if end is None else end - base
    fields = {
        "size": 100,
        "modification_ms": START_MS,
        "data_change": True,
        "stats": None if end is None else stats_json(count, count - 1, START_MS, START_MS),
        **more,
    }
    return Add(path or f"partition={partition}/0-{base}-{end}.parquet", partition, base, end=end, **fields)


def remove(added: Add) -> Remove:
    """The same segment leaves."""
    return Remove(added.path, added.partition, added.base_offset, added.size, START_MS, False)


def end_txn(partition: int, end: int) -> Txn:
    """The entry's word on a partition's log end offset."""
    return Txn(f"tidelog/end/{partition}", end)


def start_txn(partition: int, start: int) -> Txn:
    """The entry's word on a partition's log start offset."""
    return Txn(f"tidelog/start/{partition}", start)


def entry(version: int, *actions: Action, request: str = "request", operation: str = "WRITE") -> Entry:
    """A log entry of tidelog's."""
    return Entry(version, tuple(actions), CommitInfo(START_MS, operation, request))


def created(*, version: int = 0, **facts: Any) -> Entry:
    """The entry that creates a topic."""
    return entry(version, PROTOCOL, metadata(**facts))


def apply_all(state: Any, entries: Sequence[Entry]) -> Any:
    """The state after the entries."""
    for one in entries:
        state.apply(one)
    return state


def stage(topic: Topic, *texts: str, **columns: Any) -> list[Staged]:
    """Segments of these records, staged and not committed."""
    stager = topic.stager()
    table = values(*texts, **columns)
    stage_records(stager, table, topic.name, topic.config(), "murmur2", 0, START_MS)
    return stager.finish()


def put_checkpoint(storage: Storage, folder: str, version: int, now_ms: int = START_MS) -> None:
    """The checkpoint of a version, written as at `now_ms`."""
    write_checkpoint(storage, folder, version, now_ms)
