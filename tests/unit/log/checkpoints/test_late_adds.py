"""Segments of a checkpoint that are decoded when they are asked for: the same as those that are decoded at once."""

import io
import re
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import FaultyStorage
from support.logs import FakeClock, memory_lake, open_lake, put_checkpoint, read, values

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.checkpoints import late_adds, rows, writing
from tidelog.log.checkpoints.late_adds import are_numbers, numbers_of
from tidelog.log.checkpoints.reading import Checkpoint, read_checkpoint
from tidelog.log.delta import layout
from tidelog.log.state.add_columns import AddColumns, CheckpointActions, FileColumns, FileGroup, decoded_group
from tidelog.log.topic import Topic

ENTRIES = 12
PATH = f"t/{layout.checkpoint_path(ENTRIES)}"
NAME = PATH.rpartition("/")[2]


def worth_a_group(patch: pytest.MonkeyPatch, count: int) -> None:
    """Rows of `add` that are read late where they have a row group of their own."""
    for module in (rows, late_adds):
        patch.setattr(module, "WORTH_A_GROUP", count)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> tuple[FaultyStorage, FakeClock]:
    """A topic of 12 appends, and a checkpoint of four row groups: three of segments, and one of all else."""
    worth_a_group(monkeypatch, 1)
    monkeypatch.setattr(writing, "_GROUP_ROWS", 4)
    lake, storage, clock = memory_lake()
    lake.create_topic("t")
    for i in range(ENTRIES):
        lake.topic("t").append(values(f"{i}"))
        if i % 4 == 3:
            put_checkpoint(storage.inner, "t", i + 1)
    assert pq.read_metadata(pa.BufferReader(storage.inner.get(PATH))).num_row_groups == 4
    return storage, clock


def groups(topic: Topic) -> tuple[FileGroup, ...]:
    """The groups that the topic's segments are in."""
    adds: AddColumns = topic.state().live(0).make.adds  # type: ignore[attr-defined]
    return adds.groups


def decoded(topic: Topic) -> list[bool]:
    return [group.decoded is not None for group in groups(topic)]


def actions(storage: FaultyStorage) -> CheckpointActions:
    return read_checkpoint(storage, "t", Checkpoint(ENTRIES, (NAME,)))


def test_only_the_segments_that_are_read_are_decoded(log: tuple[FaultyStorage, FakeClock]) -> None:
    topic = open_lake(*log).topic("t")
    assert topic.offsets() == {0: (0, ENTRIES)}
    assert decoded(topic) == [False, False, False]
    assert [r for batch in topic.read(0, 9, 10) for r in batch.column("value").to_pylist()] == [b"9"]
    assert decoded(topic) == [False, False, True]
    assert read(open_lake(*log), "t") == [str(i) for i in range(ENTRIES)]


def test_to_append_one_segment_is_looked_at(log: tuple[FaultyStorage, FakeClock]) -> None:
    topic = open_lake(*log).topic("t")
    assert topic.append(values("more")) == {0: (ENTRIES, ENTRIES + 1)}
    assert decoded(topic) == [False, False, True]


def test_what_is_decoded_late_is_what_is_decoded_at_once(
    log: tuple[FaultyStorage, FakeClock], monkeypatch: pytest.MonkeyPatch
) -> None:
    late = list(actions(log[0]))
    worth_a_group(monkeypatch, 1_000)
    at_once = actions(log[0])
    assert at_once.adds is not None
    assert all(group.decoded is not None for group in at_once.adds.groups)
    assert sorted(map(repr, late)) == sorted(map(repr, at_once))
    assert len(late) > ENTRIES


def without_sums(data: bytes) -> bytes:
    """The same checkpoint by another writer."""
    sink, table = pa.BufferOutputStream(), pq.read_table(pa.BufferReader(data))
    pq.write_table(table.replace_schema_metadata({rows.MARK: b"2"}), sink, row_group_size=4)
    return bytes(sink.getvalue().to_pybytes())


def test_without_sums_of_their_bytes_they_are_decoded_at_once(log: tuple[FaultyStorage, FakeClock]) -> None:
    storage, clock = log
    storage.inner.put(PATH, without_sums(storage.inner.get(PATH)))
    topic = open_lake(storage, clock).topic("t")
    topic.state()
    assert decoded(topic) == [True] * len(groups(topic))
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]


def test_a_row_group_that_lies_past_the_end_is_not_read() -> None:
    """Its size is the footer's word, and no more memory is taken than the file has bytes."""
    for first, size in ((4, 97), (4, 2**60), (101, 0), (-1, 1)):
        chunk = SimpleNamespace(data_page_offset=first, has_dictionary_page=False, total_compressed_size=size)
        with pytest.raises(OSError, match="past the end"):
            late_adds._GroupBytes(io.BytesIO(b"x" * 100), [chunk])  # type: ignore[list-item]


