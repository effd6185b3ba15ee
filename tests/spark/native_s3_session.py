"""A program of its own for test_spark_s3: a session that the environment's AWS variables tell how to reach S3.

Its arguments: a lake, and as JSON another lake on another server, with options, whose topic `t` holds `x`. It prints
what it read as JSON.
"""

import json
import sys

from support.spark_queries import FEW_RECORDS, run, source, texts, write

import tidelog
from tidelog.log.lake import Lake
from tidelog.spark import create_view, read_topic, stream_topic
from tidelog.spark.class_archive import short_lived


def main(uri: str, other: str, other_options: dict[str, str], checkpoint: str) -> dict[str, object]:
    """What each way to read returned."""
    config = {
        **FEW_RECORDS,
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": short_lived(),
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    spark = tidelog.spark.session("tests-s3", "local[1]", config, native_s3=True)
    spark.sparkContext.setLogLevel("ERROR")
    with Lake(uri) as lake, Lake(other, create=False, options=other_options) as elsewhere:
        write(spark.sql("select 'a' value union all select 'b'"), lake, "t")
        told: dict[str, object] = {"source": texts(source(spark, lake, subscribe="t"))}
        rows = read_topic(spark, uri, "t")
        told["native"] = texts(rows)
        version = lake.topic("t").state().version
        told["time travel"] = texts(read_topic(spark, lake, "t", version=version))
        create_view(spark, lake, "t", "records")
        told["view"] = spark.sql("select count(*) n from records").first().n
        for scheme in ("s3", "s3a"):
            table = f"delta.`{uri.replace('s3://', f'{scheme}://')}/t`"
            told[scheme] = spark.sql(f"select count(*) n from {table}").first().n
        run(stream_topic(spark, lake, "t").select("value"), lake, "u", checkpoint)
        told["streamed"] = texts(read_topic(spark, lake, "u"))
        with_options = read_topic(spark, elsewhere, "t")
        told["other server"] = texts(with_options)
        execution = with_options._jdf.queryExecution()
        told["plans"] = [execution.toString(), execution.analyzed().prettyJson(), execution.sparkPlan().prettyJson()]
    spark.stop()
    return told


if __name__ == "__main__":
    print("told:" + json.dumps(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4])))
