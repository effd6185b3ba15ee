"""Staging: every record in its partition, in order, in bounded memory and few open files."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import START_MS, CountingIds, quiet

from tidelog.log.base.errors import StorageFullError
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.records.checks import to_records
from tidelog.log.segments import staging
from tidelog.log.segments.staging import Stager, Target, split_by_partition
from tidelog.log.segments.writer import Staged
from tidelog.log.storage import MemoryStorage, Storage

ANY_SIZE = TopicConfig.parse({"max.message.bytes": str(2**31 - 1)})


def target(**more: Any) -> Target:
    facts = {"folder": "t", "topic_id": "id", "version": 7, "partitions": 1 << 20, "segment_bytes": 1 << 30}
    return Target(**{**facts, "codec": Codec("none", None), **more})


def stager(storage: Storage | None = None, **more: Any) -> Stager:
    return Stager(storage or MemoryStorage("m"), target(**more), CountingIds())


def records(values: list[bytes]) -> pa.Table:
    return to_records(pa.table({"value": pa.array(values, pa.binary())}), "t", ANY_SIZE, START_MS)


def contents(storage: Storage, staged: list[Staged]) -> dict[int, list[bytes]]:
    """{partition: its values, segment by segment}."""
    found: dict[int, list[bytes]] = {}
    for s in staged:
        table = pq.read_table(storage.open(f"t/{s.path}"))
        assert (s.records, s.known_version, s.topic_id) == (table.num_rows, 7, "id")
        assert s.size == len(storage.get(f"t/{s.path}"))
        found.setdefault(s.partition, []).extend(table.column("value").to_pylist())
    return found


def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits a thousand times smaller, so that a few bytes reach them."""
    monkeypatch.setattr(staging, "ROW_GROUP_RECORDS", 8)
    monkeypatch.setattr(staging, "ROW_GROUP_BYTES", 800)
    monkeypatch.setattr(staging, "WAITING_BYTES", 2_000)
    monkeypatch.setattr(staging, "MOST_OPEN", 2)


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 200)), max_size=30), max_size=6)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_limits(monkeypatch)


