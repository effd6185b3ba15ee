"""A program that spark-submit runs: started, watched, started again after failures, and stopped with its processes."""

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import TEXT
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.runtime.worker_settings import SPARK_LIMIT, WorkerSettings
from tidelog.connect.spi.applications import (
    ApplicationPhase,
    ApplicationStatus,
    ApplicationTask,
    ApplicationTaskContext,
)
from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.config.key_type import int_of, long_of

# After running this long, an application that fails has begun again rather than failed again.
_STEADY_S: Final = 600.0
_LOG: Final = logging.getLogger(__name__)
_TAIL_BYTES: Final = 4_000
_CONF: Final = "spark.conf."
_SUBMIT: Final = "spark-submit"
_PYTHONS: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")


@dataclass
class RestartRule:
    """How long to wait before the next start: doubled with each failure in a row, up to a limit.

    `most`: failures in a row after which the application is given up, -1 for never.
    """

    first_s: float
    limit_s: float
    most: int
    failures: int = 0

    def failed(self, ran_s: float) -> float | None:
        """Count a failure of an application that ran that long; the seconds to wait, None to give it up."""
        if ran_s >= _STEADY_S:
            self.failures = 0
        self.failures += 1
        if 0 <= self.most < self.failures:
            return None
        return BackoffRule(self.first_s, self.limit_s).pause_s(self.failures)


