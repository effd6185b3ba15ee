"""Writing checkpoints: from what they are made, what they forget, and what they cost the store."""

from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.logs import (
    START_MS,
    Calls,
    FakeClock,
    add,
    end_txn,
    entry,
    memory_lake,
    metadata,
    open_lake,
    put_checkpoint,
    read,
    remove,
    values,
)

from tidelog.log.base.errors import ForeignEntryError, LogTrimmedError, ObjectNotFoundError
from tidelog.log.checkpoints import writing
from tidelog.log.checkpoints.reading import checkpoints_from, read_checkpoint, removed_files
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn, encode_entry
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.storage import MemoryStorage

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def table_of(storage: Any, version: int) -> list[dict[str, Any]]:
    """A checkpoint's rows, without what is null."""
    data = storage.get(f"t/{layout.checkpoint_path(version)}")
    rows = pq.read_table(pa.BufferReader(data)).to_pylist(maps_as_pydicts="strict")
    return [{kind: body for kind, body in row.items() if body is not None} for row in rows]


def bodies(storage: Any, version: int, kind: str) -> list[dict[str, Any]]:
    return [row[kind] for row in table_of(storage, version) if kind in row]


def appended(times: int, **config: str) -> tuple[Any, FakeClock]:
    """A store with topic `t` of this number of appends, one an entry."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", config=config)
    for i in range(times):
        lake.topic("t").append(values(f"{i}"))
    return storage, clock


def test_between_two_checkpoints_only_new_entries_are_read_and_nothing_is_listed() -> None:
    storage, _ = appended(30)
    put_checkpoint(storage, "t", 20)
    storage.hook = calls = Calls()
    put_checkpoint(storage, "t", 25)
    entries = [path for method, path in calls.seen if method == "get" and path.endswith(".json")]
    assert entries == [f"t/{layout.entry_path(v)}" for v in range(20, 26)]  # 20: whether tidelog wrote it
    assert {path for method, path in calls.seen if method == "list_after"} == {f"t/{layout.FLOOR_FOLDER}"}


def test_it_lasts_before_it_is_named() -> None:
    storage, _ = appended(5)
    storage.hook = calls = Calls()
    put_checkpoint(storage, "t", 4)
    mine, hint = f"t/{layout.checkpoint_path(4)}", f"t/{layout.LAST_CHECKPOINT}"
    done = [call for call in calls.seen if call[0] in ("create", "put", "sync")]
    assert done == [("create", mine), ("sync", mine), ("put", hint), ("sync", hint)]


def test_rows_pass_through_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of any size takes the memory of one group."""
    monkeypatch.setattr(writing, "_GROUP_ROWS", 7)
    storage, clock = appended(40)
    for version in (10, 30, 38):
        put_checkpoint(storage, "t", version)
    file = pq.ParquetFile(pa.BufferReader(storage.get(f"t/{layout.checkpoint_path(38)}")))
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sum(sizes) == 38 + 3
    assert max(sizes) < 3 * 7
    assert len(sizes) >= 4
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(40)]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def of_another_topic(data: bytes) -> bytes:
    rows = pq.read_table(pa.BufferReader(data))
    renamed = [{**r, "metaData": r["metaData"] and {**r["metaData"], "name": "u"}} for r in rows.to_pylist()]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(renamed, rows.schema), sink)
    return bytes(sink.getvalue().to_pybytes())


@pytest.mark.parametrize("damage", [lambda _: b"", cut, of_another_topic])
def test_nothing_is_built_on_a_checkpoint_that_is_none_of_this_log(damage: Any) -> None:
    storage, _ = appended(20)
    put_checkpoint(storage, "t", 15)
    whole = table_of(storage, 15)
    put_checkpoint(storage, "t", 10)
    put_checkpoint(storage, "t", 12)
    path = f"t/{layout.checkpoint_path(12)}"
    storage.inner.put(path, damage(storage.get(path)))
    put_checkpoint(storage, "t", 15)
    assert sorted(map(str, table_of(storage, 15))) == sorted(map(str, whole))


def test_a_log_that_was_trimmed_past_its_beginning_is_left_alone() -> None:
    storage, _ = appended(20)
    storage.inner.put_if_absent(f"t/{layout.floor_path(3)}", b"")
    with pytest.raises(LogTrimmedError, match="was trimmed while its checkpoint 15 was made"):
        put_checkpoint(storage, "t", 15)
    with pytest.raises(ObjectNotFoundError):
        storage.get(f"t/{layout.checkpoint_path(15)}")


RETENTIONS: dict[str, tuple[dict[str, str], int, bool]] = {
    # property, how long after the removal, whether it is still named
    "as set, shortly before": ({"delta_deletedFileRetentionDuration": "interval 3 hours"}, 3 * HOUR_MS - 1, True),
    "as set, then": ({"delta_deletedFileRetentionDuration": "interval 3 hours"}, 3 * HOUR_MS, False),
    "in other words": ({"delta_deletedFileRetentionDuration": "1 DAY 2 hours"}, 25 * HOUR_MS, True),
    "in other words, then": ({"delta_deletedFileRetentionDuration": "1 DAY 2 hours"}, 26 * HOUR_MS, False),
    "Delta's default": ({}, 7 * DAY_MS - 1, True),
    "Delta's default, then": ({}, 7 * DAY_MS, False),
    "what is none": ({"delta_deletedFileRetentionDuration": "interval 2 months"}, 900 * DAY_MS, True),
}


