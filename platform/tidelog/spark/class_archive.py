"""An archive of the classes with which Spark starts: with it, Spark's JVM starts in two thirds of the time.

It is the JVM's own class data sharing (JEP 350). Set-up of a clone writes it, in the JVM that fetches Delta's jars. A
JVM that it does not fit goes on without.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tidelog.spark.session import session

FOLDER = Path(sys.prefix) / "var/tidelog"
# For JVMs of a few minutes: to compile for long runs costs them more than it gains. An archive is of one collector.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Of thousands of classes that can't be archived, the JVM would print a line each.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def archive(folder: Path = FOLDER, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where the archive for this Java and this Spark is, or will be; None without a Java."""
    home = environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java" if home else "java", path=environ.get("PATH"))
    if java is None:
        return None
    program = Path(java).resolve()
    versions = f"{program} {program.stat().st_mtime_ns} {pyspark.__version__}"
    return folder / f"spark-{hashlib.sha256(versions.encode()).hexdigest()[:12]}.jsa"


def with_archive(options: str, path: Path | None = None) -> str:
    """Options of Spark's JVM, with those by which it starts from the archive where there is one."""
    path = archive() if path is None else path
    if path is None or not path.exists() or " " in str(path):
        return options
    return f"{options} -XX:SharedArchiveFile={path} -Xshare:auto {_QUIET}"


def short_lived() -> str:
    """Options of a JVM of Spark's that lives for some minutes, with the archive where there is one."""
    return with_archive(_SHORT_LIVED)


def write_archive() -> bool:
    """Start Spark, run a query, and let its JVM write the archive as it ends, in a process that has no JVM yet.

    Whether it was to be written: with an archive there Spark does not start.
    """
    path = archive()
    if path is None or path.exists() or " " in str(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".new")  # until its JVM has ended: one that is stopped leaves half of it
    settings = {
        "spark.driver.extraJavaOptions": f"{_SHORT_LIVED} -XX:ArchiveClassesAtExit={unfinished} {_QUIET}",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    spark = session("archive", "local[1]", settings)
    spark.range(10).selectExpr("id % 3 AS k").groupBy("k").count().collect()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # by which PySpark's JVM ends
    gateway.proc.wait()
    if unfinished.exists():
        unfinished.replace(path)
    return True
