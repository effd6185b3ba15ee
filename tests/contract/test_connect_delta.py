"""The Delta sink: merges by key, tombstones, schemas that grow, and crashes around a commit."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from support.connect_records import sink_record
from support.connect_tasks import started_sink

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.delta_sink import DeltaSink, storage_options
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.schema import (
    FLOAT64,
    INT32,
    INT64,
    STRING,
    array_of,
    decimal_schema,
    map_of,
    struct_of,
    timestamp_schema,
)

P0 = ("test", 0)
ROW = struct_of({"id": INT32, "name": STRING.as_optional()})
KEY = struct_of({"id": INT32})


def config(folder, **others):
    found = {"name": "c", "table.location": f"{folder}/${{topic}}", "flush.size": "1000", "rotate.interval.ms": "0"}
    return found | {key.replace("_", "."): value for key, value in others.items()}


def change(offset, key, name="n", schema=ROW, **values):
    record = sink_record(schema, {"id": key, "name": name, **values}, offset=offset)
    return record.but(key={"id": key}, key_schema=KEY)


def tombstone(offset, key):
    return change(offset, key).but(value=None, value_schema=None)


def rows(folder, *names):
    table = DeltaTable(f"{folder}/test").to_pyarrow_table().to_pylist()
    return sorted(tuple(row[name] for name in names or ("id", "name")) for row in table)


def test_changes_merge_by_key_and_tombstones_delete(tmp_path):
    task, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "c"), tombstone(3, 7)])
    assert rows(tmp_path) == [(1, "c"), (2, "b")]
    task.put([tombstone(4, 2), change(5, 3, None), tombstone(6, 1), change(7, 1, "e")])
    assert rows(tmp_path) == [(1, "e"), (3, None)]
    assert DeltaTable(f"{tmp_path}/test").transaction_version("tidelog-connect/c/test/0") == 8
    assert task.pre_commit({P0: 8}) == {P0: 8}


@pytest.mark.parametrize("crash", ["before the commit", "after the commit"])
def test_a_commit_has_rows_and_offsets_together(tmp_path, crash, monkeypatch):
    given = config(tmp_path, merge="false")
    task, _ = started_sink(DeltaSink, given, [P0])
    task.put([change(0, 0)])
    if crash == "before the commit":
        monkeypatch.setattr(
            "tidelog.connect.connectors.delta_sink.write_deltalake", lambda *_, **__: (_ for _ in ()).throw(SystemExit)
        )
        with pytest.raises(SystemExit):
            task.put([change(1, 1)])
        monkeypatch.undo()
    else:
        task.put([change(1, 1)])
    task, context = started_sink(DeltaSink, given, [P0])  # another worker, whose group is at offset 0
    assert context.seeks == {P0: 1 if crash == "before the commit" else 2}
    task.put([change(offset, offset) for offset in range(4)])
    assert rows(tmp_path, "id") == [(0,), (1,), (2,), (3,)]


def test_records_wait_for_a_full_or_due_commit(tmp_path):
    class Clock:
        seconds = 0.0

        def elapsed_s(self):
            return self.seconds

    clock = Clock()
    task, _ = started_sink(DeltaSink, config(tmp_path, flush_size="2", rotate_interval_ms="1000"), [P0], clock=clock)
    task.put([change(0, 1), change(1, 2), change(2, 3)])
    assert rows(tmp_path, "id") == [(1,), (2,)]
    assert task.pre_commit({P0: 3}) == {P0: 2}
    clock.seconds = 1.0
    task.put([])
    assert rows(tmp_path, "id") == [(1,), (2,), (3,)]
    task.put([change(3, 4)])
    task.close([P0])
    assert task.pre_commit({P0: 3}) == {P0: 3}
    clock.seconds = 9.0
    task.put([])
    assert rows(tmp_path, "id") == [(1,), (2,), (3,)]


def test_a_failed_commit_is_tried_again_with_all_its_records(tmp_path, monkeypatch):
    task, _ = started_sink(DeltaSink, config(tmp_path, flush_size="2", rotate_interval_ms="100000"), [P0])
    task.put([change(0, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(task, "_merge", lambda *_: (_ for _ in ()).throw(CommitFailedError("conflict")))
        with pytest.raises(RetriableConnectError, match="conflict"):
            task.put([change(1, 2)])
    task.put([change(1, 2)])  # as the worker repeats it
    assert rows(tmp_path, "id") == [(1,), (2,)]


def test_a_task_that_was_replaced_commits_nothing(tmp_path):
    old, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    old.put([change(0, 1)])
    new, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    new.put([change(1, 2)])
    with pytest.raises(ConnectError, match="Another task of c has written test-0"):
        old.put([change(1, 3), change(2, 4)])
    assert rows(tmp_path, "id") == [(1,), (2,)]


def test_columns_are_added_when_asked(tmp_path):
    wide = struct_of({"id": INT32, "name": STRING.as_optional(), "extra": INT64.as_optional()})
    task, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([change(0, 1), change(1, 2)])
    task.put([change(2, 1, "m", wide, extra=7)])
    assert rows(tmp_path, "id", "name", "extra") == [(1, "m", 7), (2, "n", None)]
    task.put([change(3, 2, "old schema")])
    assert rows(tmp_path, "id", "name", "extra") == [(1, "m", 7), (2, "old schema", None)]
    task, _ = started_sink(DeltaSink, config(tmp_path, auto_evolve="false"), [P0])
    more = struct_of({"id": INT32, "name": STRING.as_optional(), "more": INT64.as_optional()})
    with pytest.raises(ConnectError, match="has no column 'more'"):
        task.put([change(4, 1, "m", more, more=7)])


def test_values_of_every_type(tmp_path):
    schema = struct_of({
        "id": INT32, "name": STRING.as_optional(), "d": decimal_schema(2), "t": timestamp_schema(), "f": FLOAT64,
        "l": array_of(INT32), "m": map_of(STRING, INT64), "s": struct_of({"x": STRING}),
    })  # fmt: skip
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
    values = {"d": Decimal("1.25"), "t": moment, "f": 0.5, "l": [1, 2], "m": {"a": 1}, "s": {"x": "y"}}
    task, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([change(0, 1, "n", schema, **values)])
    found = DeltaTable(f"{tmp_path}/test").to_pyarrow_table().to_pylist(maps_as_pydicts="strict")
    assert found == [{"id": 1, "name": "n", **values}]


def test_records_without_a_row_are_reported(tmp_path):
    bad = [change(0, 1).but(key=None), sink_record(None, {"id": 1}, offset=1).but(key={"id": 1}, key_schema=KEY)]
    task, context = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([*bad, change(2, 3)])
    assert rows(tmp_path, "id") == [(3,)]
    assert [record.offset for record, _ in context.refused] == [0, 1]
    task.put([change(3, 1).but(key=None)])
    assert task.pre_commit({P0: 4}) == {P0: 4}
    task, context = started_sink(DeltaSink, config(tmp_path, merge="false"), [P0])
    task.put([tombstone(4, 3)])
    assert "which is no row" in str(context.refused[0][1])


def test_keys_that_are_no_structs_need_one_name(tmp_path):
    record = change(0, 1).but(key="k", key_schema=STRING)
    task, _ = started_sink(DeltaSink, config(tmp_path, pk_fields="name"), [P0])
    task.put([record])
    assert rows(tmp_path) == [(1, "k")]
    task, context = started_sink(DeltaSink, config(tmp_path / "other"), [P0])
    task.put([record])
    assert "pk.fields must have one name" in str(context.refused[0][1])


def test_a_missing_table_is_made_only_when_asked(tmp_path):
    task, _ = started_sink(DeltaSink, config(tmp_path, auto_create="false"), [P0])
    with pytest.raises(ConnectError, match="There is no Delta table"):
        task.put([change(0, 1)])


def test_other_writers_of_the_table_are_no_hindrance(tmp_path):
    task, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([change(0, 1)])
    table = DeltaTable(f"{tmp_path}/test")
    write_deltalake(table, table.to_pyarrow_table().slice(0, 0), mode="append")
    DeltaTable(f"{tmp_path}/test").create_checkpoint()
    task, context = started_sink(DeltaSink, config(tmp_path), [P0])
    assert context.seeks == {P0: 1}
    task.put([change(1, 2)])
    assert rows(tmp_path, "id") == [(1,), (2,)]


def test_storage_options_are_pairs():
    assert storage_options(["a=b", "c=d=e"]) == {"a": "b", "c": "d=e"}
    with pytest.raises(ConnectConfigError, match="name=value"):
        storage_options(["a"])


WIDE = struct_of({"id": INT32, "total": INT64.as_optional()})
NARROW = struct_of({"id": INT32, "total": INT32.as_optional()})


def total(offset, key, value, schema):
    return sink_record(schema, {"id": key, "total": value}, offset=offset).but(key={"id": key}, key_schema=KEY)


@pytest.mark.parametrize("merge", ["true", "false"])
def test_a_type_that_grew_is_written_while_it_fits_and_then_said_with_what_to_do(tmp_path, merge):
    task, _ = started_sink(DeltaSink, config(tmp_path, merge=merge), [P0])
    task.put([total(0, 1, 5, NARROW)])
    task.put([total(1, 2, 7, WIDE)])
    assert rows(tmp_path, "id", "total") == [(1, 5), (2, 7)]
    with pytest.raises(ConnectError, match=r"Column total of the table .* is int, .* 2147483648: .* bigint") as failure:
        task.put([total(2, 3, 2**31, WIDE)])
    assert not isinstance(failure.value, RetriableConnectError)
    assert "enableTypeWidening" in str(failure.value)
    assert rows(tmp_path, "id", "total") == [(1, 5), (2, 7)]


def test_a_table_with_columns_that_spark_widened_is_refused_and_not_tried_again(tmp_path):
    task, _ = started_sink(DeltaSink, config(tmp_path), [P0])
    task.put([total(0, 1, 5, NARROW)])
    newest = max((tmp_path / "test" / "_delta_log").glob("*.json"))
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["typeWidening"],
                "writerFeatures": ["typeWidening", "appendOnly", "invariants"]}  # fmt: skip
    entry = newest.with_name(f"{int(newest.stem) + 1:020}.json")
    entry.write_text("\n".join(map(json.dumps, [{"commitInfo": {"timestamp": 1}}, {"protocol": features}])))
    with pytest.raises(ConnectError, match="SparkDeltaSink") as failure:
        task.put([total(1, 2, 6, NARROW)])
    assert not isinstance(failure.value, RetriableConnectError)
