"""`spark-submit` as a person calls it: the one beside this Python, bare."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.spark_queries import FEW_RECORDS

from tidelog.spark.class_archive import short_lived

# A machine's own configuration of Spark: for a few records, small, and sparing with words.
_DEFAULTS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.ui.enabled": "false",
    **FEW_RECORDS,
}
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c: %m%n
"""

BIN = Path(sys.executable).parent
# What a shell may have set for Spark already.
_FORGOTTEN = ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_SUBMIT_ARGS", "SPARK_MASTER")


def environment(folder: Path) -> dict[str, str]:
    """A shell's environment after `. .venv/bin/activate`, where Spark starts fast. Writes to the folder."""
    conf = folder / "spark-conf"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in _DEFAULTS.items()))
    (conf / "log4j2.properties").write_text(_LOGGING)
    kept = {name: value for name, value in os.environ.items() if name not in _FORGOTTEN}
    return {
        **kept,
        "PATH": f"{BIN}{os.pathsep}{kept['PATH']}",
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": short_lived(),
    }


def submit(
    folder: Path, program: Path, *arguments: str, spark: tuple[str, ...] = (), more: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Submit a program from a folder; its exit code, what it printed, and Spark's log.

    `spark`: Spark's options; `more`: what else the environment holds.
    """
    done = subprocess.run(
        ["spark-submit", *spark, str(program), *arguments],
        env={**environment(folder), **(more or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr
