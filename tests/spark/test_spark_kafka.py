"""Spark's own `format("kafka")`, unmodified, over a broker; `make compat` runs it in real-time mode, too."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support import spark_kafka_runs
from support.brokers import running_broker
from support.kafka_clients import ready

from tidelog.broker.base.settings import GroupSettings
from tidelog.log.lake import Lake


@pytest.mark.parametrize("run", [spark_kafka_runs.batches, spark_kafka_runs.micro_batches])
def test_records_are_written_and_read_back(
    spark: SparkSession, lake: Lake, tmp_path: Path, run: Callable[[SparkSession, str, Path], None]
) -> None:
    ready(spark_kafka_runs.CONNECTOR)
    spark_kafka_runs.load(spark)
    with running_broker(lake, groups=GroupSettings(initial_rebalance_delay_ms=0)) as address:
        run(spark, address, tmp_path)
