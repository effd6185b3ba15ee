"""Segments of typed topics: what a file holds, what is read of it, and what of older ones."""

import io
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.logs import START_MS, CountingIds
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed, typing_with

from tidelog.log.base.errors import CorruptSegmentError
from tidelog.log.config.topics_and_lakes import Codec, TopicConfig
from tidelog.log.delta import layout, schema
from tidelog.log.records.checks import to_records
from tidelog.log.segments import reader
from tidelog.log.segments.reader import read_segment
from tidelog.log.segments.restage import restage
from tidelog.log.segments.writer import SegmentWriter, Staged, stats_json, write_small_segment
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage import MemoryStorage, Storage
from tidelog.log.typed.value_typing import Typing

CONFIG = TopicConfig.parse({})
ZSTD = Codec("zstd", None)
VALUES = [prefixed(7, avro_payload(FLIGHT, flight(number))) for number in range(5)]
DERIVE = typing_with({7: FLIGHT}, bytes="derive")
GROWN = typing_with({7: FLIGHT, 8: LATER}, bytes="derive")


def records(values: list[bytes | None], typing: Typing | None = DERIVE) -> pa.Table:
    return to_records(pa.table({"value": pa.array(values, pa.binary())}), "t", CONFIG, START_MS, typing=typing)


def put(storage: Storage, table: pa.Table, typing: Typing | None = DERIVE) -> Segment:
    columns = schema.SEGMENT if typing is None else typing.segment
    written = write_small_segment(table, ZSTD, columns=columns)
    storage.put("t/s.parquet", bytes(written.data))
    count = table.num_rows
    stats = stats_json(count, count - 1, START_MS, START_MS)
    return Segment("s.parquet", 0, 100, 100 + count, len(written.data), 0, stats)


def got(storage: Storage, of: Segment, names: list[str], **more: Any) -> pa.Table:
    start, end = more.pop("between", (100, 10_000))
    return pa.Table.from_batches(list(read_segment(storage, "t", of, start, end, names, **more)))


def metadata(table: pa.Table, *, lasting: bool, typing: Typing = DERIVE) -> dict[str, Any]:
    """{path: what the footer says of the first row group's column}."""
    sink = io.BytesIO()
    writer = SegmentWriter(sink, ZSTD, typing.segment, lasting=lasting)
    writer.write(table)
    writer.close()
    group = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.row_group(0)
    return {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}


def test_rewritten_files_have_bounds_of_values_and_all_say_what_is_derived() -> None:
    staged, rewritten = (metadata(records(VALUES), lasting=lasting) for lasting in (False, True))
    assert set(staged) - set(rewritten) == set()
    for found in (staged, rewritten):
        assert found["value_length"].statistics.null_count == 0
        assert found["value"].statistics is None
    number = rewritten["columns.number"].statistics
    assert (number.min, number.max) == (0, 4)
    assert staged["columns.number"].statistics is None
    assert rewritten["columns.carrier"].statistics.min == "HA"
    assert rewritten["columns.seats.key_value.key"].statistics.max == "none"
    assert rewritten["columns.stops.list.element"].compression == "ZSTD"


def test_values_are_read_as_they_came_and_columns_beside_them() -> None:
    storage, values = MemoryStorage("m"), [*VALUES, None, b"text"]
    of = put(storage, records(values))
    assert got(storage, of, ["value"], typing=DERIVE).column("value").to_pylist() == values
    both = got(storage, of, ["columns", "value"], typing=DERIVE, between=(102, 106))
    assert both.schema.names == ["position", "columns", "value"]
    assert both.column("value").to_pylist() == values[2:6]
    assert [one and one["number"] for one in both.column("columns").to_pylist()] == [2, 3, 4, None]
    stored = got(storage, of, list(DERIVE.segment.names), typing=DERIVE, stored=True)
    assert stored.column("value").to_pylist() == [None] * 6 + [b"text"]


@pytest.mark.parametrize("typing", [DERIVE, typing_with({7: FLIGHT})])
def test_nothing_is_encoded_that_nobody_wants(typing: Typing, monkeypatch: pytest.MonkeyPatch) -> None:
    storage, calls = MemoryStorage("m"), []
    of = put(storage, records(VALUES, typing), typing)
    real = Typing.bytes_of
    monkeypatch.setattr(Typing, "bytes_of", lambda *given: calls.append(1) or real(*given))
    got(storage, of, ["key", "timestamp"], typing=typing)
    got(storage, of, ["columns"], typing=typing)
    got(storage, of, ["value", "columns", "value_length"], typing=typing, stored=True)
    assert not calls
    assert got(storage, of, ["value"], typing=typing).column("value").to_pylist() == VALUES
    assert len(calls) == (typing is DERIVE)


