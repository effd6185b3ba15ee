"""Spark's own standalone cluster on this machine: a master and workers, each a process group of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from support.spark_queries import FEW_RECORDS
from support.waiting import eventually

from tidelog.spark.class_archive import short_lived

PATIENCE_S = 240.0
_HOME = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_SETTINGS = (
    "spark.cores.max=2",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.driver.memory=512m",
    "spark.ui.enabled=false",
    "spark.sql.shuffle.partitions=2",
    *(f"{name}={value}" for name, value in FEW_RECORDS.items()),
    f"spark.executor.extraJavaOptions={short_lived()}",
    f"spark.driver.extraJavaOptions={short_lived()}",
)
# What Spark and Python write where a program begins to fail, or a task or an executor is lost.
_TROUBLE = re.compile(r"\bERROR\b|^Traceback|^Caused by|\bLost task|^[\w.]+(Error|Exception)\b")
_BEFORE, _AFTER, _FIRST_TROUBLES, _LAST_LINES, _WIDTH = 2, 4, 12, 15, 500


class Cluster:
    """A master and two workers. Ports are chosen by the system and read from the logs.

    `environment`: what drivers' environment holds over this process's.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._processes: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def start(self) -> None:
        """Start all, and wait until the workers have registered."""
        loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._launch("master", _class(_MASTER, *loopback))
        said = eventually(
            lambda: re.search(r"Starting Spark master at (spark://\S+)", self.log("master")), "a master", PATIENCE_S
        )
        self.master = said.group(1)
        for number in (1, 2):
            own = ("--cores", "4", "--memory", "2g", "--work-dir", str(self._folder / f"work-{number}"))
            self.workers.append(self._launch(f"worker-{number}", _class(_WORKER, *loopback, *own, self.master)))
        eventually(lambda: self.log("master").count("Registering worker") == 2, "two workers", PATIENCE_S)

    def submit(self, name: str, script: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Submit a Python program, whose driver runs here, with one core on each worker."""
        settings = [part for setting in _SETTINGS for part in ("--conf", setting)]
        return self._launch(name, [_bin("spark-submit"), "--master", self.master, *settings, str(script), *arguments])

    def log(self, name: str) -> str:
        """What a process has written to stderr so far."""
        path = self._folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def why(self, name: str) -> str:
        """What a program that failed says of the reason."""
        return troubles(self.log(name))

    def output(self, name: str) -> str:
        """What a process has written to stdout so far."""
        return (self._folder / f"{name}.out").read_text()

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors at once."""
        _kill(self.workers[number - 1])

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a program that was submitted."""
        _kill(process)

    def stop(self) -> None:
        """End all that was started."""
        for process in reversed(self._processes):
            _kill(process)

    def _launch(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": short_lived(),
            "SPARK_LOCAL_DIRS": str(self._folder / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            **self._environment,
        }
        environment.pop("SPARK_HOME", None)
        with (self._folder / f"{name}.log").open("wb") as log, (self._folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                command, env=environment, cwd=self._folder, stdout=out, stderr=log, start_new_session=True
            )
        self._processes.append(process)
        return process


def troubles(log: str) -> str:
    """The lines about the first troubles in a log, each with its number, and the last lines.

    The first one is the reason: what follows, and fills pages, are stacks of all that ends with it.
    """
    lines = log.splitlines()
    first = [at for at, line in enumerate(lines) if _TROUBLE.search(line)][:_FIRST_TROUBLES]
    shown = {near for at in first for near in range(at - _BEFORE, at + _AFTER + 1)}
    shown |= set(range(len(lines) - _LAST_LINES, len(lines)))
    return "\n".join(f"{at + 1}: {lines[at][:_WIDTH]}" for at in sorted(shown & set(range(len(lines)))))


@contextmanager
def cluster_in(folder: Path, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """A running cluster, which ends with the block whatever happens in it."""
    cluster = Cluster(folder, environment)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _bin(name: str) -> str:
    return str(_HOME / "bin" / name)


def _class(name: str, *arguments: str) -> list[str]:
    return [_bin("spark-class"), name, *arguments]


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # the JVM and what it started; Python workers end with it
    process.wait()
