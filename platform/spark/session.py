"""A Spark session with Delta and tidelog set up."""

import os
import sys
from collections.abc import Mapping, Sequence

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

from tidelog.spark import s3a

# Whether Spark's Parquet scan checks the checksums of pages. The session alone says so: to a reader it is no option.
VERIFY_PAGES = "parquet.page.verify-checksum.enabled"
# What a session needs, and what makes it quick on small topics. A caller's own settings win.
SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Filters on partition, offset and timestamp reach the source.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    VERIFY_PAGES: "true",
    # Delta replays a table's log with this many tasks; 50 by default, for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def configure(builder: SparkSession.Builder, packages: Sequence[str] = ()) -> SparkSession.Builder:
    """Set a builder up for Delta and tidelog, with Delta's jars from Maven (`configure_spark_with_delta_pip`).

    `packages` are coordinates of more jars (`group:artifact:version`), such as a connector's.
    Spark starts its workers with PATH's python3 unless told otherwise, so PYSPARK_PYTHON is set to this Python.
    """
    _workers_are_this_python()
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    return configure_spark_with_delta_pip(builder, list(packages))


def session(
    name: str = "tidelog",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
    *,
    native_s3: bool = False,
    options: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session for topics: `spark = tidelog.spark.session("my-app")`.

    `master` defaults to what spark-submit or SPARK_MASTER says, else `local[*]`. `config` goes over tidelog's
    own settings; `packages` are coordinates of more jars from Maven. Returns the running session when there is one.

    `native_s3` is for native reads on S3 (`read_topic`, `stream_topic`, Delta's SQL): it adds Hadoop's s3a, and tells
    it how to reach the store by a lake's `options` (`lake.s3.endpoint` ...) and the environment's AWS variables. The
    source and the sink need none of it. Raises `InvalidConfigError` for options that are no store's.
    """
    settings = dict(config or {})
    if native_s3:
        packages = (*packages, *s3a.PACKAGES)
        settings = {
            "spark.jars.excludes": ",".join(s3a.EXCLUDED),
            **s3a.session_settings(options or {}, os.environ),
            **settings,
        }
    builder = configure(_builder(name, master), packages)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def plain_session(name: str) -> SparkSession:
    """A session without Delta and its jars, for jobs that read and write segments themselves.

    The master is what spark-submit or SPARK_MASTER says, else `local[*]`. A session that runs already is returned.
    """
    _workers_are_this_python()
    builder = _builder(name, None).config("spark.ui.showConsoleProgress", "false")
    if not _is_submitted():
        builder = builder.config("spark.ui.enabled", "false")
    return builder.getOrCreate()


def _builder(name: str, master: str | None) -> SparkSession.Builder:
    builder = SparkSession.Builder().appName(name)
    if master or not _is_submitted():
        builder = builder.master(master or os.environ.get("SPARK_MASTER") or "local[*]")
    return builder


def _workers_are_this_python() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _is_submitted() -> bool:
    """Whether spark-submit started this process and so has chosen the master."""
    return "SPARK_ENV_LOADED" in os.environ and "PYSPARK_GATEWAY_PORT" in os.environ
