"""Broken lakes whose log reads well: what it says, its configuration, its files and its records are damaged."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from support.damages import CHECKPOINT, ENTRY, HOUR_S, damage, without
from support.patients import Line, Patient, columns

from tidelog.check.lake import Kind
from tidelog.log.delta.schema import HEADERS


def said(change: Callable[[list[Line]], Any]) -> Patient:
    """A lake whose state is what a damaged checkpoint says: nothing older is kept to compare it with."""
    return Patient(2).checkpoint(2).trim().edit_checkpoint(2, change)


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


def with_file(patient: Patient, path: str) -> Patient:
    return patient.put(path, patient.get(patient.segment().path))


def txn(app_id: str, version: int) -> Callable[[list[Line]], None]:
    """One more transaction id in a checkpoint, in place of one of the same name."""

    def change(rows: list[Line]) -> None:
        rows[:] = [r for r in rows if not (r["txn"] and r["txn"]["appId"] == app_id)]
        rows.append({**dict.fromkeys(rows[0]), "txn": {"appId": app_id, "version": version, "lastUpdated": None}})

    return change


# --- what the log says -----------------------------------------------------------------------------------------

# base offsets of partition 0:   [0, 2) [2, 4)   end 4, start 0
damage(Kind.COVERAGE_GAP, "partition 0, offsets 0 to 2")(lambda: said(without("add", 0)))
damage(Kind.COVERAGE_GAP, "partition 0, offsets 2 to 4")(lambda: said(without("add", 2)))
damage(Kind.COVERAGE_GAP, "partition 0, offsets 4 to 9")(lambda: said(txn("tidelog/end/0", 9)))


@damage(Kind.SEGMENTS_OVERLAP, "partition 0, offset 2")
def a_segment_given_twice() -> Patient:
    patient = Patient(2)
    path = "partition=0/0-new.parquet"
    with_file(patient, path)
    return patient.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 2, 4))


@damage(Kind.SEGMENTS_OVERLAP, "partition 0, offset 1")
def a_segment_across_two() -> Patient:
    patient = with_file(Patient(2), "partition=0/0-new.parquet")
    return patient.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 1, 3))


@damage(Kind.END_BELOW_SEGMENTS, "partition 0")
def an_end_that_fell() -> Patient:
    return said(txn("tidelog/end/0", 3))


damage(Kind.START_PAST_END, "partition 0", Kind.SEGMENT_BELOW_START)(lambda: said(txn("tidelog/start/0", 5)))
damage(Kind.START_PAST_END, "partition 0")(lambda: said(txn("tidelog/start/0", -1)))
damage(Kind.CLEAN_PAST_END, "partition 0")(lambda: said(txn("tidelog/clean/0", 5)))
damage(Kind.SEGMENT_BELOW_START, "partition=0/")(lambda: said(txn("tidelog/start/0", 2)))


@damage(Kind.OFFSETS_FELL, "partition 0", Kind.ENTRY_GAP_PASSED, Kind.END_BELOW_SEGMENTS)
def offsets_that_fell_between_two_checkpoints() -> Patient:
    patient = Patient(5).checkpoint(2).trim().checkpoint(5).delete(ENTRY.format(4))
    return patient.edit_checkpoint(5, txn("tidelog/end/0", 5))


@damage(Kind.SEGMENT_EMPTY, "partition=0/")
def a_segment_of_nothing() -> Patient:
    patient = with_file(Patient(2), "partition=0/0-new.parquet")
    return patient.checkpoint(2).trim().edit_checkpoint(2, new_add(0, 4, 4))


for stats in (None, "", "[]", '{"numRecords":"2"}', "{}", '{"numRecords":3}', '{"numRecords":-1}'):
    damage(Kind.SEGMENT_STATS_WRONG, "partition=0/")(
        lambda stats=stats: said(lambda rows: next(r["add"] for r in rows if r["add"]).update(stats=stats))  # type: ignore[misc]
    )
damage(Kind.SEGMENT_STATS_WRONG, "partition=0/")(
    lambda: Patient().edit_add(3, stats={"minValues": {"timestamp": "yesterday"}})
)


@damage(Kind.FILE_TWICE, "partition=0/", Kind.SEGMENTS_OVERLAP)
def a_file_in_the_table_twice() -> Patient:
    return said(lambda rows: rows.append(next(r for r in rows if r["add"])))


@damage(Kind.PARTITION_UNKNOWN, "partition 7")
def a_partition_that_is_not_there() -> Patient:
    return said(txn("tidelog/end/7", 2))


@damage(Kind.DELETED_WITH_SEGMENTS, "topic")
def a_deleted_topic_with_segments() -> Patient:
    def mark(rows: list[Line]) -> None:
        body = next(r["metaData"] for r in rows if r["metaData"])
        body["configuration"].append(("tidelog.deleted", "true"))

    return said(mark)


# --- configuration ---------------------------------------------------------------------------------------------


def table_says(**fields: Any) -> Patient:
    return Patient().edit(0, lambda ls: ls[1]["metaData"].update(fields))


damage(Kind.SCHEMA_WRONG, "_delta_log")(lambda: table_says(schemaString="{}"))
damage(Kind.SCHEMA_WRONG, "_delta_log")(lambda: table_says(partitionColumns=[]))
damage(Kind.CONFIG_INVALID, "retention.ms")(lambda: Patient().edit_property("tidelog.retention.ms", "soon"))
damage(Kind.CONFIG_INVALID, "no.such.key")(lambda: Patient().edit_property("tidelog.no.such.key", "1"))
damage(Kind.CONFIG_INVALID, "configuration")(
    lambda: Patient(max_compaction_lag_ms="5").edit_property("tidelog.min.compaction.lag.ms", "6")
)
damage(Kind.PROPERTY_WRONG, "delta.enableExpiredLogCleanup")(
    lambda: Patient().edit_property("delta.enableExpiredLogCleanup", "true")
)


# --- files -----------------------------------------------------------------------------------------------------


@damage(Kind.SEGMENT_MISSING, "partition=0/")
def a_segment_gone() -> Patient:
    patient = Patient()
    return patient.delete(patient.segment().path)


@damage(Kind.SEGMENT_MISSING, "file:")
def a_segment_elsewhere() -> Patient:
    return Patient().edit(3, lambda ls: ls[0]["add"].update(path="file:///elsewhere/x.parquet"))


@damage(Kind.SEGMENT_SIZE_WRONG, "partition=0/")
def a_segment_cut() -> Patient:
    patient = Patient()
    path = patient.segment().path
    return patient.put(path, patient.get(path)[:-50])


@damage(Kind.ORPHANS, "folder")
def a_file_that_was_never_committed() -> Patient:
    patient = with_file(Patient(), "partition=0/2-lost.parquet")
    patient.clock.pass_s(HOUR_S + 1)
    return patient


@damage(Kind.IN_FLIGHT, "folder")
def a_file_that_is_about_to_be_committed() -> Patient:
    return with_file(Patient(), "partition=0/2-new.parquet")


@damage(Kind.NAME_TAKEN, "_delta_log/00000000000000000004.json")
def what_is_no_file_where_the_next_entry_goes() -> Patient:
    patient = Patient()
    taken = {"orders/_delta_log": ["00000000000000000004.json", "_sidecars"]}
    patient.storage.strangers = lambda folder: taken.get(folder, [])  # type: ignore[attr-defined]
    return patient


@damage(Kind.TEMPORARY_FILES, "folder")
def what_a_crash_of_deltalake_left() -> Patient:
    patient = Patient().put(f"{CHECKPOINT.format(2)}#1", b"half")
    patient.clock.pass_s(HOUR_S + 1)
    return patient


# --- records -----------------------------------------------------------------------------------------------------


def rewritten(change: Callable[[pa.Table], pa.Table], **config: str) -> Patient:
    return Patient(**config).replace_segment(change)


def deep(kind: Kind, *also: Kind) -> Callable[[Callable[[], Patient]], None]:
    return damage(kind, "partition=0/", *also, deep=True)


def garbled(at: slice, by: bytes) -> Patient:
    """A segment of the right size with other bytes in it."""
    patient = Patient()
    path = patient.segment().path
    data = bytearray(patient.get(path))
    data[at] = by
    return patient.put(path, bytes(data))


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
deep(Kind.POSITIONS_WRONG)(lambda: Patient().edit_add(1, stats={"maxValues": {"position": 0}}))
deep(Kind.TIMESTAMPS_OUTSIDE_STATS)(lambda: rewritten(lambda t: columns(t, timestamp=[time(1), time(2)])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, position=[0, None])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, timestamp_type=[0, None])))
deep(Kind.NULLS_WRONG)(lambda: rewritten(lambda t: columns(t, timestamp=[None, None])))
deep(Kind.NULLS_WRONG)(
    lambda: rewritten(lambda t: columns(t, headers=pa.array([[{"key": None, "value": b"v"}], None], HEADERS)))
)
deep(Kind.KEY_MISSING)(lambda: rewritten(lambda t: columns(t, key=[b"k", None]), cleanup_policy="compact"))
deep(Kind.APPEND_TIME_FELL)(
    lambda: rewritten(
        lambda t: columns(t, timestamp=[t.column("timestamp")[0].as_py(), time(1)]),
        message_timestamp_type="LogAppendTime",
    ).edit(1, lambda ls: ls[0]["add"].update(stats='{"numRecords":2}'))
)


@deep(Kind.APPEND_TIME_FELL)
def append_time_that_falls_from_segment_to_segment() -> Patient:
    patient = Patient(2, message_timestamp_type="LogAppendTime")
    patient.replace_segment(lambda t: columns(t, timestamp=[time(2_000_000_000)] * 2))
    return patient.edit(1, lambda ls: ls[0]["add"].update(stats='{"numRecords":2}'))