def test_what_is_not_of_the_row_group_can_not_be_read() -> None:
    chunk = SimpleNamespace(data_page_offset=4, has_dictionary_page=False, total_compressed_size=10)
    held = late_adds._GroupBytes(io.BytesIO(b"x" * 100), [chunk])  # type: ignore[list-item]
    with pytest.raises(OSError, match="from 0 to 8 are none of the row group"):
        held.read_range("", 0, 8, None)


def test_a_turned_bit_is_seen_when_the_checkpoint_is_read_and_not_later(log: tuple[FaultyStorage, FakeClock]) -> None:
    storage, clock = log
    whole = storage.inner.get(PATH)
    (end,) = {pq.read_metadata(pa.BufferReader(whole)).row_group(3).column(0).data_page_offset}
    for at in range(4, end, 61):
        storage.inner.put(PATH, whole[:at] + bytes((whole[at] ^ 16,)) + whole[at + 1 :])
        with pytest.raises(CorruptLogError, match="can't be read"):
            actions(storage)
    assert read(open_lake(storage, clock), "t") == [str(i) for i in range(ENTRIES)]  # by an older one


def file_group(first: int, count: int, *, late: bool) -> FileGroup:
    """A group of rows that say their number."""
    numbers = np.arange(first, first + count)
    paths, stats = (pa.array([f"{kind}{i}" for i in numbers.tolist()], pa.string()) for kind in ("path", "stats"))
    columns = FileColumns(paths, numbers, numbers * 2, pa.array([True] * count, pa.bool_()), stats)
    return FileGroup(count, first + count - 1, lambda: columns) if late else decoded_group(columns)


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), min_size=1, max_size=4), st.data())
def test_rows_of_groups_are_as_those_of_one_table(sizes: list[tuple[int, bool]], data: st.DataObject) -> None:
    made, count = [], 0
    for size, late in sizes:
        made.append(file_group(count, size, late=late))
        count += size
    numbers = np.arange(count)
    adds = AddColumns(numbers, numbers, numbers + 1, tuple(made))
    asked = data.draw(st.lists(st.integers(0, count - 1), unique=True))
    expected = [(f"path{i}", i, i, i + 1, i, 2 * i, True, f"stats{i}") for i in asked]
    some = adds.take(np.array(asked, np.int64))
    assert list(adds.values(np.array(asked, np.int64))) == expected
    assert list(some.values(np.arange(len(asked)))) == expected
    assert adds.named("h1").tolist() == [i for i in range(count) if str(i).startswith("1")]


@given(st.lists(st.one_of(st.from_regex(r"[0-9]{1,18}", fullmatch=True), st.text(max_size=20))), st.integers(0, 3))
def test_texts_are_taken_for_numbers_by_their_digits_alone(texts: list[str], start: int) -> None:
    expected = all(re.fullmatch("[0-9]{1,18}", text) for text in texts[start:])
    assert are_numbers(pa.array(texts, pa.string()).slice(start)) == expected


def test_what_is_missing_is_no_number() -> None:
    assert not are_numbers(pa.array(["1", None]))
    assert are_numbers(pa.array([], pa.string()))


DIGITS = st.sampled_from(["1", "22", "x"])
MAPS = st.lists(st.none() | st.lists(st.tuples(st.sampled_from("abc"), st.none() | DIGITS), max_size=4), max_size=9)


@given(MAPS, st.integers(0, 4), st.integers(0, 9))
@pytest.mark.parametrize("names", [pa.string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_the_number_of_a_key_in_each_map(
    names: pa.DataType, maps: list[list[tuple[str, str | None]] | None], first: int, count: int
) -> None:
    looked_at = maps[first : first + count]
    columns = pa.array(maps, pa.map_(pa.string(), pa.string()))
    columns = pa.MapArray.from_arrays(columns.offsets, columns.keys.cast(names), columns.items, mask=columns.is_null())
    numbers = numbers_of(columns.slice(first, count), "b", "a")
    values_of = [[value for _, value in one or ()] for one in looked_at]
    keys_of = [[key for key, _ in one or ()] for one in looked_at]
    sound = all(one is not None for one in looked_at) and not {None, "x"} & {v for some in values_of for v in some}
    if not sound or not all(keys.count(key) == 1 for keys in keys_of for key in "ab"):
        assert numbers is None
    else:
        assert numbers is not None
        assert [column.tolist() for column in numbers] == [[int(dict(one)[key]) for one in looked_at] for key in "ba"]
