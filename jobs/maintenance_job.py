"""What the maintenance jobs have in common: `tidelog maintain` with Spark to carry its units out.

Each job is that command with parts of its own for a default. It needs no jars beyond Spark's.
"""

import os
import sys
from collections.abc import Sequence

import typer
from pyspark.sql import SparkSession

from tidelog.cli.failures import EXIT_CODES
from tidelog.cli.maintain_options import (
    DryRunOption,
    EveryOption,
    NowOption,
    OnlyOption,
    Part,
    PatternOption,
    TopicsOption,
    wanted,
)
from tidelog.cli.maintaining import carry_out
from tidelog.cli.options import DebugOption, FormatOption, LakeOption, session
from tidelog.jobs.programs import lone_app
from tidelog.jobs.spark_compaction import SparkCompactor
from tidelog.jobs.spark_executor import SparkExecutor
from tidelog.spark.session import is_submitted


def maintenance_job(name: str, summary: str, parts: Sequence[Part]) -> typer.Typer:
    """The program `name`, which does `parts` unless `--only` says otherwise."""

    def run(
        context: typer.Context,
        only: OnlyOption = None,
        topics: TopicsOption = None,
        pattern: PatternOption = None,
        now: NowOption = None,
        dry_run: DryRunOption = False,
        every: EveryOption = None,
        lake: LakeOption = None,
        output: FormatOption = None,
        debug: DebugOption = False,
    ) -> None:
        call = session(context, lake, output, debug)
        asked = wanted(only or parts, topics, pattern, now, dry_run, every)
        with call.open_lake() as opened:
            spark = plain_session(f"tidelog {name}")
            carry_out(
                call,
                opened,
                asked,
                executor=SparkExecutor(spark, opened.uri),
                compactor=SparkCompactor(spark, opened.uri),
            )

    return lone_app(name, summary, run, f"spark-submit jobs/{name}.py --lake s3://bucket/lake --every 5m", EXIT_CODES)


def plain_session(name: str) -> SparkSession:
    """A session without Delta's jars: maintenance reads and writes segments itself.

    The master is what spark-submit or SPARK_MASTER says, else `local[*]`. A session that runs already is returned.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(name).config("spark.ui.showConsoleProgress", "false")
    if not is_submitted():
        builder = builder.master(os.environ.get("SPARK_MASTER") or "local[*]").config("spark.ui.enabled", "false")
    return builder.getOrCreate()
