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


def write_archive() -> bool:
    """Start Spark, run a query, and let its JVM write the archive as it ends, in a process that has no JVM yet.

    Whether it was to be written: with an archive there Spark does not start.
    """
    path = archive()
    if path is None or path.exists() or " " in str(path):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    options = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={path} {_QUIET}"
    spark = session("archive", "local[1]", {"spark.driver.extraJavaOptions": options})
    spark.range(10).selectExpr("id % 3 AS k").groupBy("k").count().collect()
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # by which PySpark's JVM ends
    gateway.proc.wait()
    return True