@pytest.mark.parametrize(("properties", "later_ms", "named"), RETENTIONS.values(), ids=RETENTIONS)
@pytest.mark.parametrize("between", [False, True], ids=["from entries", "from a checkpoint"])
def test_removed_files_are_named_until_their_time_is_up(
    properties: dict[str, str], later_ms: int, named: bool, between: bool
) -> None:
    storage = MemoryStorage("m")
    stored(storage, [PROTOCOL, metadata(**properties)], [add(0, 0, 4)], [remove(add(0, 0, 4))], [add(0, 4, 5)])
    if between:
        write_checkpoint(storage, "t", 2, START_MS)
    write_checkpoint(storage, "t", 3, START_MS + later_ms)
    found = next(checkpoints_from(storage, "t", 3))
    assert list(removed_files(storage, "t", found)) == ([(add(0, 0, 4).path, START_MS)] if named else [])
    assert [body["path"] for body in bodies(storage, 3, "add")] == [add(0, 4, 5).path]


def test_a_file_that_comes_back_is_there_and_not_removed() -> None:
    storage, one = MemoryStorage("m"), add(0, 0, 4)
    stored(storage, [PROTOCOL, metadata()], [one], [remove(one)], [one])
    for version in (1, 2, 3):
        write_checkpoint(storage, "t", version, START_MS)
        there = version != 2
        assert (len(bodies(storage, version, "add")), len(bodies(storage, version, "remove"))) == (there, not there)


# A time and an id: whether a checkpoint keeps it, where another id was written at START_MS.
IDS: dict[str, tuple[str, str, int | None, bool]] = {
    "fresh": ("old", "interval 14 days", START_MS - 14 * DAY_MS, True),
    "of long ago": ("old", "interval 14 days", START_MS - 14 * DAY_MS - 1, False),
    "without a time": ("old", "interval 14 days", None, True),
    "of long ago, kept for ever": ("old", "", 1, True),
    "a producer": ("tidelog/producer/1/0", "interval 14 days", START_MS - DAY_MS, True),
    "a producer of long ago": ("tidelog/producer/1/0", "interval 14 days", START_MS - DAY_MS - 1, False),
}


@pytest.mark.parametrize(("name", "retention", "updated_ms", "kept"), IDS.values(), ids=IDS)
def test_transaction_ids_of_long_ago_are_forgotten(
    name: str, retention: str, updated_ms: int | None, kept: bool
) -> None:
    """By the newest time of an id, in the checkpoint's base or behind it; never by the writer's clock."""
    storage = MemoryStorage("m")
    properties = {"delta_setTransactionRetentionDuration": retention} if retention else {}
    stored(storage, [PROTOCOL, metadata(**properties)], [Txn(name, 5, updated_ms)], [Txn("other", 6, START_MS)])
    for version, clock_ms in ((1, START_MS + 400 * DAY_MS), (2, START_MS), (2, START_MS + 400 * DAY_MS)):
        write_checkpoint(storage, "t", version, clock_ms)
        ids = {body["appId"]: body["version"] for body in bodies(storage, version, "txn")}
        assert ids.pop(name, None) == (5 if kept or version == 1 else None)
        assert ids == ({"other": 6} if version == 2 else {})


@pytest.mark.parametrize("kept_ms", [1_000, 2 * DAY_MS])
def test_producers_go_by_the_topics_own_time(kept_ms: int) -> None:
    storage = MemoryStorage("m")
    made = metadata(tidelog_producer_id_expiration_ms=str(kept_ms))
    ids = [Txn(f"tidelog/producer/{n}/0", n, START_MS - n) for n in (0, kept_ms, kept_ms + 1)]
    stored(storage, [PROTOCOL, made], list(ids))
    write_checkpoint(storage, "t", 1, START_MS)
    assert [body["version"] for body in bodies(storage, 1, "txn")] == [0, kept_ms]


def test_no_checkpoint_holds_what_is_to_be_taken_back() -> None:
    """One is pinned before what tidelog did not write, and none is built on another engine's that holds it."""
    storage = MemoryStorage("m")
    stored(storage, [PROTOCOL, metadata()], [add(0, 0, 4), end_txn(0, 4)])
    others = [{"add": {"path": "theirs.parquet"}}, {"txn": {"appId": "theirs", "version": 1}}, {"commitInfo": {}}]
    for version, lines in ((2, others), (3, [{"commitInfo": {}}])):
        storage.put(f"t/{layout.entry_path(version)}", b"\n".join(map(orjson.dumps, lines)))
    write_checkpoint(storage, "t", 3, START_MS)
    assert [c.version for c in checkpoints_from(storage, "t", 0)] == [1]
    stored(storage, [remove(Add("theirs.parquet", 0, 0, 0, 0, True)), Txn("theirs", -1)], [Txn("a", 1)], first=4)
    theirs = storage.get(f"t/{layout.checkpoint_path(1)}")
    for version in (2, 3):
        table = pq.read_table(pa.BufferReader(theirs)).replace_schema_metadata({})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        storage.put(f"t/{layout.checkpoint_path(version)}", sink.getvalue().to_pybytes())
    write_checkpoint(storage, "t", 5, START_MS)
    assert [b["path"] for b in bodies(storage, 5, "add")] == [add(0, 0, 4).path]
    assert [b["path"] for b in bodies(storage, 5, "remove")] == ["theirs.parquet"]
    for found in checkpoints_from(storage, "t", 0):
        if found.version in (2, 3):
            with pytest.raises(ForeignEntryError, match="Another engine made it"):
                read_checkpoint(storage, "t", found)
        else:
            read_checkpoint(storage, "t", found)


def stored(storage: MemoryStorage, *entries: list[Action], first: int = 0) -> None:
    for version, actions in enumerate(entries, first):
        one = entry(version, *actions)
        assert storage.put_if_absent(f"t/{layout.entry_path(version)}", encode_entry(one.actions, one.info))
