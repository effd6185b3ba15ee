"""What the maintenance jobs have in common: `tidelog maintain` with Spark to carry its units out.

Each job is that command with parts of its own for a default. It needs no jars beyond Spark's.
"""

from collections.abc import Sequence

import typer

from tidelog.commands.failures import EXIT_CODES
from tidelog.commands.maintain_options import (
    DryRunOption,
    EveryOption,
    NowOption,
    OnlyOption,
    Part,
    PatternOption,
    TopicsOption,
    wanted,
)
from tidelog.commands.maintain_run import carry_out
from tidelog.commands.options import DebugOption, FormatOption, LakeOption, StoreOption, session
from tidelog.jobs.on_spark.compaction import SparkCompactor
from tidelog.jobs.on_spark.executor import SparkExecutor
from tidelog.jobs.programs import lone_app
from tidelog.spark.session import session as spark_session


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
        store: StoreOption = None,
        output: FormatOption = None,
        debug: DebugOption = False,
    ) -> None:
        call = session(context, lake, output, debug, store)
        asked = wanted(only or parts, topics, pattern, now, dry_run, every)
        with call.open_lake() as opened:
            spark = spark_session(f"tidelog {name}", delta=False)
            carry_out(
                call,
                opened,
                asked,
                executor=SparkExecutor(spark, opened.uri, opened.options),
                compactor=SparkCompactor(spark, opened.uri, opened.options),
            )

    return lone_app(name, summary, run, f"spark-submit jobs/{name}.py --lake s3://bucket/lake --every 5m", EXIT_CODES)
