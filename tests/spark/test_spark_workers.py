"""How Spark starts its Python workers."""

import os
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def test_tidelogs_daemon_starts_the_workers_of_a_local_session(spark: SparkSession) -> None:
    """By PySpark's own, each task that reads a topic begins with 40 ms of waiting."""
    parent = udf(lambda: Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " "))
    assert "tidelog.sources.worker_daemon" in spark.range(1).select(parent()).collect()[0][0]
