"""A Spark application of your own as a connector."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED, TEXT
from tidelog.connect.connectors.spark.submission import SparkTask, require_submitter, with_submission_keys
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.spi.connectors import RawConfig, SourceConnector
from tidelog.log.base.keys import REQUIRED

_VERSION: Final = "1.0"
SPARK_KEYS: Final = with_submission_keys(
    ConfigDef()
    .define("spark.application", FILLED, REQUIRED, Importance.HIGH,
            "The program: a Python file or a jar, as spark-submit takes it.")
    .define("spark.application.args", TEXT, "", Importance.HIGH,
            "Its arguments, separated by spaces, quoted as in a shell.")
)  # fmt: skip


class SparkApplicationTask(SparkTask):
    """Supervises the application that the configuration names."""

    keys = SPARK_KEYS

    def command(self, config: Mapping[str, str]) -> Sequence[str]:
        """As of `SparkTask`."""
        values = SPARK_KEYS.parse(config)
        return [values["spark.application"], *shlex.split(values["spark.application.args"])]


class SparkApplication(SourceConnector):
    """A program that spark-submit starts."""

    names = ("tidelog.connect.SparkApplication", "SparkApplication")
    version = _VERSION
    guarantee = "The application's own: the worker starts it, starts it again after failures, and stops it."
    task_class = SparkApplicationTask
    keys = SPARK_KEYS

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the keys, and that a local application is there. Raises `ConnectError`."""
        super().start(config, context)
        values = SPARK_KEYS.parse(config)
        application = values["spark.application"]
        if "://" not in application and not Path(application).is_file():
            raise ConnectError(f"spark.application {application} is no file. Correct the key.")
        require_submitter(values)
