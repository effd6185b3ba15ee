"""The source and the sink on S3, configured by options, which Spark shows nowhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.logs import values
from support.spark_queries import fails_with, in_topic, run, source, stream, texts, write
from support.versitygw import S3Place, in_environment

from tidelog.log.lake import Lake


@pytest.fixture
def s3_lake(s3: S3Place) -> Iterator[Lake]:
    with in_environment({}), Lake(s3.uri, options=s3.options) as lake:
        lake.topic("t").append(values("a", "b"))
        yield lake


def hidden(s3: S3Place, *texts: str) -> None:
    for text in texts:
        assert s3.access_key_id not in text
        assert s3.secret_access_key not in text


def plans(frame: DataFrame) -> list[str]:
    """Whatever Spark prints of a query."""
    execution = frame._jdf.queryExecution()
    return [
        execution.toString(),
        execution.logical().toString(),
        execution.optimizedPlan().treeString(),
        execution.analyzed().prettyJson(),
        execution.sparkPlan().prettyJson(),
        *(execution.explainString(mode) for mode in modes(frame.sparkSession)),
    ]


def modes(spark: SparkSession) -> list[object]:
    mode = spark._jvm.org.apache.spark.sql.execution.ExplainMode
    return [mode.fromString(name) for name in ("simple", "extended", "codegen", "cost", "formatted")]


def executed(spark: SparkSession) -> list[str]:
    """What Spark's web pages show of the queries that ran."""
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return [found.apply(i).physicalPlanDescription() for i in range(found.size())]


def test_batches_and_streams_reach_s3_and_show_no_secret(
    spark: SparkSession, spark_log: Path, s3: S3Place, s3_lake: Lake, checkpoint: str, tmp_path: Path
) -> None:
    rows = source(spark, s3_lake, subscribe="t", **s3.options)
    assert texts(rows) == ["a", "b"]
    write(rows.select("value"), s3_lake, "u", **s3.options)
    assert in_topic(s3_lake, "u") == ["a", "b"]

    streamed = stream(spark, s3_lake, subscribe="t", startingOffsets="earliest", **s3.options).select("value")
    query = run(streamed, s3_lake, "u", checkpoint, **s3.options)
    assert in_topic(s3_lake, "u") == ["a", "a", "b", "b"]

    shown = [*plans(rows), *executed(spark), query._jsq.explainInternal(True), str(query.recentProgress)]
    shown += [str(query.status), query._jsq.toString()]
    kept = [path.read_bytes().decode("latin-1") for path in Path(checkpoint).rglob("*") if path.is_file()]
    assert kept
    hidden(s3, *shown, *kept, spark_log.read_text(errors="replace"))


@pytest.mark.parametrize("kind", ["batch", "stream"])
def test_a_query_that_is_denied_shows_no_secret(
    spark: SparkSession, spark_log: Path, s3: S3Place, s3_lake: Lake, checkpoint: str, kind: str
) -> None:
    options = {**s3.options, "lake.s3.secret.access.key": "wrongwrongwrongwrong"}
    if kind == "batch":
        rows = source(spark, s3_lake, subscribe="t", **options)
    else:
        rows = stream(spark, s3_lake, subscribe="t", **options).select("value")
    with pytest.raises(PySparkException, match="The store denies the attempt to read") as caught:
        rows.collect() if kind == "batch" else run(rows, s3_lake, "u", checkpoint, **options)
    assert s3.uri in str(caught.value)
    told = [str(caught.value), spark_log.read_text(errors="replace")]
    hidden(s3, *told)
    assert not any("wrongwrong" in text for text in told)


def test_an_unknown_option_of_the_store_is_refused(spark: SparkSession, s3: S3Place, s3_lake: Lake) -> None:
    with fails_with("There is no option 'lake.s3.regoin'", "nearest known one is 'lake.s3.region'"):
        source(spark, s3_lake, subscribe="t", **s3.options, **{"lake.s3.regoin": "r"}).collect()
