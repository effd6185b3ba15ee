"""How Spark starts its Python workers."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def test_tidelogs_daemon_starts_the_workers_of_a_local_session(spark: SparkSession) -> None:
    """By PySpark's own, each task that reads a topic begins with 40 ms of waiting."""
    parent = udf(lambda: Path(f"/proc/{os.getppid()}/cmdline").read_text().replace("\0", " "))
    assert "tidelog.sources.worker_daemon" in spark.range(1).select(parent()).collect()[0][0]


def test_only_sparks_jvm_is_given_what_forks(spark: SparkSession) -> None:
    """Other programs that this one starts may outlive it."""
    jvm = spark._jvm
    assert jvm is not None
    given = Path(jvm.System.getenv("PYSPARK_DRIVER_PYTHON"))
    assert given.parent.name.startswith("tidelog-spark-")
    assert os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable) == sys.executable
