"""The Delta sink by Spark's MERGE: rows, repeated batches, and the application as a worker supervises it."""

import json
import os
import signal
from functools import cache
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from support.spark_queries import PATIENCE_S
from support.submitting import environment
from support.waiting import eventually

from tidelog.connect.api.operations import ConnectOperations
from tidelog.connect.connectors.spark.delta_merge import DeltaTxn, TableRule, write_records
from tidelog.connect.connectors.spark.delta_sink import DeltaJob
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.offsets import committed_offsets
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.connect.worker import Worker
from tidelog.log.lake import Lake
from tidelog.operations.connector_configs import TargetState

MERGES = TableRule(merges=True, creates=True, evolves=True)
JSON = "org.apache.kafka.connect.json.JsonConverter"


def struct(types: dict[str, str], values: dict[str, object] | None) -> bytes | None:
    """A struct as JsonConverter has it, with its schema."""
    if values is None:
        return None
    fields = [{"field": name, "type": kind, "optional": True} for name, kind in types.items() if name in values]
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": values}).encode()


def record(key: int, **values: object) -> dict[str, bytes | None]:
    """A change of the row of a key; without values, its deletion."""
    types = {"name": "string", "amount": "int64"}
    return {"key": struct({"id": "int32"}, {"id": key}), "value": struct(types, values or None)}


def config(folder: Path, **others: str) -> dict[str, str]:
    found = {
        "name": "c", "connector.class": "SparkDeltaSink", "topics": "in", "table.location": f"{folder}/${{topic}}",
        "key.converter": JSON, "value.converter": JSON,
    }  # fmt: skip
    return found | {name.replace("_", "."): value for name, value in others.items()}


def write(spark: SparkSession, lake: Lake, given: dict[str, str], at: int, rule: TableRule = MERGES) -> dict:
    """Merge all records of the topic as batch `at`, as the application does with a batch."""
    options = {"lake": lake.uri, "subscribe": "in", "includeHeaders": "true"}
    job = DeltaJob(lake.uri, {}, given, {}, "connect-c")
    records = spark.read.format("tidelog").options(**options).load()
    return write_records(records, job.text, rule, DeltaTxn("app", at))


def rows(folder: Path, *names: str) -> list[tuple[object, ...]]:
    found = DeltaTable(f"{folder}/in").to_pyarrow_table().to_pylist()
    return sorted(tuple(row[name] for name in names) for row in found)


def test_changes_merge_by_key_tombstones_delete_and_columns_are_added(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    lake.create_topic("in", 2)
    lake.topic("in").append([record(1, name="a"), record(2, name="b"), record(3, name="c"), record(1, name="d")])
    behind = write(spark, lake, config(tmp_path), 0)
    assert sum(behind.values()) == 4
    assert rows(tmp_path, "id", "name") == [(1, "d"), (2, "b"), (3, "c")]
    lake.topic("in").append([record(2), record(3, name="e", amount=7), record(9)])
    assert rows(tmp_path, "id", "name") == [(1, "d"), (2, "b"), (3, "c")]
    write(spark, lake, config(tmp_path), 0)  # a batch that is there: left out, whatever is in it
    assert rows(tmp_path, "id", "name") == [(1, "d"), (2, "b"), (3, "c")]
    write(spark, lake, config(tmp_path), 1)
    assert rows(tmp_path, "id", "name", "amount") == [(1, "d", None), (3, "e", 7)]
    assert DeltaTable(f"{tmp_path}/in").transaction_version("app") == 1


def test_records_that_are_no_rows_go_to_the_dead_letter_topic(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    lake.create_topic("in", 1)
    lake.topic("in").append([record(1, name="a"), {"key": b"{}", "value": b"no json"}, {"value": b"null"}])
    with pytest.raises(Exception, match="Tolerance exceeded in error handler"):
        write(spark, lake, config(tmp_path), 0)
    tolerant = config(tmp_path, errors_tolerance="all", errors_deadletterqueue_topic_name="dead")
    assert write(spark, lake, tolerant, 0) == {("in", 0): 3}
    assert rows(tmp_path, "id", "name") == [(1, "a")]
    dead = [one for batch in lake.topic("dead").read(0) for one in batch.column("value").to_pylist()]
    assert dead == [b"no json", b"null"]


def test_tables_that_must_not_change_are_refused(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    lake.create_topic("in", 1)
    lake.topic("in").append([record(1, name="a")])
    with pytest.raises(ConnectError, match=r"no Delta table at .*auto\.create"):
        write(spark, lake, config(tmp_path), 0, MERGES._replace(creates=False))
    write(spark, lake, config(tmp_path), 0)
    lake.topic("in").append([record(1, amount=1)])
    with pytest.raises(ConnectError, match="has no column 'amount'"):
        write(spark, lake, config(tmp_path), 1, MERGES._replace(evolves=False))


def groups_of_spark() -> set[int]:
    """The process groups of applications that are there."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"delta_program.py" in path.read_bytes():
                found.add(os.getpgid(int(path.parent.name)))
        except (OSError, ProcessLookupError):
            continue
    return found


def test_an_application_is_supervised_and_each_record_is_written_once(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_workers: dict[str, str]
) -> None:
    for name, value in (environment(tmp_path) | forked_workers).items():
        monkeypatch.setenv(name, value)
    before = groups_of_spark()
    lake.create_topic("in", 1)
    lake.topic("in").append([record(number, amount=number) for number in range(6)])
    worker = Worker(lake, "here:1", WorkerSettings())
    operations = ConnectOperations(worker)
    given = config(
        tmp_path, merge="false", flush_size="3", rotate_interval_ms="0", restart_backoff_ms="0",
        spark_submit_args="--master local[1]",
    )  # fmt: skip

    @cache
    def rows_after(entries: int) -> list[int]:
        return [row[0] for row in rows(tmp_path, "amount")] if entries else []

    def written() -> list[int]:
        return rows_after(len(list((tmp_path / "in/_delta_log").glob("*.json"))))

    def state() -> str:
        tasks = operations.status("c")["tasks"]
        return tasks[0]["state"] if tasks else ""

    worker.start()
    try:
        operations.put_config("c", given)
        eventually(lambda: state() == "RUNNING", "the application runs")
        eventually(lambda: len(written()) >= 3, "some records are written", PATIENCE_S)
        (group,) = groups_of_spark() - before
        os.killpg(group, signal.SIGKILL)
        lake.topic("in").append([record(number, amount=number) for number in range(6, 9)])
        eventually(lambda: len(written()) >= 9, "the application goes on behind them", PATIENCE_S)
        assert written() == list(range(9))
        assert groups_of_spark() - before != {group}
        eventually(lambda: committed_offsets(lake, "connect-c") == {("in", 0): 9}, "the group shows how far it is")
        operations.aim("c", TargetState.PAUSED)
        eventually(lambda: state() == "PAUSED", "it is paused")
        assert groups_of_spark() == before
    finally:
        worker.stop()
    assert groups_of_spark() == before
