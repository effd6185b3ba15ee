"""Finding and reading checkpoints: stale, missing, broken, of another topic."""

import sys
from collections.abc import Callable
from types import FrameType

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, put_checkpoint, read, values

from tidelog.log.base.errors import CorruptLogError, NotATopicError
from tidelog.log.checkpoints.reading import (
    Checkpoint,
    checkpoints_from,
    newest_checkpoint_version,
    read_checkpoint,
    removed_files,
)
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.log.state.lazy_list import LazyList
from tidelog.log.state.topic_state import TopicState

HINT = f"t/{layout.LAST_CHECKPOINT}"
ENTRIES = 12


def log_with(*checkpoints: int) -> tuple[Lake, FaultyStorage, FakeClock]:
    """A topic of 12 appends with checkpoints; not trimmed."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    for i in range(ENTRIES):
        lake.topic("t").append(values(f"{i}"))
    for version in checkpoints:
        put_checkpoint(storage.inner, "t", version)
    return lake, storage, clock


def hint(storage: FaultyStorage, body: object) -> None:
    storage.inner.put(HINT, body if isinstance(body, bytes) else orjson.dumps(body))


HINTS: dict[str, tuple[object, int]] = {
    "right": ({"version": 10}, 10),
    "gone back": ({"version": 4}, 4),
    "of a checkpoint that is not there": ({"version": 11}, 11),
    "no JSON": (b"{", 10),
    "empty": (b"", 10),
    "a list": ([], 10),
    "no version": ({"size": 1}, 10),
    "a version in words": ({"version": "ten"}, 10),
}


@pytest.mark.parametrize(("body", "first"), HINTS.values(), ids=HINTS)
def test_whatever_the_hint_says_the_topic_opens(body: object, first: int) -> None:
    _, storage, clock = log_with(4, 10)
    hint(storage, body)
    assert next(iter(checkpoints_from(storage, "t", 0))).version == first
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


def test_a_missing_hint_is_made_good_by_a_listing() -> None:
    _, storage, clock = log_with(4, 10)
    storage.inner.delete(HINT)
    assert newest_checkpoint_version(storage, "t") == -1
    found = next(checkpoints_from(storage, "t", 0))
    assert found.version == 10
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


def trimmed(storage: FaultyStorage, floor: int) -> None:
    """What a trim up to `floor` leaves."""
    storage.inner.put_if_absent(f"t/{layout.floor_path(floor)}", b"")
    for found in list(storage.inner.list_after("t/_delta_log")):
        version = layout.version_of(found.path)
        if version is not None and version <= floor:
            storage.inner.delete(found.path)


def test_a_hint_below_the_floor_is_passed_over() -> None:
    _, storage, clock = log_with(4, 10)
    hint(storage, {"version": 4})
    trimmed(storage, 9)
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]
    assert open_lake(storage, clock).topic("t").append(values("more")) == {0: (12, 13)}


def test_a_checkpoint_below_the_floor_that_is_still_there_is_passed_over() -> None:
    """A trim was killed between its deletions: entries after that checkpoint are gone."""
    _, storage, clock = log_with(4, 10)
    old = storage.get(f"t/{layout.checkpoint_path(4)}")
    trimmed(storage, 9)
    storage.inner.put(f"t/{layout.checkpoint_path(4)}", old)
    hint(storage, {"version": 4})
    assert [c.version for c in checkpoints_from(storage, "t", 10)] == [10]
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


def test_a_floor_without_a_checkpoint_past_it_is_told() -> None:
    _, storage, clock = log_with(10)
    trimmed(storage, 9)
    for found in list(storage.inner.list_after("t/_delta_log", "0" * 18)):
        if "checkpoint" in found.path:
            storage.inner.delete(found.path)
    with pytest.raises(CorruptLogError, match=r"floor 9 but no checkpoint past it.*Restore it"):
        open_lake(storage, clock).topic("t")


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def without_footer(data: bytes) -> bytes:
    return data[:-60] + b"\xff" * 52 + data[-8:]


def other_columns(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), sink)
    return bytes(sink.getvalue().to_pybytes())


def no_rows(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pq.read_table(pa.BufferReader(data)).slice(0, 0), sink)
    return bytes(sink.getvalue().to_pybytes())


def only_adds(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    table = pq.read_table(pa.BufferReader(data))
    pq.write_table(table.filter(table["add"].is_valid()), sink)
    return bytes(sink.getvalue().to_pybytes())


UNREADABLE = [lambda _: b"", cut, zeros, without_footer, other_columns]


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_torn_checkpoint_is_passed_over_while_nothing_rests_on_it(damage: Callable[[bytes], bytes]) -> None:
    _, storage, clock = log_with(4, 10)
    path = f"t/{layout.checkpoint_path(10)}"
    storage.inner.put(path, damage(storage.inner.get(path)))
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


@pytest.mark.parametrize("damage", UNREADABLE)
def test_a_torn_checkpoint_that_all_rests_on_is_named_with_what_to_do(damage: Callable[[bytes], bytes]) -> None:
    _, storage, clock = log_with(4, 10)
    trimmed(storage, 9)
    path = f"t/{layout.checkpoint_path(10)}"
    storage.inner.put(path, damage(storage.inner.get(path)))
    with pytest.raises(CorruptLogError, match=r"(?s)0010\.checkpoint\.parquet can't be read.*restore it") as broken:
        open_lake(storage, clock).topic("t")
    assert broken.value.version == 10


@pytest.mark.parametrize("damage", [damage for damage in UNREADABLE if damage is not other_columns])
def test_what_a_torn_checkpoint_says_was_removed_is_refused_likewise(damage: Callable[[bytes], bytes]) -> None:
    _, storage, _ = log_with(4, 10)
    path = f"t/{layout.checkpoint_path(10)}"
    storage.inner.put(path, damage(storage.inner.get(path)))
    with pytest.raises(CorruptLogError, match=r"(?s)0010\.checkpoint\.parquet can't be read"):
        list(removed_files(storage, "t", Checkpoint(10, (path.rpartition("/")[2],))))


@pytest.mark.parametrize("damage", [no_rows, only_adds])
def test_a_checkpoint_that_says_too_little_is_named_with_what_to_do(damage: Callable[[bytes], bytes]) -> None:
    _, storage, clock = log_with(10)
    path = f"t/{layout.checkpoint_path(10)}"
    storage.inner.put(path, damage(storage.inner.get(path)))
    with pytest.raises(CorruptLogError, match=r"version 10 has no metaData or protocol\. Delete it"):
        open_lake(storage, clock).topic("t")
    storage.inner.delete(path)
    storage.inner.delete(HINT)
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


def test_a_checkpoint_of_another_topic_is_refused() -> None:
    lake, storage, clock = log_with()
    lake.create_topic("u")
    for i in range(ENTRIES):
        lake.topic("u").append(values(f"u{i}"))
    put_checkpoint(storage.inner, "u", 10)
    for name in (layout.checkpoint_path(10), layout.LAST_CHECKPOINT):
        storage.inner.put(f"t/{name}", storage.inner.get(f"u/{name}"))
    with pytest.raises(CorruptLogError, match=r"checkpoint of version 10 can't be this topic's.*belongs to topic 'u'"):
        open_lake(storage, clock).topic("t")


def test_a_copied_folder_is_no_other_topic() -> None:
    """With or without a checkpoint: two topics with one id would share their offsets' meaning."""
    for checkpoints in ((), (10,)):
        _, storage, clock = log_with(*checkpoints)
        for found in list(storage.inner.list_after("t/_delta_log")):
            storage.inner.put(found.path.replace("t/", "copy/", 1), storage.inner.get(found.path))
        with pytest.raises(CorruptLogError, match="belongs to topic 't'"):
            open_lake(storage, clock).topic("copy")


