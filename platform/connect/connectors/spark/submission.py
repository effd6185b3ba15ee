"""A Spark application as a connector: started by spark-submit, watched, started again, and stopped with its task."""

import logging
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import between, non_empty
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.connectors.spark.supervision import RestartRule, SparkSlots
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.runtime.worker_settings import SPARK_LIMIT, SPARK_LIMIT_DEFAULT
from tidelog.connect.spi.connectors import RawConfig, SourceConnector
from tidelog.connect.spi.sources import SourceTask, SourceTaskContext
from tidelog.log.base.clock import Clock, SystemClock

_LOG: Final = logging.getLogger(__name__)
_VERSION: Final = "1.0"
_WAIT_S: Final = 0.5
_TAIL_BYTES: Final = 2_000
_CONF: Final = "spark.conf."
SLOTS: Final = SparkSlots()
SPARK_KEYS: Final = (
    ConfigDef()
    .define("spark.application", ConfigKind.STRING, REQUIRED, Importance.HIGH,
            "The program: a Python file or a jar, as spark-submit takes it.", validator=non_empty)
    .define("spark.application.args", ConfigKind.STRING, "", Importance.HIGH,
            "Its arguments, separated by spaces, quoted as in a shell.")
    .define("spark.submit", ConfigKind.STRING, "spark-submit", Importance.MEDIUM, "The program that submits it.")
    .define("spark.submit.args", ConfigKind.STRING, "", Importance.MEDIUM,
            "What goes before the application, such as --master; spark.conf.* keys become --conf.")
    .define("restart.backoff.ms", ConfigKind.LONG, 1_000, Importance.LOW,
            "How long after a failure the application is started again; doubled with each.", validator=between(0))
    .define("restart.backoff.max.ms", ConfigKind.LONG, 300_000, Importance.LOW, "The longest wait.",
            validator=between(0))
    .define("max.restarts", ConfigKind.INT, 10, Importance.MEDIUM,
            "After how many failures in a row the task fails; -1 for never.", validator=between(-1))
    .define("stop.timeout.ms", ConfigKind.LONG, 30_000, Importance.LOW,
            "How long a stopped application may take before it is killed.", validator=between(0))
)  # fmt: skip


class SparkApplicationTask(SourceTask):
    """Supervises one application. It gives no records: the application reads and writes topics itself."""

    def __init__(self, clock: Clock | None = None, slots: SparkSlots = SLOTS) -> None:
        self._clock, self._slots = clock or SystemClock(), slots
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._holds_slot = False

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Begin; the application is started with the first poll."""
        self._values: Mapping[str, Any] = SPARK_KEYS.parse(config)
        self._most = int(context.worker_properties.get(SPARK_LIMIT, SPARK_LIMIT_DEFAULT))
        self._context, self._command = context, command_of(self._values, config)
        self._rule = RestartRule(
            self._values["restart.backoff.ms"] / 1000,
            self._values["restart.backoff.max.ms"] / 1000,
            self._values["max.restarts"],
        )
        self._not_before_s = self._started_s = self._clock.elapsed_s()
        self._done = False

    def poll(self) -> Sequence[SourceRecord]:
        """Start the application, or look after it. Raises `ConnectError` where it failed too often."""
        if self._process is None:
            if not self._done and self._clock.elapsed_s() >= self._not_before_s:
                self._submit()
        elif (code := self._process.poll()) is not None:
            self._ended(code)
        self._context.wait(_WAIT_S)
        return []

    def stop(self) -> None:
        """Stop the application: by SIGTERM to its processes, by SIGKILL after stop.timeout.ms."""
        process = self._process
        if process is not None and process.poll() is None:
            _signal(process, signal.SIGTERM)
            try:
                process.wait(self._values["stop.timeout.ms"] / 1000)
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()
        self._release()

    def _submit(self) -> None:
        if not self._holds_slot:
            self._holds_slot = self._slots.take(self._most)
        if not self._holds_slot:
            return
        self._output = tempfile.TemporaryFile(prefix="tidelog-spark-")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the administrator's command
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._release()
            raise ConnectError(
                f"{self._command[0]} can't be started: {error}. Install Spark, or set spark.submit."
            ) from error
        self._started_s = self._clock.elapsed_s()

    def _ended(self, code: int) -> None:
        tail = self._tail()
        ran_s = self._clock.elapsed_s() - self._started_s
        self._release()
        if code == 0:
            self._done = True
            _LOG.info("%s has ended.", self._values["spark.application"])
            return
        wait_s = self._rule.failed(ran_s)
        what = f"{self._values['spark.application']} ended with {code} after {ran_s:.0f} s"
        if wait_s is None:
            raise ConnectError(f"{what}, {self._rule.failures} times in a row; its last output:\n{tail}")
        _LOG.warning("%s; it is started again in %.1f s. Its last output:\n%s", what, wait_s, tail)
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


def command_of(values: Mapping[str, Any], config: Mapping[str, str]) -> list[str]:
    """The command line of an application. Where there is setpriv, the application ends with the worker's process."""
    confs = {key.removeprefix(_CONF): value for key, value in config.items() if key.startswith(_CONF)}
    command = [values["spark.submit"], *shlex.split(values["spark.submit.args"])]
    for key, value in sorted(confs.items()):
        command += ["--conf", f"{key}={value}"]
    command += [values["spark.application"], *shlex.split(values["spark.application.args"])]
    setpriv = shutil.which("setpriv")
    return command if setpriv is None else [setpriv, "--pdeathsig", "TERM", *command]


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to all processes of the application."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


class SparkApplication(SourceConnector):
    """A program that spark-submit starts."""

    names = ("tidelog.connect.SparkApplication", "SparkApplication")
    version = _VERSION
    guarantee = "The application's own: the worker starts it, starts it again after failures, and stops it."
    task_class = SparkApplicationTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The application, its arguments, and how it is supervised."""
        return SPARK_KEYS

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the keys, and that a local application is there. Raises `ConnectError`."""
        super().start(config, context)
        values = SPARK_KEYS.parse(config)
        application, submit = values["spark.application"], values["spark.submit"]
        if "://" not in application and not Path(application).is_file():
            raise ConnectError(f"spark.application {application} is no file. Correct the key.")
        if shutil.which(submit) is None:
            raise ConnectError(f"{submit} is not installed here. Install Spark, or set spark.submit.")
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:  # noqa: ARG002
        """One task: an application has its own tasks."""
        return [self._config]
