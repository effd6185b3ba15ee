"""Every byte of every kind of file that tidelog writes, with a bit of it turned: no reader gives a wrong answer."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.logs import START_MS, CountingIds, memory_lake, put_checkpoint, values
from support.row_tables import NAME, WORDS, Table, put

from tidelog.check.records import DeepCheck
from tidelog.log.base.errors import CorruptLogError, CorruptSegmentError
from tidelog.log.checkpoints.reading import checkpoints_from, read_checkpoint
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import schema
from tidelog.log.rows.files import file_reader
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.restage import restage
from tidelog.log.segments.tiny_parquet import write_tiny
from tidelog.log.segments.writer import SegmentWriter, Staged, stats_json
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage import MemoryStorage, Storage

REFUSED = "refused"
PATH = "t/partition=0/0-a.parquet"


@dataclass(frozen=True)
class Rotting:
    """A file, and what is read of it: an answer, or `REFUSED`."""

    storage: Storage
    path: str
    answer: Callable[[], Any]

    def with_turned_bits(self, step: int = 1) -> Iterator[tuple[int, Any]]:
        """(byte, answer) for a bit of each `step`th byte."""
        sound = self.storage.get(self.path)
        for at in range(0, len(sound), step):
            turned = bytearray(sound)
            turned[at] ^= 1 << at % 8
            self.storage.put(self.path, bytes(turned))
            yield at, self.answer()
        self.storage.put(self.path, sound)


def or_refused(read: Callable[[], Any], *errors: type[Exception]) -> Any:
    try:
        return read()
    except errors:
        return REFUSED


def a_segment(count: int, codec: str, spread: int = 1, *, tiny: bool = False) -> tuple[Storage, Segment]:
    """A segment whose records have every kind of column; keys repeat where there are many. `spread`: with gaps.

    `tiny`: as `write_tiny` writes it, without headers, so that it is read without Arrow's reader.
    """
    positions = np.arange(count, dtype=np.int64) * spread
    columns = {
        "key": pa.array([b"k%d" % (i % 5) for i in range(count)], pa.binary()),
        "value": pa.array([b"account-%04d: 1000000 EUR;" % i for i in range(count)], pa.binary()),
        "headers": pa.array([[("h", b"%d" % i)] if i % 2 else None for i in range(count)], schema.HEADERS),
        "timestamp": pa.array([START_MS * 1000 + i for i in range(count)], pa.int64()).cast(schema.TIMESTAMP),
        "timestamp_type": pa.array([0] * count, pa.int32()),
    }
    storage = MemoryStorage("m")
    if tiny:
        columns["headers"] = pa.nulls(count, schema.HEADERS)
        written = write_tiny(pa.table(columns), Codec(codec, None))
        storage.put(PATH, written.data)
        stats = stats_json(count, count - 1, START_MS, START_MS)
        return storage, Segment(PATH.removeprefix("t/"), 0, 0, count, len(written.data), START_MS, stats)
    with storage.create(PATH) as file:
        writer = SegmentWriter(file, Codec(codec, None))
        writer.write(pa.table(columns), positions)
        writer.close()
    last, end = int(positions[-1]), count * spread
    stats = stats_json(count, last, writer.min_timestamp_ms, writer.max_timestamp_ms)
    return storage, Segment(PATH.removeprefix("t/"), 0, 0, end, writer.size, START_MS, stats)


SEGMENTS = {
    "small": partial(a_segment, 9, "none"),
    "compressed": partial(a_segment, 9, "zstd"),
    "keys in a dictionary": partial(a_segment, 110, "snappy"),
    "compacted": partial(a_segment, 9, "none", 3),
    "tiny": partial(a_segment, 9, "none", tiny=True),
    "tiny and compressed": partial(a_segment, 9, "zstd", tiny=True),
}
each_segment = pytest.mark.parametrize("of", SEGMENTS.values(), ids=SEGMENTS)


@each_segment
def test_a_segment(of: Callable[[], tuple[Storage, Segment]]) -> None:
    storage, segment = of()

    def read(start: int, end: int) -> Any:
        batches = read_segment(storage, "t", segment, start, end, schema.SEGMENT.names)
        return pa.Table.from_batches(batches, schema.SEGMENT).to_pydict()

    for start, end in ((0, segment.end), (segment.end // 2, segment.end)):
        sound = read(start, end)
        rotting = Rotting(storage, PATH, lambda: or_refused(lambda: read(start, end), CorruptSegmentError))  # noqa: B023
        answers = list(rotting.with_turned_bits())
        assert [at for at, answer in answers if answer not in (sound, REFUSED)] == []
        assert sum(answer == REFUSED for _, answer in answers) > 0.7 * len(answers)


@each_segment
def test_the_deep_check_finds_what_readers_refuse(of: Callable[[], tuple[Storage, Segment]]) -> None:
    storage, segment = of()
    state = TopicState(segments={0: [segment]}, ends={0: segment.end})

    def checked() -> bool:
        return not list(DeepCheck(storage, "t", False, None).run(state))

    def read() -> bool:
        return bool(list(read_segment(storage, "t", segment, 0, segment.end, schema.SEGMENT.names)))

    assert checked()
    rotting = Rotting(storage, PATH, lambda: (checked(), or_refused(read, CorruptSegmentError)))
    assert [at for at, answer in rotting.with_turned_bits(3) if answer == (True, REFUSED)] == []


def test_a_segment_that_is_staged_again() -> None:
    storage, segment = a_segment(9, "zstd")
    staged = Staged(0, segment.path, 9, segment.size, 0, 0, 0, "id")

    def again() -> Any:
        (new,) = restage(storage, "t", [staged], version=1, codec=Codec("none", None), ids=CountingIds())
        return storage.get(f"t/{new.path}")

    sound = again()
    answers = [answer for _, answer in Rotting(storage, PATH, lambda: or_refused(again, CorruptSegmentError))
               .with_turned_bits(3)]  # fmt: skip
    assert set(answers) == {sound, REFUSED}


@pytest.mark.parametrize("rows", [1, 200], ids=["a row", "many rows"])
def test_a_file_of_rows(rows: int) -> None:
    table = Table()
    put(table.log, **{f"w{i}": i for i in range(rows)})
    (path,) = table.files()
    (file,) = table.log.door.state.files
    read = file_reader(table.storage, NAME, WORDS)
    sound = read(file)
    rotting = Rotting(table.storage, path, lambda: or_refused(lambda: read(file), CorruptSegmentError))
    answers = [answer for _, answer in rotting.with_turned_bits(1 if rows == 1 else 3)]
    assert all(answer in (sound, REFUSED) for answer in answers)
    assert answers.count(REFUSED) > 0.7 * len(answers)


def test_a_checkpoint() -> None:
    lake, storage, _ = memory_lake()
    lake.create_topic("t")
    for i in range(12):
        lake.topic("t").append(values(f"{i}"))
    put_checkpoint(storage, "t", 10)
    (checkpoint,) = checkpoints_from(storage, "t", 0)

    def read() -> TopicState:
        state = TopicState()
        state.restore(10, read_checkpoint(storage, "t", checkpoint))
        return replace(state, segments={p: [*live] for p, live in state.segments.items()})

    sound = read()
    path = f"t/_delta_log/{checkpoint.files[0]}"
    rotting = Rotting(storage, path, lambda: or_refused(read, CorruptLogError))
    answers = [answer for _, answer in rotting.with_turned_bits(11)]
    assert all(answer in (sound, REFUSED) for answer in answers)
    assert answers.count(REFUSED) > 0.5 * len(answers)


# --- more than a bit ---------------------------------------------------------------------------------------


def test_another_file_of_as_many_records_is_told_by_its_size() -> None:
    storage, segment = a_segment(9, "none")
    other, _ = a_segment(9, "zstd")
    storage.put(PATH, other.get(PATH))
    with pytest.raises(CorruptSegmentError, match=rf"it has \d+ bytes, its log entry says {segment.size}"):
        list(read_segment(storage, "t", segment, 0, 9, ["value"]))


@pytest.mark.parametrize("block", [512, 4096])
def test_blocks_of_zeros_anywhere_are_refused(block: int) -> None:
    """What a disk gives back for a sector that it lost."""
    storage, segment = a_segment(2_000, "none")
    sound = storage.get(PATH)
    assert len(sound) > 8 * block
    for at in range(0, len(sound), block):
        storage.put(PATH, sound[:at] + bytes(len(sound[at : at + block])) + sound[at + block :])
        with pytest.raises(CorruptSegmentError):
            list(read_segment(storage, "t", segment, 0, 2_000, schema.SEGMENT.names))


def test_a_segment_without_its_seal_is_refused() -> None:
    storage, segment = a_segment(9, "none")
    sound = storage.get(PATH)
    footer = int.from_bytes(sound[-8:-4], "little") + 8
    storage.put(PATH, sound[: -footer - 8] + sound[-footer:])
    unsealed = replace(segment, size=len(sound) - 8)
    with pytest.raises(CorruptSegmentError, match="its footer is not the one that it was sealed with"):
        list(read_segment(storage, "t", unsealed, 0, 9, ["value"]))
