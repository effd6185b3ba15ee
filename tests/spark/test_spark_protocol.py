"""delta-spark reads every table of tidelog, writes to none, and what gets in all the same is taken back."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.careless_engines import careless
from support.engine_tables import TABLES, fill_tables
from support.spark_queries import AVAILABLE_NOW, Collected, append, fails_with, in_topic, source, texts

from tidelog.check.lake import check_lake, repair
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import ForeignEntryError
from tidelog.log.lake import Lake
from tidelog.log.upkeep.holds import Holder
from tidelog.retention.purge.run import Purger
from tidelog.spark import read_topic
from tidelog.transactions.transaction_log import TransactionLog

VALUES = [f"v{i}" for i in range(6)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with a topic of three segments, groups and transactions."""
    with Lake(str(tmp_path_factory.mktemp("protocol") / "lake")) as lake:
        fill_tables(lake, *(VALUES[i : i + 2] for i in (0, 2, 4)))
        yield lake


def load(spark: SparkSession, lake: Lake, name: str = "orders") -> DataFrame:
    return spark.read.format("delta").load(f"{lake.uri}/{name}")


READS: dict[str, Callable[[SparkSession, str], int]] = {
    "a batch": lambda spark, t: spark.read.format("delta").load(t).count(),
    "SQL": lambda spark, t: spark.sql(f"select * from delta.`{t}`").count(),
    "time travel": lambda spark, t: spark.sql(f"select * from delta.`{t}` version as of {versions(spark, t)}").count(),
    "a stream": lambda spark, t: streamed(spark, t),
}


def versions(spark: SparkSession, table: str) -> int:
    return spark.sql(f"describe history delta.`{table}`").count() - 1


def streamed(spark: SparkSession, table: str) -> int:
    name = f"streamed_{abs(hash(table))}"
    rows = spark.readStream.format("delta").load(table)
    rows.writeStream.format("memory").queryName(name).trigger(**AVAILABLE_NOW).start().awaitTermination()
    return spark.table(name).count()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_it_reads(spark: SparkSession, made: Lake, name: str, read: Callable[[SparkSession, str], int]) -> None:
    expected = {"orders": len(VALUES) + 1}.get(name)
    found = read(spark, f"{made.uri}/{name}")
    assert found == expected if expected else found > 0


def rewrite(spark: SparkSession, table: str, **options: str) -> None:
    rows = spark.read.format("delta").load(table).limit(1)
    rows.write.format("delta").mode("overwrite").options(**options).save(table)


def stream_into(spark: SparkSession, table: str) -> None:
    rows = spark.readStream.format("delta").load(table)
    options = {"checkpointLocation": f"{table}-checkpoint"}
    rows.writeStream.format("delta").options(**options).trigger(**AVAILABLE_NOW).start(table).awaitTermination()


def sql(text: str) -> Callable[[SparkSession, str], Any]:
    return lambda spark, table: spark.sql(text.format(f"delta.`{table}`")).collect()


MERGE = "merge into {} a using (select 0L as position) b on a.position = b.position"
WRITES: dict[str, Callable[[SparkSession, str], Any]] = {
    "insert": sql("insert into {} (base_offset, position) values (0, 7)"),
    "overwrite by SQL": sql("insert overwrite {0} select * from {0} limit 1"),
    "overwrite": rewrite,
    "replace where": lambda spark, table: rewrite(spark, table, replaceWhere="base_offset >= 0"),
    "stream": stream_into,
    "delete everything": sql("delete from {}"),
    "delete files": sql("delete from {} where base_offset = 0"),
    "delete rows": sql("delete from {} where position = 1"),
    "update": sql("update {} set position = 7 where position = 1"),
    "merge": sql(f"{MERGE} when matched then delete"),
    "merge in": sql(f"{MERGE} and false when not matched then insert (position) values (b.position)"),
    "set a property": sql("alter table {} set tblproperties ('delta.appendOnly' = 'true')"),
    "unset a property": sql("alter table {} unset tblproperties ('tidelog.format')"),
    "add a column": sql("alter table {} add columns (more string)"),
    "add a constraint": sql("alter table {} add constraint small check (position >= 0)"),
    "upgrade": lambda spark, table: DeltaTable.forPath(spark, table).upgradeTableProtocol(3, 7),
    "restore": sql("restore table {} to version as of 1"),
    "vacuum": sql("vacuum {} retain 1000 hours"),
    "truncate": sql("truncate table {}"),
    "replace": sql("create or replace table {} using delta as select 1 as one"),
}


