"""Broken lakes whose log reads well: what it says, its configuration, its files and its records are corrupt."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from support.corruptible_lakes import CorruptibleLake, Line, columns
from support.corruptions import CHECKPOINT, ENTRY, HOUR_S, corruption, without

from tidelog.check.lake import Kind
from tidelog.log.delta.schema import HEADERS


def said(change: Callable[[list[Line]], Any]) -> CorruptibleLake:
    """A lake whose state is what a corrupt checkpoint says: nothing older is kept to compare it with."""
    return CorruptibleLake(2).checkpoint(2).trim().edit_checkpoint(2, change)


def new_add(partition: int, base: int, end: int | None, path: str = "") -> Callable[[list[Line]], None]:
    """One more segment in a checkpoint. Its file is a copy, so that nothing is missing."""

    def change(rows: list[Line]) -> None:
        first = next(r for r in rows if r["add"])
        body = {
            **first["add"],
            "partitionValues": [("partition", str(partition)), ("base_offset", str(base))],
            "tags": None if end is None else [("tidelog.end", str(end))],
        }
        rows.append({**dict.fromkeys(first), "add": {**body, "path": path or f"partition={partition}/0-new.parquet"}})

    return change


def with_file(corruptible: CorruptibleLake, path: str) -> CorruptibleLake:
    return corruptible.put(path, corruptible.get(corruptible.segment().path))


def txn(app_id: str, version: int) -> Callable[[list[Line]], None]:
    """One more transaction id in a checkpoint, in place of one of the same name."""

    def change(rows: list[Line]) -> None:
        rows[:] = [r for r in rows if not (r["txn"] and r["txn"]["appId"] == app_id)]
        rows.append({**dict.fromkeys(rows[0]), "txn": {"appId": app_id, "version": version, "lastUpdated": None}})

    return change


# --- what the log says -----------------------------------------------------------------------------------------

# base offsets of partition 0:   [0, 2) [2, 4)   end 4, start 0
corruption(Kind.COVERAGE_GAP, "partition 0, offsets 0 to 2")(lambda: said(without("add", 0)))
corruption(Kind.COVERAGE_GAP, "partition 0, offsets 2 to 4")(lambda: said(without("add", 2)))
corruption(Kind.COVERAGE_GAP, "partition 0, offsets 4 to 9")(lambda: said(txn("tidelog/end/0", 9)))


@corruption(Kind.SEGMENTS_OVERLAP, "partition 0, offset 2")
def a_segment_given_twice() -> CorruptibleLake:
    corruptible = CorruptibleLake(2)
    path = "partition=0/0-new.parquet"
    with_file(corruptible, path)
    return corruptible.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 2, 4))


@corruption(Kind.SEGMENTS_OVERLAP, "partition 0, offset 1")
def a_segment_across_two() -> CorruptibleLake:
    corruptible = with_file(CorruptibleLake(2), "partition=0/0-new.parquet")
    return corruptible.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 1, 3))


@corruption(Kind.END_BELOW_SEGMENTS, "partition 0")
def an_end_that_fell() -> CorruptibleLake:
    return said(txn("tidelog/end/0", 3))


corruption(Kind.START_PAST_END, "partition 0", Kind.SEGMENT_BELOW_START)(lambda: said(txn("tidelog/start/0", 5)))
corruption(Kind.START_PAST_END, "partition 0")(lambda: said(txn("tidelog/start/0", -1)))
corruption(Kind.CLEAN_PAST_END, "partition 0")(lambda: said(txn("tidelog/clean/0", 5)))
corruption(Kind.SEGMENT_BELOW_START, "partition=0/")(lambda: said(txn("tidelog/start/0", 2)))


@corruption(Kind.OFFSETS_FELL, "partition 0", Kind.ENTRY_GAP_PASSED, Kind.END_BELOW_SEGMENTS)
def offsets_that_fell_between_two_checkpoints() -> CorruptibleLake:
    corruptible = CorruptibleLake(5).checkpoint(2).trim().checkpoint(5).delete(ENTRY.format(4))
    return corruptible.edit_checkpoint(5, txn("tidelog/end/0", 5))


@corruption(Kind.SEGMENT_EMPTY, "partition=0/")
def a_segment_of_nothing() -> CorruptibleLake:
    corruptible = with_file(CorruptibleLake(2), "partition=0/0-new.parquet")
    return corruptible.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 4, 4))


for stats in (None, "", "[]", '{"numRecords":"2"}', "{}", '{"numRecords":3}', '{"numRecords":-1}'):
    corruption(Kind.SEGMENT_STATS_WRONG, "partition=0/")(
        lambda stats=stats: said(lambda rows: next(r["add"] for r in rows if r["add"]).update(stats=stats))  # type: ignore[misc]
    )
corruption(Kind.SEGMENT_STATS_WRONG, "partition=0/")(
    lambda: CorruptibleLake().edit_add(3, stats={"minValues": {"timestamp": "yesterday"}})
)


@corruption(Kind.FILE_TWICE, "partition=0/", Kind.SEGMENTS_OVERLAP)
def a_file_in_the_table_twice() -> CorruptibleLake:
    return said(lambda rows: rows.append(next(r for r in rows if r["add"])))


@corruption(Kind.PARTITION_UNKNOWN, "partition 7")
def a_partition_that_is_not_there() -> CorruptibleLake:
    return said(txn("tidelog/end/7", 2))


@corruption(Kind.DELETED_WITH_SEGMENTS, "topic")
def a_deleted_topic_with_segments() -> CorruptibleLake:
    def mark(rows: list[Line]) -> None:
        body = next(r["metaData"] for r in rows if r["metaData"])
        body["configuration"].append(("tidelog.deleted", "true"))

    return said(mark)


# --- configuration ---------------------------------------------------------------------------------------------


def table_says(**fields: Any) -> CorruptibleLake:
    return CorruptibleLake().edit(0, lambda ls: ls[1]["metaData"].update(fields))


corruption(Kind.SCHEMA_WRONG, "_delta_log")(lambda: table_says(schemaString="{}"))
corruption(Kind.SCHEMA_WRONG, "_delta_log")(lambda: table_says(partitionColumns=[]))
corruption(Kind.CONFIG_INVALID, "retention.ms")(lambda: CorruptibleLake().edit_property("tidelog.retention.ms", "soon"))
corruption(Kind.CONFIG_INVALID, "no.such.key")(lambda: CorruptibleLake().edit_property("tidelog.no.such.key", "1"))
corruption(Kind.CONFIG_INVALID, "configuration")(
    lambda: CorruptibleLake(max_compaction_lag_ms="5").edit_property("tidelog.min.compaction.lag.ms", "6")
)
corruption(Kind.PROPERTY_WRONG, "delta.enableExpiredLogCleanup")(
    lambda: CorruptibleLake().edit_property("delta.enableExpiredLogCleanup", "true")
)


# --- files -----------------------------------------------------------------------------------------------------


@corruption(Kind.SEGMENT_MISSING, "partition=0/")
def a_segment_gone() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    return corruptible.delete(corruptible.segment().path)


@corruption(Kind.SEGMENT_MISSING, "file:")
def a_segment_elsewhere() -> CorruptibleLake:
    return CorruptibleLake().edit(3, lambda ls: ls[0]["add"].update(path="file:///elsewhere/x.parquet"))


@corruption(Kind.SEGMENT_SIZE_WRONG, "partition=0/")
def a_segment_cut() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    path = corruptible.segment().path
    return corruptible.put(path, corruptible.get(path)[:-50])


@corruption(Kind.ORPHANS, "folder")
def a_file_that_was_never_committed() -> CorruptibleLake:
    corruptible = with_file(CorruptibleLake(), "partition=0/2-lost.parquet")
    corruptible.clock.pass_s(HOUR_S + 1)
    return corruptible


@corruption(Kind.IN_FLIGHT, "folder")
def a_file_that_is_about_to_be_committed() -> CorruptibleLake:
    return with_file(CorruptibleLake(), "partition=0/2-new.parquet")


@corruption(Kind.NAME_TAKEN, "_delta_log/00000000000000000004.json")
def what_is_no_file_where_the_next_entry_goes() -> CorruptibleLake:
    corruptible = CorruptibleLake()
    taken = {"orders/_delta_log": ["00000000000000000004.json", "_sidecars"]}
    corruptible.storage.strangers = lambda folder: taken.get(folder, [])  # type: ignore[attr-defined]
    return corruptible


@corruption(Kind.TEMPORARY_FILES, "folder")
def what_a_crash_of_deltalake_left() -> CorruptibleLake:
    corruptible = CorruptibleLake().put(f"{CHECKPOINT.format(2)}#1", b"half")
    corruptible.clock.pass_s(HOUR_S + 1)
    return corruptible


# --- records -----------------------------------------------------------------------------------------------------


def rewritten(change: Callable[[pa.Table], pa.Table], **config: str) -> CorruptibleLake:
    return CorruptibleLake(**config).replace_segment(change)


def deep(kind: Kind, *also: Kind) -> Callable[[Callable[[], CorruptibleLake]], None]:
    return corruption(kind, "partition=0/", *also, deep=True)


def garbled(at: slice, by: bytes) -> CorruptibleLake:
    """A segment of the right size with other bytes in it."""
    corruptible = CorruptibleLake()
    path = corruptible.segment().path
    data = bytearray(corruptible.get(path))
    data[at] = by
    return corruptible.put(path, bytes(data))


def time(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


deep(Kind.SEGMENT_UNREADABLE)(lambda: garbled(slice(-4, None), b"1RAP"))
deep(Kind.SEGMENT_UNREADABLE)(lambda: garbled(slice(4, 200), b"\xff" * 196))
deep(Kind.SEGMENT_SCHEMA_WRONG)(lambda: rewritten(lambda t: t.drop_columns(["headers"])))
deep(Kind.SEGMENT_SCHEMA_WRONG)(lambda: rewritten(lambda t: t.append_column("more", pa.nulls(2, pa.int32()))))
deep(Kind.SEGMENT_SCHEMA_WRONG)(lambda: rewritten(lambda t: t.set_column(1, "key", t.column("key").cast(pa.string()))))
deep(Kind.SEGMENT_ROWS_WRONG)(lambda: rewritten(lambda t: t.slice(0, 1)))
deep(Kind.POSITIONS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[1, 0])))
deep(Kind.POSITIONS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[0, 0])))
deep(Kind.POSITIONS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[0, 2])))
deep(Kind.POSITIONS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[-1, 0])))
deep(Kind.POSITIONS_WRONG)(lambda: CorruptibleLake().edit_add(1, stats={"maxValues": {"position": 0}}))
deep(Kind.TIMESTAMPS_OUTSIDE_STATS)(lambda: rewritten(lambda t: columns(t, timestamp=[time(1), time(2)])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[0, None])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, timestamp_type=[0, None])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, timestamp=[None, None])))
deep(Kind.NULLS_WRONG)(
    lambda: rewritten(lambda t: columns(t, headers=pa.array([[{"key": None, "value": b"v"}], None], HEADERS)))
)
TYPED = {
    "value_columns": "avro",
    "value_schema": '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}',
    "value_bytes": "derive",
}


def typed(**changed: list[Any]) -> CorruptibleLake:
    """A typed topic, of whose first segment some columns are replaced; it derived the values b"a" and b"b"."""

    def change(table: pa.Table) -> pa.Table:
        assert table.column("value_length").to_pylist() == [1, 1]
        for name, new in changed.items():
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.schema.field(at), [pa.array(new, table.schema.field(at).type)])
        return table

    return rewritten(change, **TYPED)


deep(Kind.VALUES_WRONG)(lambda: typed(value_length=[9, 1]))
deep(Kind.VALUES_WRONG)(lambda: typed(value_length=[None, 1]))
deep(Kind.VALUES_WRONG)(lambda: typed(value=[b"a", None]))
deep(Kind.VALUES_WRONG)(lambda: typed(value_schema=[-2, -1]))
deep(Kind.VALUES_WRONG)(lambda: typed(value_schema=[None, -1], value=[b"a", None], value_length=[None, 1]))
deep(Kind.VALUES_WRONG)(lambda: typed(columns=[None, {"n": 1}]))
deep(Kind.VALUES_WRONG)(lambda: typed(columns=[{"n": None}, {"n": 1}]))
deep(Kind.SEGMENT_SCHEMA_WRONG)(lambda: rewritten(lambda t: t.drop_columns(["value_length"]), **TYPED))
deep(Kind.SEGMENT_SCHEMA_WRONG)(lambda: rewritten(lambda t: t.append_column("m", pa.nulls(2, pa.int32())), **TYPED))
deep(Kind.KEY_MISSING)(lambda: rewritten(lambda t: columns(t, key=[b"k", None]), cleanup_policy="compact"))
deep(Kind.APPEND_TIME_FELL)(
    lambda: rewritten(
        lambda t: columns(t, timestamp=[t.column("timestamp")[0].as_py(), time(1)]),
        message_timestamp_type="LogAppendTime",
    ).edit(1, lambda ls: ls[0]["add"].update(stats='{"numRecords":2}'))
)


@deep(Kind.APPEND_TIME_FELL)
def append_time_that_falls_from_segment_to_segment() -> CorruptibleLake:
    corruptible = CorruptibleLake(2, message_timestamp_type="LogAppendTime")
    corruptible.replace_segment(lambda t: columns(t, timestamp=[time(2_000_000_000)] * 2))
    return corruptible.edit(1, lambda ls: ls[0]["add"].update(stats='{"numRecords":2}'))


def typed_table(change: Callable[[Line], None]) -> CorruptibleLake:
    """A typed topic whose table says other things of its values than its configuration."""

    def edit(lines: list[Line]) -> None:
        change(next(line for line in lines if "metaData" in line)["metaData"])

    return CorruptibleLake(0, **TYPED).edit(0, edit)


@corruption(Kind.VALUE_SCHEMAS_WRONG, "tidelog.value.schemas")
def a_schema_that_is_none() -> CorruptibleLake:
    broken = '[{"id":-1,"type":"AVRO","schema":"no schema"}]'
    return typed_table(lambda table: table["configuration"].update({"tidelog.value.schemas": broken}))


@corruption(Kind.VALUE_SCHEMAS_WRONG, "columns")
def a_column_that_no_schema_has() -> CorruptibleLake:
    return typed_table(
        lambda table: table.update(schemaString=table["schemaString"].replace('"name":"n"', '"name":"m"'))
    )


@corruption(Kind.VALUE_SCHEMAS_WRONG, "value.schema")
def a_schema_of_the_configuration_that_the_table_does_not_know() -> CorruptibleLake:
    other = TYPED["value_schema"].replace('"R"', '"S"')
    return typed_table(lambda table: table["configuration"].update({"tidelog.value.schema": other}))