def test_only_where_values_are_derived_their_columns_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, read = MemoryStorage("m"), []
    real = reader._batches
    monkeypatch.setattr(reader, "_batches", lambda *given: read.append(given[2]) or real(*given))
    for typing, names in (
        (typing_with({7: FLIGHT}), ["value"]),
        (DERIVE, ["value", "value_schema", "value_length", "columns"]),
    ):
        got(storage, put(storage, records(VALUES, typing), typing), ["value"], typing=typing)
        assert read.pop() == names


def test_a_plain_segment_of_a_table_that_got_types_later_has_nulls() -> None:
    storage = MemoryStorage("m")
    for values in (VALUES, VALUES * 100):  # a tiny segment, and one that Arrow wrote
        of = put(storage, records(values, None), None)
        found = got(storage, of, ["value", "value_schema", "value_length", "columns"], typing=DERIVE)
        assert found.column("value").to_pylist() == values
        assert found.column("columns").null_count == len(values)
        assert got(storage, of, ["columns"], typing=DERIVE).num_rows == len(values)
        assert got(storage, of, ["value"], typing=DERIVE).column("value").to_pylist() == values


def test_a_segment_from_before_the_table_grew_lacks_fields() -> None:
    storage = MemoryStorage("m")
    of = put(storage, records(VALUES))
    found = got(storage, of, ["value", "columns"], typing=GROWN)
    assert found.column("value").to_pylist() == VALUES
    assert found.column("columns").type == GROWN.columns
    assert [one["cancelled"] for one in found.column("columns").to_pylist()] == [None] * 5
    with pytest.raises(ValueError, match="which is more than"):
        write_small_segment(records([*VALUES, prefixed(8, b"")], GROWN), ZSTD, columns=DERIVE.segment)


def test_derived_values_of_another_length_are_corrupt() -> None:
    storage, table = MemoryStorage("m"), records(VALUES)
    at = table.schema.get_field_index("value_length")
    wrong = table.set_column(at, table.schema.field(at), pa.array([9, 9, 9, 9, 9], pa.int32()))
    of = put(storage, wrong)
    with pytest.raises(CorruptSegmentError, match="not as long as they were"):
        got(storage, of, ["value"], typing=DERIVE)
    of = put(storage, records(VALUES))
    with pytest.raises(CorruptSegmentError, match="schema 7, which the table does not know"):
        got(storage, of, ["value"], typing=replace(DERIVE, writers={}))


def test_numbers_that_are_none_and_zeros_of_both_signs_keep_their_bits() -> None:
    text = {"type": "record", "name": "R", "fields": [{"name": "d", "type": "double"}, {"name": "f", "type": "float"}]}
    typing, storage = typing_with({-1: text}, bytes="derive"), MemoryStorage("m")
    doubles = [0x7FF8000000000000 + n for n in range(40)] + [0xFFF8000000000001, 0x7FF0000000000001, 0, 1 << 63]
    values = [
        struct.pack("<Q", one) + struct.pack("<I", (0x7FC00000 + n) if n % 2 else n << 31 & 0xFFFFFFFF)
        for n, one in enumerate(doubles)
    ] * 3
    table = records(values, typing)
    assert table.column("value").null_count == len(values)
    sink = io.BytesIO()
    writer = SegmentWriter(sink, ZSTD, typing.segment, lasting=True)
    writer.write(table)
    writer.close()
    storage.put("t/s.parquet", sink.getvalue())
    stats = stats_json(len(values), len(values) - 1, START_MS, START_MS)
    of = Segment("s.parquet", 0, 100, 100 + len(values), len(sink.getvalue()), 0, stats)
    assert got(storage, of, ["value"], typing=typing).column("value").to_pylist() == values


@pytest.mark.parametrize("before", [None, DERIVE])
def test_what_is_staged_again_keeps_its_columns(before: Typing | None) -> None:
    storage, path = MemoryStorage("m"), layout.segment_path(0, 1, "id")
    of = put(storage, records(VALUES, before), before)
    storage.put(f"t/{path}", storage.get("t/s.parquet"))
    staged = Staged(0, path, 5, of.size, START_MS, START_MS, 1, "id")
    (again,) = restage(
        storage, "t", [staged], version=2, codec=ZSTD, ids=CountingIds(), timestamp_ms=START_MS + 1, typing=GROWN
    )
    found = got(storage, replace(of, path=again.path, size=again.size), list(GROWN.segment.names), typing=GROWN)
    assert found.column("value").to_pylist() == VALUES
    assert found.column("value_length").null_count == (0 if before else 5)
    assert found.column("timestamp").unique().cast(pa.int64()).to_pylist() == [(START_MS + 1) * 1000]