def refused() -> Any:
    """Delta's error, below a sentence of tidelog's."""
    return pytest.raises(
        PySparkException, match=r"(?s)^tidelog: only tidelog writes.*DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*tidelog"
    )


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_it_refuses_to(spark: SparkSession, made: Lake, write: Callable[[SparkSession, str], Any]) -> None:
    with refused():
        write(spark, f"{made.uri}/orders")
    assert texts(load(spark, made)) == in_topic(made, "orders")


@pytest.mark.parametrize("write", ["insert", "delete rows"])
@pytest.mark.parametrize("name", TABLES[1:])
def test_it_refuses_tables_of_rows_too(spark: SparkSession, made: Lake, name: str, write: str) -> None:
    with refused():
        WRITES[write](spark, f"{made.uri}/{name}")


@pytest.mark.parametrize("name", TABLES)
def test_what_refused_writes_left_is_purged(spark: SparkSession, made: Lake, name: str) -> None:
    folder = Path(made.uri.removeprefix("file://"), name)
    before = {p for p in folder.rglob("*") if p.is_file()}
    for write in ("insert", "delete rows"):
        with refused():
            WRITES[write](spark, str(folder))
    left = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p not in before}
    assert left
    later_ms = made.clock.now_ms() + 3 * 3_600_000
    with Holder(made.storage, made.clock, made.ids, "purge") as holder:
        purger = Purger(made, holder)
        log = {TABLES[1]: GroupLog(made)._first, TABLES[2]: lambda: TransactionLog(made)._log}.get(name)
        asked: dict[str, Any] = {"now_ms": later_ms, "dry_run": True}
        done = purger.purge(name, **asked) if log is None else purger.purge_rows(log(), **asked)
    assert left <= {d.path for d in done.deleted}
    assert {d.why for d in done.deleted if d.path in left} == {"orphan"}


@pytest.mark.parametrize("name", TABLES)
def test_optimize_does_nothing(spark: SparkSession, made: Lake, name: str) -> None:
    before = {p for p in Path(made.uri.removeprefix("file://"), name).rglob("*") if "_delta_log" in p.parts}
    (done,) = spark.sql(f"optimize delta.`{made.uri}/{name}`").collect()
    assert (done.metrics.numFilesAdded, done.metrics.numFilesRemoved) == (0, 0)
    assert {p for p in before if not p.exists()} == set()
    made.topic("orders")
    assert check_lake(made).green


def test_what_gets_in_is_taken_back_under_a_running_stream(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    """A DELETE and an INSERT by a delta-spark that is given another protocol; tidelog's own stream goes on."""
    lake.create_topic("t", partitions=2)
    for partition, value in enumerate(["a", "b"]):
        append(lake, "t", value, partition=[partition])
    table = Path(lake.uri.removeprefix("file://")) / "t"
    delivered = Collected()
    delivered.run(spark.readStream.format("delta").load(str(table)), checkpoint)
    with careless(table) as address:
        spark.sql(f"delete from delta.`{address}` where cast(value as string) = 'a'")
        spark.sql(f"insert into delta.`{address}` (partition, base_offset, position, value) values (0, 5, 0, X'78')")
    assert texts(load(spark, lake, "t")) == ["b", "x"]
    with pytest.raises(ForeignEntryError, match=r"DELETE by Apache-Spark.*WRITE by Apache-Spark"):
        read_topic(spark, lake, "t")
    with fails_with("not written by tidelog", "check --repair"):
        source(spark, lake, subscribe="t").collect()
    done = repair(lake, execute=True)
    assert done.report.green, done.report.findings
    append(lake, "t", "c", partition=[0])
    spark.catalog.clearCache()
    assert texts(load(spark, lake, "t")) == texts(source(spark, lake, subscribe="t")) == ["a", "b", "c"]
    assert [(r.partition, r.offset) for r in read_topic(spark, lake, "t").orderBy("partition", "offset").collect()] == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    history = [row.operation for row in spark.sql(f"describe history delta.`{table}`").collect()]
    assert history[:4] == ["WRITE", "REPAIR", "WRITE", "DELETE"]
    # Delta's own stream sees rows that were there between: it skips them as its options say.
    rows = spark.readStream.format("delta").option("skipChangeCommits", "true").load(str(table))
    delivered.run(rows, checkpoint)
    assert delivered.values == ["a", "b", "c", "x"]
