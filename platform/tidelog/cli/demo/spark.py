"""Spark for the demo: a session whose start does not fill the terminal."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from rich.console import Console

import tidelog.spark
from tidelog.commands.failures import UsageProblemError
from tidelog.spark.class_archive import short_lived

# For one machine, and some hundred thousand records.
_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    # Four tasks for each batch write: enough for a bar that moves, and few files.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "84000",
    # To plan again after each stage, and to choose files by statistics, takes jobs that last longer than reading all of
    # these tables.
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.stats.skipping": "false",
}
_OUTPUTS = (1, 2)


@contextmanager
def spark_session(log: Path) -> Iterator[SparkSession]:
    """A session of the demo's own; what Spark prints from its start on goes to `log`.

    A session that is running already is used, with settings of its own, and not stopped. Raises `UsageProblemError`
    when Spark does not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        spark = running.newSession()
        for name, value in _SETTINGS.items():
            if name.startswith(("spark.sql.", "spark.databricks.")):
                spark.conf.set(name, value)
        yield spark
        return
    log.write_bytes(b"")
    with _bridge_messages_to(log):
        spark = _start(log)
        try:
            yield spark
        finally:
            spark.stop()


def _start(log: Path) -> SparkSession:
    settings = {
        **_SETTINGS,
        "spark.driver.extraJavaOptions": short_lived(),
        "spark.sql.warehouse.dir": str(log.parent / "warehouse"),
    }
    try:
        with _output_to(log):
            return tidelog.spark.session("tidelog demo", config=settings)
    except PySparkRuntimeError as e:
        raise UsageProblemError(
            f"Spark did not start: {e} It needs Java 17 or newer (JAVA_HOME, or 'java' on the PATH) and, the first"
            f" time, the network for Delta's jars. What it printed is in {log}."
        ) from e


@contextmanager
def steady_output(console: Console) -> Iterator[None]:
    """Let the console show the spinner where it does, even while `_output_to` holds stdout and stderr."""
    shown_on = console.file
    if _descriptor_of(shown_on) not in _OUTPUTS:
        yield
        return
    shown_on.flush()
    with os.fdopen(os.dup(shown_on.fileno()), "w", encoding=console.encoding) as own:
        console.file = own
        try:
            yield
        finally:
            console.file = shown_on


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """Let this process's stdout and stderr go to a file, below Python: Java, which is started here, keeps that."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in _OUTPUTS}
    try:
        with open(log, "ab") as file:
            for number in _OUTPUTS:
                os.dup2(file.fileno(), number)
        yield
    finally:
        for number, descriptor in kept.items():
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextmanager
def _bridge_messages_to(log: Path) -> Iterator[None]:
    """Let py4j's messages go to a file: when Ctrl-C interrupts a call, it logs that, which else would be printed."""
    logger, handler = logging.getLogger(), logging.FileHandler(log)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def _descriptor_of(file: IO[str]) -> int | None:
    try:
        return file.fileno()
    except OSError:  # a stream without one, as tests put in place
        return None
