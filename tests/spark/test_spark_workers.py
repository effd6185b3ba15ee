"""How Spark talks to its Python workers."""

import os

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def test_workers_of_a_local_session_are_reached_over_unix_sockets(spark: SparkSession) -> None:
    """Over TCP each task that reads a topic begins with 40 ms of waiting."""
    seen = udf(lambda: os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "").lower())
    assert spark.range(1).select(seen()).collect()[0][0] == "true"