@given(BATCHES, st.sampled_from([100, 3_000, 1 << 30]))
def test_every_record_lands_in_its_partition_in_order(batches: list[list[tuple[int, int]]], segment_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_limits(monkeypatch)
        storage = MemoryStorage("m")
        one = stager(storage, segment_bytes=segment_bytes)
        wanted: dict[int, list[bytes]] = {}
        for b, batch in enumerate(batches):
            values = [b"%d-%d" % (b, i) + bytes(size) for i, (_, size) in enumerate(batch)]
            partitions = [p for p, _ in batch]
            one.add(records(values), np.array(partitions, np.int32))
            for p, value in zip(partitions, values, strict=True):
                wanted.setdefault(p, []).append(value)
        staged = one.finish()
        assert contents(storage, staged) == wanted
        assert [s.partition for s in staged] == sorted(s.partition for s in staged)


def test_one_partition_is_one_small_put() -> None:
    storage = MemoryStorage("m")
    one = stager(storage)
    one.add(records([b"a", b"b"]), np.zeros(2, np.int32))
    (staged,) = one.finish()
    assert staged.path == "partition=0/7-00000000-0000-4000-8000-000000000001.parquet"
    assert contents(storage, [staged]) == {0: [b"a", b"b"]}


def test_nothing_is_no_segment() -> None:
    one = stager()
    one.add(records([]), np.zeros(0, np.int32))
    assert one.finish() == []


@pytest.mark.parametrize(("segment_bytes", "least", "most"), [(1 << 30, 1, 1), (1 << 20, 2, 4)])
def test_segment_bytes_begins_a_new_file(segment_bytes: int, least: int, most: int) -> None:
    """After the row group that reaches it, and however large the table is that comes at once."""
    rows = [np.random.default_rng(i).bytes(10_000) for i in range(4_000)]  # 40 MB
    storage = MemoryStorage("m")
    one = stager(storage, segment_bytes=segment_bytes)
    one.add(records(rows), np.zeros(len(rows), np.int32))
    staged = one.finish()
    assert least <= len(staged) <= most
    assert contents(storage, staged)[0] == rows


@pytest.mark.parametrize("skewed", [False, True])
def test_memory_is_bounded_however_many_partitions_there_are(monkeypatch: pytest.MonkeyPatch, skewed: bool) -> None:
    """Rows that wait don't hold the memory of rows that came with them and were written long ago."""
    monkeypatch.setattr(staging, "WAITING_BYTES", 8_000_000)
    monkeypatch.setattr(staging, "ROW_GROUP_BYTES", 4_000_000)

    class Forgets(MemoryStorage):
        def put(self, path: str, data: bytes) -> None:
            super().put(path, b"")

    one = stager(Forgets("m"))
    pool, most = pa.default_memory_pool(), 0
    before = pool.bytes_allocated()
    random = np.random.default_rng(1)
    for _ in range(25):  # 4 MB each, 100 MB in all
        rows = records([bytes(1_000)] * 4_000)
        spread = random.integers(0, 200, 4_000)
        one.add(
            rows,
            np.where(random.random(4_000) < 0.95, 0, spread).astype(np.int32) if skewed else spread.astype(np.int32),
        )
        del rows
        most = max(most, pool.bytes_allocated() - before)
    one.abort()
    assert most < 32_000_000


def test_few_files_are_open_at_once(small: None) -> None:
    opened: set[str] = set()
    most = [0]

    def hook(method: str, path: str, phase: str) -> None:
        if method == "create":
            (opened.add if phase == "before" else opened.discard)(path)
            most[0] = max(most[0], len(opened))

    storage = FaultyStorage(MemoryStorage("m"), quiet)
    storage.hook = hook
    one = stager(storage)
    values = [b"%d" % i + bytes(100) for i in range(400)]
    one.add(records(values), np.arange(400, dtype=np.int32) % 20)
    assert contents(storage, one.finish()) == {p: values[p::20] for p in range(20)}
    assert most[0] <= staging.MOST_OPEN


def test_an_abort_leaves_nothing(small: None, recwarn: pytest.WarningsRecorder) -> None:
    storage = MemoryStorage("m")
    one = stager(storage)
    one.add(records([bytes(500)] * 40), np.arange(40, dtype=np.int32) % 4)
    assert list(storage.list_folders("t"))
    one.abort()
    assert storage.list_folders("t") == []
    del one
    assert not recwarn.list


@pytest.mark.parametrize("method", ["create", "write", "put"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_full_disk_is_told_and_an_abort_cleans_up(small: None, method: str, nth: int) -> None:
    calls = [0]

    def full(called: str, path: str, phase: str) -> None:
        if (called, phase) == (method, "before"):
            calls[0] += 1
            if calls[0] == nth:
                raise StorageFullError("no space")

    storage = FaultyStorage(MemoryStorage("m"), quiet)
    storage.hook = full
    one = stager(storage)
    with pytest.raises(StorageFullError):
        _stage_all(one)
    storage.hook = quiet
    one.abort()
    assert storage.list_folders("t") == []


def _stage_all(one: Stager) -> None:
    for _ in range(10):
        one.add(records([bytes(300)] * 40), np.arange(40, dtype=np.int32) % 8)
    one.finish()


@given(st.lists(st.integers(0, 3), max_size=20))
def test_splitting_keeps_order(partitions: list[int]) -> None:
    values = [b"%d" % i for i in range(len(partitions))]
    split = split_by_partition(records(values), np.array(partitions, np.int32))
    found = {p: part.table().column("value").to_pylist() for p, part in split}
    assert found == {p: [v for v, q in zip(values, partitions, strict=True) if q == p] for p in sorted(set(partitions))}


def test_splitting_takes_tables_of_many_chunks_and_slices() -> None:
    table = pa.concat_tables([records([b"a", b"b"]), records([]), records([b"c", b"d", b"e"])]).slice(1, 3)
    split = split_by_partition(table, np.array([1, 0, 1], np.int32))
    assert [(p, part.table().column("value").to_pylist()) for p, part in split] == [(0, [b"c"]), (1, [b"b", b"d"])]


def test_records_that_come_by_partition_are_split_where_they_are() -> None:
    table = records([b"a", b"b", b"c"]).combine_chunks()
    first, last = split_by_partition(table, np.array([0, 0, 5], np.int32))
    assert [(p, part.table().column("value").to_pylist()) for p, part in (first, last)] == [
        (0, [b"a", b"b"]),
        (5, [b"c"]),
    ]

    def address(part: pa.Table) -> int:
        return int(part.column("value").chunk(0).buffers()[2].address)

    assert {address(part.table()) for _, part in (first, last)} == {address(table)}
    # What waits for more must not hold the memory of the others.
    assert address(last[1].copied().table()) != address(table)
    assert last[1].copied().table().column("value").to_pylist() == [b"c"]
