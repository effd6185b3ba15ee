"""jobs/ingest.py: rows of Spark's sources become records, once and as a stream that may be killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.jobs_that_move import moved, ranges, refused
from support.spark_queries import await_that, in_topic, numbered
from support.submitting import environment

from tidelog.jobs import ingest
from tidelog.log.lake import Lake

CSV = "id,city,at\n1,Oslo,2026-01-02 03:04:05\n2,,2026-01-03 00:00:00\n3,Rome,2026-01-04 00:00:00\n"


@pytest.fixture
def csv(tmp_path: Path, spark: SparkSession) -> list[str]:
    """Options that read a file of three orders to topic `orders`."""
    (tmp_path / "orders.csv").write_text(CSV)
    return ["--topic", "orders", "--from", "csv", "--load", str(tmp_path / "orders.csv"), "-o", "header=true"]


def records(lake: Lake, topic: str) -> list[dict]:
    """A topic's records, by partition and offset."""
    handle = lake.topic(topic)
    return [
        row
        for partition in handle.offsets()
        for batch in handle.read(partition, include_headers=True)
        for row in batch.to_pylist()
    ]


def test_a_file_becomes_records(
    csv: list[str], lake: Lake, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    lake.create_topic("orders", partitions=3)
    shape = ["--key", "id", "--timestamp", "to_timestamp(at)", "--header", "from='shop'", "--partition", "int(id) - 1"]
    report = moved(ingest, capsys, lake, *csv, *shape, "--where", "id < 3")

    first, second = records(lake, "orders")
    assert (first["key"], json.loads(first["value"])) == (b"1", {"city": "Oslo", "at": "2026-01-02 03:04:05"})
    assert json.loads(second["value"])["city"] is None
    assert first["timestamp"].isoformat() == "2026-01-02T03:04:05+00:00"
    assert first["headers"] == [{"key": "from", "value": b"shop"}]
    assert ranges(report) == [("orders", 0, 0, 1), ("orders", 1, 0, 1)]
    assert (report["records"], report["batches"], report["repeated"]) == (2, None, False)
    assert report["bytes"] == sum(p.bytes for p in lake.describe_topic("orders").partitions)


def test_a_run_that_is_repeated_writes_nothing(csv: list[str], lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    reports = [moved(ingest, capsys, lake, *csv, "--run", f"load:{number}") for number in (7, 7, 6, 8)]
    assert [(r["records"], r["repeated"]) for r in reports] == [(3, False), (0, True), (0, True), (3, False)]
    assert ranges(reports[3]) == [("orders", 0, 3, 6)]
    assert len(records(lake, "orders")) == 6


def test_a_query_over_what_is_loaded_and_a_source_without_rows(
    csv: list[str], lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT city AS key, string(count(*)) AS value FROM source WHERE city > '{}' GROUP BY city ORDER BY city"
    assert moved(ingest, capsys, lake, *csv, "--query", query.format("P"))["records"] == 1
    assert [(r["key"], r["value"]) for r in records(lake, "orders")] == [(b"Rome", b"1")]
    assert moved(ingest, capsys, lake, *csv, "--query", query.format("Z"))["records"] == 0


def test_a_topic_is_copied_with_keys_headers_and_times(
    csv: list[str], lake: Lake, capsys: pytest.CaptureFixture[str], checkpoint: str
) -> None:
    moved(ingest, capsys, lake, *csv, "--key", "id", "--header", "h=city", "--timestamp", "to_timestamp(at)")
    copy = ["--from", "tidelog", "-o", "subscribe=orders", "--available-now", "--checkpoint", checkpoint]
    reports = [moved(ingest, capsys, lake, *copy, "--topic", "copy") for _ in range(2)]

    assert [(r["records"], r["batches"]) for r in reports] == [(3, 1), (0, 0)]
    same = [{**row, "topic": "orders"} for row in records(lake, "copy")]
    assert same == records(lake, "orders")


def test_bad_input(csv: list[str], lake: Lake, capsys: pytest.CaptureFixture[str], checkpoint: str) -> None:
    stream = ["--available-now", "--checkpoint", checkpoint]
    cases: list[tuple[list[str], int, str]] = [
        ([*csv, "--key", "idd"], 2, "The columns are: id, city, at."),
        ([*csv, "--key", "id ++"], 2, "--key id ++: Syntax error"),
        ([*csv, "--headers", "city"], 2, "is of type string. Headers are names with values"),
        ([*csv, "--value", "make_interval(1)"], 2, "which has no form in bytes"),
        ([*csv, *stream], 2, "needs --schema"),
        (["--topic", "t", "--from", "nope"], 2, "Spark knows no format 'nope'"),
        (["--topic", "t", "--from", "kafka", "-o", "subscribe=x"], 2, "--packages org.apache.spark:spark-sql-kafka"),
        (["--topic", "t", "--from", "jdbc", "-o", "url=jdbc:mysql://h/d", "-o", "dbtable=t"], 2, "mysql-connector-j"),
        (["--topic", "t", "--from", "jdbc", "-o", "dbtable=t", *stream], 2, "does not support streamed reading"),
        (["--topic", "t", "--from", "json", "--load", "/none/such"], 1, "Path does not exist: file:/none/such."),
        (["--topic", "t"], 2, "Nothing says what to read"),
        ([*csv, "--table", "x"], 2, "--from and --table both say"),
    ]
    for args, code, words in cases:
        found, said = refused(ingest, capsys, lake, *args)
        assert (found, words in said) == (code, True), said
    assert lake.topics() == []

    lake.alter_config({"auto.create.topics.enable": "false"})
    found, said = refused(ingest, capsys, lake, *csv)
    assert (found, "auto.create.topics.enable is false" in said) == (1, True)


def test_a_stream_that_is_killed_loses_and_repeats_nothing(
    spark: SparkSession,
    lake: Lake,
    capsys: pytest.CaptureFixture[str],
    checkpoint: str,
    tmp_path: Path,
    forked_workers: dict[str, str],
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for value in numbered("v", 25):
        (folder / f"{value}.txt").write_text(f"{value}\n")
    args = ["--topic", "lines", "--from", "text", "--load", str(folder), "--checkpoint", checkpoint]
    slowly = ["--stream", "-o", "maxFilesPerTrigger=1", "--lake", lake.uri]
    with (tmp_path / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, ingest.__file__, *args, *slowly],
            env={**environment(tmp_path), "SPARK_MASTER": "local[1]", **forked_workers},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            await_that(lambda: process.poll() is not None or len(lines(lake)) >= 2)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    before = lines(lake)
    assert 2 <= len(before) < 25, (tmp_path / "log.txt").read_text()

    report = moved(ingest, capsys, lake, *args, "--available-now")
    assert lines(lake) == numbered("v", 25)
    assert report["records"] in (25 - len(before), 25 - len(before) - 1)  # a batch may have been committed meanwhile


def lines(lake: Lake) -> list[str]:
    return in_topic(lake, "lines") if "lines" in lake.topics() else []
