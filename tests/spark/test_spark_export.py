"""jobs/export.py: records become rows of Spark's sinks; streams repeat nothing where the sink allows that."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from support.jobs_that_move import moved, ranges, refused
from support.spark_queries import append, forget_commit

from tidelog.jobs import export
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Hold, read_holds

JSON = ["--value-as", "json", "--schema", "id long, city string"]
ROWS = "id long, city string, key string, partition int, offset long"


@pytest.fixture
def orders(lake: Lake) -> Lake:
    """Topic `orders`: two partitions, a record without JSON fields, and a tombstone."""
    lake.create_topic("orders", partitions=2)
    values = ['{"id": 1, "city": "Oslo"}', '{"id": 2}', None]
    append(lake, "orders", *values, key=["a", "b", "a"], partition=[0, 0, 1])
    return lake


@pytest.fixture
def exported(spark: SparkSession) -> DataFrame:
    """What becomes of them as JSON."""
    rows = [(1, "Oslo", "a", 0, 0), (2, None, "b", 0, 1), (None, None, "a", 1, 0)]
    return spark.createDataFrame(rows, ROWS)


def same(found: DataFrame, wanted: DataFrame) -> None:
    columns = wanted.columns
    assert_df_equality(
        found.select(*columns), wanted, ignore_nullable=True, ignore_row_order=True, ignore_metadata=True
    )


def test_a_batch_to_files(
    spark: SparkSession, orders: Lake, exported: DataFrame, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    to = ["--topic", "orders", "--to", "parquet", "--save", str(tmp_path / "out")]
    report = moved(export, capsys, orders, *to, *JSON, "--partition-by", "partition")
    same(spark.read.parquet(str(tmp_path / "out")), exported)
    assert (report["records"], ranges(report)) == (3, [("orders", 0, 0, 2), ("orders", 1, 0, 1)])
    assert report["bytes"] == len('{"id": 1, "city": "Oslo"}{"id": 2}aba')
    assert (tmp_path / "out" / "partition=1").is_dir()

    code, said = refused(export, capsys, orders, *to)
    assert (code, "--mode overwrite replaces it" in said) == (2, True)
    some = ["--mode", "overwrite", "--starting-offsets", '{"orders": {"0": 1, "1": -2}}', "--select", "upper(key) AS k"]
    report = moved(export, capsys, orders, *to, *some, "--where", "value IS NOT NULL")
    assert [row.k for row in spark.read.parquet(str(tmp_path / "out")).collect()] == ["B"]
    assert ranges(report) == [("orders", 0, 1, 2), ("orders", 1, 0, 1)]


def test_a_batch_holds_what_it_reads(
    orders: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = orders.topic("orders").state().version
    held: list[Hold] = []
    write_batch = export.write_batch

    def write(*arguments: Any) -> Any:
        held.extend(read_holds(orders.storage, "orders"))
        return write_batch(*arguments)

    monkeypatch.setattr(export, "write_batch", write)
    moved(export, capsys, orders, "--topic", "orders", "--to", "noop")
    assert [(hold.version, hold.by) for hold in held] == [(version, "export")]
    assert read_holds(orders.storage, "orders") == []


def test_a_batch_to_another_topic_and_by_run_to_delta(
    spark: SparkSession, orders: Lake, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    moved(export, capsys, orders, "--pattern", "ord.*", "--to", "tidelog", "-o", "topic=copy")
    copied = [b.select(["key", "value", "timestamp"]) for b in orders.topic("copy").read(0)]
    assert pa.Table.from_batches(copied).num_rows == 3
    to = ["--topic", "copy", "--to", "delta", "--save", str(tmp_path / "table"), "--mode", "append", "--run", "x:1"]
    reports = [moved(export, capsys, orders, *to) for _ in range(2)]
    assert [(r["records"], r["repeated"]) for r in reports] == [(3, False), (0, True)]
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == 3


def test_a_stream_to_delta_repeats_nothing(
    spark: SparkSession,
    orders: Lake,
    exported: DataFrame,
    capsys: pytest.CaptureFixture[str],
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """Spark dies between the table's entry and its own commit log, and more came meanwhile."""
    table = str(tmp_path / "table")
    to = ["--topic", "orders", "--to", "delta", "--save", table, *JSON, "--available-now", "--checkpoint", checkpoint]
    report = moved(export, capsys, orders, *to)
    assert (report["records"], report["batches"], ranges(report)[0]) == (3, 1, ("orders", 0, 0, 2))
    same(spark.read.format("delta").load(table), exported)

    forget_commit(checkpoint)
    append(orders, "orders", '{"id": 3}', partition=[1])
    moved(export, capsys, orders, *to)
    more = spark.createDataFrame([(3, None, None, 1, 1)], ROWS)
    same(spark.read.format("delta").load(table), exported.union(more))