class SparkSlots:
    """How many applications run in this process; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    def take(self, limit: int) -> bool:
        """Whether one more may run where at most `limit` do; then it counts until `give`."""
        with self._lock:
            if self._running >= limit:
                return False
            self._running += 1
            return True

    def give(self) -> None:
        """One application less."""
        with self._lock:
            self._running -= 1


SLOTS: Final = SparkSlots()


def with_submission_keys(definition: ConfigDef) -> ConfigDef:
    """Add how an application is submitted and supervised."""
    return (
        definition.define("spark.submit", TEXT, _SUBMIT, Importance.MEDIUM, "The program that submits it.")
        .define("spark.submit.args", TEXT, "", Importance.MEDIUM,
                "What goes before the application, such as --master; spark.conf.* keys become --conf.")
        .define("restart.backoff.ms", long_of(0), 1_000, Importance.LOW,
                "How long after a failure the application is started again; doubled with each.")
        .define("restart.backoff.max.ms", long_of(0), 300_000, Importance.LOW, "The longest wait.")
        .define("max.restarts", int_of(-1), 10, Importance.MEDIUM,
                "After how many failures in a row the task fails; -1 for never.")
        .define("stop.timeout.ms", long_of(0), 30_000, Importance.LOW,
                "How long a stopped application may take before it is killed.")
    )  # fmt: skip


class SparkTask(ApplicationTask):
    """Supervises one application. `keys`: those of `with_submission_keys` among them; `named`: for the log."""

    keys: ConfigDef

    def __init__(self, clock: Clock | None = None, slots: SparkSlots = SLOTS) -> None:
        self._clock, self._slots = clock or SystemClock(), slots
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._holds_slot = self._done = False
        self._trace: str | None = None
        self.named = ""

    @abstractmethod
    def command(self, config: Mapping[str, str]) -> Sequence[str]:
        """The application and its arguments, as spark-submit takes them. Called before each start of it."""

    def start(self, config: Mapping[str, str], context: ApplicationTaskContext) -> None:
        """As of `ApplicationTask`."""
        self._values: Mapping[str, Any] = self.keys.parse(config)
        self._most = WorkerSettings.of(context.worker_properties).spark_limit
        self._config = config
        self._rule = RestartRule(
            self._values["restart.backoff.ms"] / 1000,
            self._values["restart.backoff.max.ms"] / 1000,
            self._values["max.restarts"],
        )
        self._not_before_s = self._started_s = self._clock.elapsed_s()

    def look(self) -> ApplicationStatus:
        """Start the application, or look after it. Raises `ConnectError` where it failed too often."""
        if self._process is not None and (code := self._process.poll()) is not None:
            self._ended(code)
        if self._process is None and not self._done and self._clock.elapsed_s() >= self._not_before_s:
            self._submit()
        if self._process is not None:
            return ApplicationStatus(ApplicationPhase.RUNNING)
        if self._done:
            return ApplicationStatus(ApplicationPhase.ENDED)
        if self._trace is not None:
            return ApplicationStatus(ApplicationPhase.RESTARTING, self._trace)
        waits = f"{self._most} Spark applications run in this worker ({SPARK_LIMIT}): this one waits for an end."
        return ApplicationStatus(ApplicationPhase.WAITING, waits)

    def stop(self) -> None:
        """Stop the application: by SIGTERM to its processes, by SIGKILL after stop.timeout.ms."""
        process = self._process
        if process is not None and process.poll() is None:
            _signal(process, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._values["stop.timeout.ms"] / 1000)
            _signal(process, signal.SIGKILL)  # and what it may have left
            process.wait()
        self._release()

    def _submit(self) -> None:
        if not self._holds_slot:
            self._holds_slot = self._slots.take(self._most)
        if not self._holds_slot:
            return
        self._output = tempfile.TemporaryFile(prefix="tidelog-spark-")  # noqa: SIM115
        application = self.command(self._config)
        self.named = Path(application[0]).name
        command = submission(self._values, self._config, application)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the administrator's command
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**dict.fromkeys(_PYTHONS, sys.executable), **os.environ},
            )
        except OSError as error:
            self._release()
            raise ConnectError(
                f"{command[0]} can't be started: {error}. Install Spark, or set spark.submit."
            ) from error
        self._started_s = self._clock.elapsed_s()
        _LOG.info("Submitted: application=%s pid=%d", self.named, self._process.pid)

    def _ended(self, code: int) -> None:
        tail = self._tail()
        ran_s = self._clock.elapsed_s() - self._started_s
        assert self._process is not None  # the caller looks
        _signal(self._process, signal.SIGKILL)  # what a killed application has left
        self._release()
        if code == 0:
            self._done = True
            _LOG.info("%s has ended.", self.named)
            return
        wait_s = self._rule.failed(ran_s)
        what = f"{self.named} ended with {code} after {ran_s:.0f} s"
        if wait_s is None:
            raise ConnectError(f"{what}, {self._rule.failures} times in a row; its last output:\n{tail}")
        self._trace = f"{what}; it is started again in {wait_s:.1f} s. Its last output:\n{tail}"
        _LOG.warning("%s", self._trace)
        self._not_before_s = self._clock.elapsed_s() + wait_s

    def _tail(self) -> str:
        if self._output is None:
            return ""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _TAIL_BYTES))
        return self._output.read().decode("utf-8", "replace")

    def _release(self) -> None:
        self._process = None
        if self._output is not None:
            self._output.close()
            self._output = None
        if self._holds_slot:
            self._slots.give()
            self._holds_slot = False


def submission(values: Mapping[str, Any], config: Mapping[str, str], application: Sequence[str]) -> list[str]:
    """The command line of an application. Where there is setpriv, it ends with the worker's process."""
    confs = {key.removeprefix(_CONF): value for key, value in config.items() if key.startswith(_CONF)}
    command = [submitter(values["spark.submit"]), *shlex.split(values["spark.submit.args"])]
    for key, value in sorted(confs.items()):
        command += ["--conf", f"{key}={value}"]
    command += application
    setpriv = shutil.which("setpriv")
    return command if setpriv is None else [setpriv, "--pdeathsig", "TERM", *command]


def submitter(wanted: str) -> str:
    """The program that submits: by default the one on the path, else the one that pyspark brings this Python."""
    beside = Path(sys.executable).with_name(_SUBMIT)
    return str(beside) if wanted == _SUBMIT and shutil.which(wanted) is None and beside.is_file() else wanted


def require_submitter(values: Mapping[str, Any]) -> None:
    """Raises `ConnectError` where what spark.submit names is not installed."""
    submit = values["spark.submit"]
    if shutil.which(submitter(submit)) is None:
        raise ConnectError(f"{submit} is not installed here. Install Spark, or set spark.submit.")


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to all processes of the application."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
