"""A Spark session with Delta and tidelog set up."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidelog.log.base.shallow_errors import shallow
from tidelog.log.base.typed_values import listed
from tidelog.log.lake import Lake
from tidelog.spark import s3a
from tidelog.spark.jars import add_packages, delta_is_there, delta_package
from tidelog.spark.native import VERIFY_PAGES
from tidelog.spark.python_processes import forking_python
from tidelog.spark.refusals import name_tidelog_first
from tidelog.spark.topic_views import DATABASE_KEY, keep_views

# What makes a session quick on small topics. What the caller, spark-submit or spark-defaults.conf says goes over it.
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    VERIFY_PAGES: "true",
    # Delta replays a table's log with this many tasks; 50 by default, for tables of millions of files.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Over columnar input, Spark 4.2.0 turns what a UDF by Arrow gives into rows, columns and rows again, and a Python
    # UDF by Arrow over Parquet may wait for ever.
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_EXTENSIONS: Final = "spark.sql.extensions"
_DELTA_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG: Final = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}
_PACKAGES: Final = "spark.jars.packages"
_JARS: Final = "spark.jars"
_MASTER: Final = "spark.master"
_PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
# What starts Spark's Python workers. Only where it can be imported for certain: on this machine, by this Python.
_DAEMON: Final = {"spark.python.daemon.module": "tidelog.sources.worker_daemon"}

# The loggers of PySpark's errors. It makes each with the first error, by setting `logging`'s class for a moment: two
# threads that do so at once get a plain logger for good, which raises a TypeError in place of every error since.
for _name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
    PySparkLogger.getLogger(_name)
name_tidelog_first()


@shallow
def configure(
    builder: SparkSession.Builder, packages: Sequence[str] = (), *, delta: bool = True
) -> SparkSession.Builder:
    """Set a builder up for tidelog and, with `delta`, for Delta: the last call before `getOrCreate`.

    Starts Spark's JVM, with what the builder holds by then, unless spark-submit has, and lets it load Delta and
    `packages`, coordinates of more jars (`group:artifact:version`), fetched from Maven where they are missing.
    Where a session runs already, nothing is set. Raises `MissingJarsError`.
    """
    _workers_are_this_python()
    if SparkContext._active_spark_context is not None:
        return builder
    asked = [*packages, *listed(builder._options.pop(_PACKAGES, ""))]
    if not _is_submitted():
        builder = _with_defaults(builder, {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}, {})
    with _planners_forked(is_local=builder._options.get(_MASTER, "").startswith("local")):
        SparkContext._ensure_initialized(conf=_conf_of(builder))
    jvm = SparkContext._jvm
    given = {**dict(SparkConf(_jvm=jvm).getAll()), **builder._options}
    builder = _with_defaults(builder, _SETTINGS, given)
    if given.get(_MASTER, "").startswith("local") and _python_of_workers(given) == sys.executable:
        builder = _with_defaults(builder, _DAEMON, given)
    if delta:
        builder = _with_delta(builder, given)
        if not delta_is_there(jvm):
            asked.insert(0, delta_package())
    if asked:
        jars = [*listed(given.get(_JARS, "")), *add_packages(jvm, asked, given)]
        builder = builder.config(_JARS, ",".join(dict.fromkeys(jars)))
    return builder


@shallow
def session(
    name: str = "tidelog",
    master: str | None = None,
    config: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
    *,
    delta: bool = True,
    native_s3: bool = False,
    options: Mapping[str, str] | None = None,
    lake: str | PathLike[str] | Lake | None = None,
    database: str = "tidelog",
) -> SparkSession:
    """A Spark session for topics: `spark = tidelog.spark.session("my-app")`, in Python or under spark-submit.

    `master` defaults to what spark-submit or SPARK_MASTER says, else `local[*]`. `config` goes over tidelog's
    own settings; `packages` are coordinates of more jars from Maven. Where a session runs, that one is returned, and
    the calling thread may write batches with it: Spark finds `format("tidelog")` by the thread's active session.

    `delta` is for `read_topic`, `stream_topic`, views and Delta's SQL; `format("tidelog")` needs no jars.
    `lake` makes each of its topics a live view in the in-memory `database`: `SELECT … FROM tidelog.orders`. New topics
    are there within 5 s, those that are deleted go. The session's global temporary views are all in that database.
    `native_s3` is for the same on S3: it adds Hadoop's s3a, and sets it up to reach the store by a lake's `options`
    (`lake.s3.endpoint` ...) and the environment's AWS variables. Raises `MissingJarsError` when jars can't be had, and
    `InvalidConfigError` for options that are no store's, and for a session that runs and has another `database`.
    """
    settings = dict(config or {})
    if lake is not None:
        settings.setdefault(DATABASE_KEY, database)
    if native_s3:
        packages = (*packages, *s3a.PACKAGES)
        settings = {
            "spark.jars.excludes": ",".join(s3a.EXCLUDED),
            **s3a.session_settings(options or {}, os.environ),
            **settings,
        }
    builder = SparkSession.Builder().appName(name)
    if master or not _is_submitted():
        builder = builder.master(master or os.environ.get("SPARK_MASTER") or "local[*]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = configure(builder, packages, delta=delta).getOrCreate()
    # In a JVM only the thread that made it has it for its active session.
    SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
    if lake is not None:
        keep_views(spark, lake if isinstance(lake, Lake) else Lake(lake, create=False, options=options), database)
    return spark


def _with_delta(builder: SparkSession.Builder, given: Mapping[str, str]) -> SparkSession.Builder:
    extensions = listed(given.get(_EXTENSIONS, ""))
    if _DELTA_EXTENSION not in extensions:
        builder = builder.config(_EXTENSIONS, ",".join([*extensions, _DELTA_EXTENSION]))
    return _with_defaults(builder, _DELTA_CATALOG, given)


def _with_defaults(
    builder: SparkSession.Builder, defaults: Mapping[str, str], given: Mapping[str, str]
) -> SparkSession.Builder:
    """The builder with what neither it nor `given` has."""
    for key, value in defaults.items():
        if key not in given and key not in builder._options:
            builder = builder.config(key, value)
    return builder


def _conf_of(builder: SparkSession.Builder) -> SparkConf:
    """What a JVM is started with, which takes only Spark's own settings."""
    conf = SparkConf()
    for key, value in builder._options.items():
        if key.startswith("spark."):
            conf.set(key, str(value))
    return conf


def _workers_are_this_python() -> None:
    """Spark starts its workers with PATH's python3 unless it is configured otherwise."""
    for name in _PYTHONS:
        os.environ.setdefault(name, sys.executable)


@contextmanager
def _planners_forked(*, is_local: bool) -> Iterator[None]:
    """Let a JVM that starts meanwhile, of a local Spark, fork what plans queries where it would start this Python.

    It alone: other programs that this process starts may outlive it, and what it forks from.
    """
    wanted = is_local and SparkContext._gateway is None and not _is_submitted()
    names = [name for name in _PYTHONS if wanted and os.environ[name] == sys.executable]
    if names:
        os.environ.update(dict.fromkeys(names, forking_python()))
    try:
        yield
    finally:
        os.environ.update(dict.fromkeys(names, sys.executable))


def _python_of_workers(given: Mapping[str, str]) -> str:
    return given.get("spark.pyspark.python") or os.environ["PYSPARK_PYTHON"]


def _is_submitted() -> bool:
    """Whether spark-submit started this process and so has chosen the master."""
    return "SPARK_ENV_LOADED" in os.environ and "PYSPARK_GATEWAY_PORT" in os.environ