def test_a_stream_to_a_database_repeats_nothing(
    spark: SparkSession,
    orders: Lake,
    exported: DataFrame,
    capsys: pytest.CaptureFixture[str],
    checkpoint: str,
    tmp_path: Path,
) -> None:
    """A batch that the database has, and Spark has not noted, is left out; the staging table goes."""
    url = f"jdbc:derby:{tmp_path / 'db'};create=true"
    to = ["--topic", "orders", "--to", "jdbc", "-o", f"url={url}", "-o", "dbtable=sold", *JSON]
    stream = [*to, "--available-now", "--checkpoint", checkpoint]
    assert moved(export, capsys, orders, *stream)["records"] == 3
    forget_commit(checkpoint)
    append(orders, "orders", '{"id": 3}', partition=[1])
    report = moved(export, capsys, orders, *stream)
    assert (report["records"], ranges(report)[-1]) == (1, ("orders", 1, 1, 2))

    def read(table: str) -> DataFrame:
        return spark.read.format("jdbc").option("url", url).option("dbtable", table).load()

    same(read("sold"), exported.union(spark.createDataFrame([(3, None, None, 1, 1)], ROWS)))
    tables = read("(SELECT tablename FROM sys.systables WHERE tabletype = 'T') AS t").collect()
    assert sorted(row[0] for row in tables) == ["SOLD", "TIDELOG_EXPORTS"]

    code, said = refused(export, capsys, orders, *to)
    assert (code, "already exists" in said) == (2, True)


def test_a_batch_that_the_database_refuses_is_written_once_it_takes_it(
    spark: SparkSession, orders: Lake, capsys: pytest.CaptureFixture[str], checkpoint: str, tmp_path: Path
) -> None:
    """The rows are in the staging table, and neither they nor the batch's number get any further."""
    url = f"jdbc:derby:{tmp_path / 'db'};create=true"
    to = ["--topic", "orders", "--to", "jdbc", "-o", f"url={url}", "-o", "dbtable=sold", *JSON]
    stream = [*to, "--select", "value.id AS id", "--available-now", "--checkpoint", checkpoint]
    jvm: Any = spark._jvm
    database = jvm.java.sql.DriverManager.getConnection(url).createStatement()
    database.execute('CREATE TABLE sold ("id" BIGINT NOT NULL)')

    code, said = refused(export, capsys, orders, *stream)
    assert (code, "The database refused: Column 'id'" in said) == (1, True), said
    database.execute('ALTER TABLE sold ALTER COLUMN "id" NULL')
    assert moved(export, capsys, orders, *stream)["records"] == 3
    rows = spark.read.format("jdbc").option("url", url).option("dbtable", "sold").load().collect()
    assert sorted(str(row.id) for row in rows) == ["1", "2", "None"]


def test_bad_input(spark: SparkSession, orders: Lake, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    append(orders, "bytes", "x")
    orders.topic("bytes").append(pa.table({"value": [b"\xff"]}))
    out = ["--save", str(tmp_path / "out")]
    cases: list[tuple[list[str], int, str]] = [
        (["--topic", "none", "--to", "csv", *out], 1, "Topic 'none' does not exist"),
        (["--pattern", "none", "--to", "csv", *out], 1, "No topic of the lake"),
        (["--to", "csv", *out], 2, "--topic orders (repeatable), or --pattern"),
        (["--topic", "orders", "--to", "csv"], 2, "needs --save"),
        (["--topic", "orders", "--to", "jdbc"], 2, "--to jdbc needs --option url"),
        (["--topic", "orders", "--to", "jdbc", *out, "-o", "url=x", "-o", "dbtable=x"], 2, "jdbc has none"),
        (["--topic", "orders", "--to", "kafka"], 2, "--packages org.apache.spark:spark-sql-kafka"),
        (["--topic", "orders", "--to", "parquet", *out, "--stream"], 2, "needs --checkpoint"),
        (["--topic", "orders", "--to", "parquet", *out, "--run", "a:1"], 2, "keeps no such mark"),
        (["--topic", "orders", "--to", "parquet", *out, "--partition-by", "day"], 2, "no such column is written"),
        (["--topic", "orders", "--to", "parquet", *out, "--select", "nope"], 2, "The columns are: key, value"),
        (["--topic", "orders", "--to", "parquet", *out, *JSON[:3], "a foo"], 2, "--schema: Syntax error"),
        (["--topic", "bytes", "--to", "parquet", *out], 1, "--value-as binary"),
        (["--topic", "bytes", "--to", "parquet", "--mode", "overwrite", *out, *JSON], 1, "--on-bad-json null"),
    ]
    for args, code, words in cases:
        found, said = refused(export, capsys, orders, *args)
        assert (found, words in said) == (code, True), said
