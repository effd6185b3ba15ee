"""Branches with Spark: a job gives there what it gives on the lake, and what differs is a DataFrame."""

from pathlib import Path

from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from support.spark_queries import append, source

from tidelog.lakes import Lake
from tidelog.log.lake import Lake as AnyLake
from tidelog.spark import diff, read_topic


def job(spark: SparkSession, lake: AnyLake) -> DataFrame:
    """A count and a sum for each key, by the source."""
    return source(spark, lake, subscribe="t").groupBy("key").agg(expr("count(*)"), expr("sum(int(string(value)))"))


def test_a_job_gives_on_a_branch_what_it_gives_on_the_lake_and_differences_are_rows(
    spark: SparkSession, lake: AnyLake
) -> None:
    lake.create_topic("t", partitions=2)
    for n in range(6):
        append(lake, "t", str(n), str(10 * n), partition=[n % 2] * 2, key=["k", f"k{n}"])
    with Lake(lake.uri, create=False) as opened, opened.branch() as branch:
        assert_df_equality(job(spark, lake), job(spark, branch), ignore_row_order=True)
        assert_df_equality(read_topic(spark, lake, "t"), read_topic(spark, branch, "t"), ignore_row_order=True)

        shared = Path(lake.uri.removeprefix("file://")) / "t" / lake.topic("t").state().live(0)[0].path
        append(branch, "t", "7", partition=[0], key=["k"])
        append(lake, "t", "8", "9", partition=[0, 1], key=["k", "l"])
        data = shared.read_bytes()
        shared.unlink()  # of the lake alone, and it is not read for what differs
        rows = diff(spark, lake, branch, topic="t").orderBy("partition", "offset").collect()
        assert [(r.partition, r.offset, r.a and r.a.value, r.b and r.b.value) for r in rows] == [
            (0, 6, b"8", b"7"),
            (1, 6, b"9", None),
        ]
        shared.write_bytes(data)
        keys = diff(spark, lake.uri, branch.uri, topic="t", by_key=True).orderBy("key").collect()
        assert [(bytes(r.key), r.a and r.a.value, r.b and r.b.value) for r in keys] == [
            (b"k", b"8", b"7"),
            (b"l", b"9", None),
        ]