def test_a_checkpoint_of_a_table_that_is_no_topic() -> None:
    _, storage, clock = log_with(10)
    path = f"t/{layout.checkpoint_path(10)}"
    rows = pq.read_table(pa.BufferReader(storage.inner.get(path))).to_pylist()
    for row in rows:
        if row["metaData"]:
            row["metaData"]["configuration"] = []
        if row["add"]:
            row["add"]["partitionValues"] = []
    sink = pa.BufferOutputStream()
    schema = pq.read_schema(pa.BufferReader(storage.inner.get(path)))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink)
    storage.inner.put(path, sink.getvalue().to_pybytes())
    with pytest.raises(NotATopicError):
        open_lake(storage, clock).topic("t")


def test_a_checkpoint_in_parts_is_read_whole() -> None:
    _, storage, clock = log_with(10)
    path = f"t/{layout.checkpoint_path(10)}"
    table = pq.read_table(pa.BufferReader(storage.inner.get(path)))
    storage.inner.delete(path)
    for part, at in enumerate((0, 5), 1):
        sink = pa.BufferOutputStream()
        pq.write_table(table.slice(at, 5 if at == 0 else None), sink)
        name = f"t/_delta_log/{10:020d}.checkpoint.{part:010d}.{2:010d}.parquet"
        storage.inner.put(name, sink.getvalue().to_pybytes())
    for body in ({"version": 10, "parts": 2}, {}):
        hint(storage, body)
        assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]
        found = next(checkpoints_from(storage, "t", 0))
        assert len(list(read_checkpoint(storage, "t", found))) == table.num_rows


def test_segments_of_a_checkpoint_stay_columns_until_they_are_asked_for() -> None:
    """What opens a topic of 100,000 segments in a fraction of a second."""
    _, storage, clock = log_with(10)
    found = next(checkpoints_from(storage, "t", 0))
    actions = read_checkpoint(storage, "t", found)
    assert actions.adds is not None
    assert len(actions.adds) == 10
    assert isinstance(open_lake(storage, clock).topic("t").state().live(0), LazyList)


@pytest.mark.parametrize("group_rows", [1, 3, 100])
@pytest.mark.parametrize("statistics", [True, False, ["txn.appId"]])
def test_a_checkpoint_says_the_same_whatever_its_row_groups_and_statistics(
    group_rows: int, statistics: bool | list[str]
) -> None:
    _, storage, _ = log_with(10)
    path = f"t/{layout.LOG_FOLDER}/{10:020d}.checkpoint.parquet"
    table = pq.read_table(pa.BufferReader(storage.get(path)))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, row_group_size=group_rows, write_statistics=statistics)
    before = sorted(map(repr, read_checkpoint(storage, "t", Checkpoint(10, (path.rpartition("/")[2],)))))
    storage.inner.put(path, sink.getvalue().to_pybytes())
    after = sorted(map(repr, read_checkpoint(storage, "t", Checkpoint(10, (path.rpartition("/")[2],)))))
    assert len(after) == len(before) > 10
    assert after == before


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called on the way, Python's and C's."""
    count = 0

    def see(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_no_segment_of_a_checkpoint_is_looked_at_alone() -> None:
    def calls_at(segments: int) -> int:
        lake, storage, _ = memory_lake()
        lake.create_topic("t")
        for _ in range(segments):
            lake.topic("t").append(values("x"))
        put_checkpoint(storage.inner, "t", segments)
        found = next(checkpoints_from(storage, "t", 0))
        return calls_of(lambda: TopicState().restore(segments, read_checkpoint(storage, "t", found)))

    assert calls_at(100) == calls_at(10)
