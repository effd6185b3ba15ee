"""Jars of Maven for a session, found or fetched by Spark's own resolver before the session is made.

`spark.jars.packages` does that only where Python starts the JVM: under spark-submit the JVM is there already, and Spark
passes the setting over. Wherever it counts, the resolver prints a hundred lines. So the resolver is called here, in the
JVM as it is, and its words are kept for the case that it fails.
"""

import logging
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext

from tidelog.log.base.errors import MissingJarsError
from tidelog.log.base.typed_values import listed

logger = logging.getLogger("tidelog.spark")

SCALA_VERSION: Final = "2.13"
# One class of Delta's: where it can be loaded, Delta's jars are there.
_DELTA_CLASS: Final = "io.delta.sql.DeltaSparkSessionExtension"
_GROWING_LOADER: Final = "org.apache.spark.util.MutableURLClassLoader"
# What Delta asks for and Spark brings. Spark's own are loaded first, so that these would only be fetched and copied.
_SPARK_BRINGS: Final = (
    "com.fasterxml.jackson.core:*",
    "com.github.luben:zstd-jni",
    "commons-logging:*",
    "commons-pool:*",
    "io.airlift:aircompressor",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:*",
    "org.apache.parquet:*",
    "org.locationtech.jts:*",
    "org.roaringbitmap:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)


def delta_package() -> str:
    """The coordinates of Delta for this Spark, of the version whose Python package is installed."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA_VERSION}:{version('delta-spark')}"


def delta_is_there(jvm: Any) -> bool:
    """Whether a JVM can load Delta: a platform's own, or one of spark-submit's `--packages` or `--jars`."""
    return bool(jvm.org.apache.spark.util.Utils.classIsLoadable(_DELTA_CLASS))


def require_delta(jvm: Any) -> None:
    """Refuse a session that can't read Delta's tables. Raises `MissingJarsError`."""
    if not delta_is_there(jvm):
        raise MissingJarsError(
            "This session reads no Delta tables, since it was started without Delta's jars. Read the topic with"
            " format('tidelog'), or start Spark with tidelog.spark.session(), or with 'spark-submit --packages"
            f" {delta_package()}'."
        )


def add_packages(jvm: Any, packages: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """Let a JVM load these packages of Maven, and what they need; the jars' paths, for `spark.jars`.

    `settings` are Spark's: `spark.jars.ivy`, `.ivySettings`, `.repositories` and `.excludes` count as for spark-submit.
    Only what is not in Ivy's folder is fetched. Raises `MissingJarsError`.
    """
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    while loader is not None and not is_instance_of(SparkContext._gateway, loader, _GROWING_LOADER):
        loader = loader.getParent()
    if loader is None:
        raise _missing(packages, "this JVM takes no more jars once it runs")
    paths = fetch(jvm, packages, settings)
    for path in paths:
        loader.addURL(jvm.java.io.File(path).toURI().toURL())
    return paths


def fetch(jvm: Any, packages: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """The paths of these packages' jars and of those that they need. Raises `MissingJarsError`."""
    ivy = jvm.org.apache.spark.util.MavenUtils
    said = jvm.java.io.ByteArrayOutputStream()
    printed = jvm.java.io.PrintStream(said, True)
    excluded = [*_SPARK_BRINGS, *listed(settings.get("spark.jars.excludes", ""))]
    try:
        ivy_settings, without_m2 = (_ivy_settings(jvm, settings, printed, use_m2=use_m2) for use_m2 in (True, False))
        _announce(packages, Path(str(ivy_settings.getDefaultIvyUserDir())) / "jars", settings)
        resolved = ivy.resolveMavenCoordinates(
            ",".join(packages),
            ivy_settings,
            jvm.scala.Option.apply(without_m2),
            True,
            jvm.PythonUtils.toSeq(excluded),
            False,
            printed,
        )
    except Py4JError as e:
        raise _missing(packages, _reason(e)) from None
    finally:
        logger.debug("%s", said.toString())
    return [str(resolved.apply(at)) for at in range(resolved.size())]


def _ivy_settings(jvm: Any, settings: Mapping[str, str], printed: Any, *, use_m2: bool) -> Any:
    option = jvm.scala.Option
    repositories = option.apply(settings.get("spark.jars.repositories"))
    folder = option.apply(settings.get("spark.jars.ivy"))
    ivy = jvm.org.apache.spark.util.MavenUtils
    if file := settings.get("spark.jars.ivySettings"):
        return ivy.loadIvySettings(file, repositories, folder, printed)
    return ivy.buildIvySettings(repositories, folder, use_m2, printed)


def _announce(packages: Sequence[str], folder: Path, settings: Mapping[str, str]) -> None:
    """Say what takes a while, once for a machine: a warning, since that is what is shown by default."""
    absent = [name for name in packages if not (folder / _file_name(name)).exists()]
    if absent:
        source = settings.get("spark.jars.ivySettings", "Maven's repositories")
        logger.warning("Fetching %s from %s into %s, once for this machine.", ", ".join(absent), source, folder)


def _file_name(package: str) -> str:
    """What Ivy calls a package's jar."""
    group, _, artifact = package.replace("/", ":").partition(":")
    return f"{group}_{artifact.replace(':', '-')}.jar"


def _reason(error: Py4JError) -> str:
    if not isinstance(error, Py4JJavaError):
        return str(error)
    thrown = error.java_exception
    return str(thrown.getMessage() or thrown.getClass().getName())


def _missing(packages: Sequence[str], why: str) -> MissingJarsError:
    names = ",".join(packages)
    return MissingJarsError(
        f"Spark has no {names}, and could not fetch it: {why}. Start it with 'spark-submit --packages {names}', or with"
        " the files as --jars; docs/spark.md says how to name a mirror or a proxy."
        " A session of format('tidelog') alone needs neither: tidelog.spark.session(delta=False)."
    )
