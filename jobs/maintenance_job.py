"""What the maintenance jobs have in common: `tidelog maintain` with Spark tasks that read and write the segments.

Each job is that command with parts of its own for a default. It needs no jars beyond Spark's.
"""

from collections.abc import Sequence
from functools import partial

from tidelog.commands.declare import program
from tidelog.commands.maintain_options import MaintainOptions, MaintenancePart
from tidelog.commands.maintain_run import maintain_lake
from tidelog.commands.options import Session
from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.log.lake import Lake
from tidelog.spark.session import session as spark_session


def maintenance_job(name: str, summary: str, parts: Sequence[MaintenancePart]) -> "partial[int]":
    """The `main` of the program `name`, which does `parts` unless `--only` says otherwise."""

    def on_spark(lake: Lake) -> tuple[SparkExecutor, SparkCompactor]:
        spark = spark_session(f"tidelog {name}", delta=False)
        return SparkExecutor(spark, lake.uri, lake.options), SparkCompactor(spark, lake.uri, lake.options)

    def run(call: Session, asked: MaintainOptions) -> None:
        maintain_lake(call, asked, parts, on_spark)

    example = f"spark-submit jobs/{name}.py --lake s3://bucket/lake --every 5m"
    return program(name, run, summary=summary, example=example)
