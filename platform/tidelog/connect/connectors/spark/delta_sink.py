"""The Delta sink whose MERGE is Spark's: one supervised application that reads the topics itself."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Final

from tidelog.connect.config.definition import Importance
from tidelog.connect.config.values import TEXT
from tidelog.connect.connectors.delta_changes import table_keys
from tidelog.connect.connectors.spark.submission import SparkTask, require_submitter, with_submission_keys
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.spi.applications import ApplicationTaskContext
from tidelog.connect.spi.connectors import RawConfig, SinkConnector
from tidelog.log.config.key_type import long_of

_VERSION: Final = "1.0"
_PROGRAM: Final = Path(__file__).with_name("delta_program.py")
SPARK_DELTA_KEYS: Final = with_submission_keys(
    table_keys()
    .define("flush.size", long_of(1), 1_000_000, Importance.MEDIUM, "How many records a commit has at most.")
    .define("rotate.interval.ms", long_of(0), 5_000, Importance.MEDIUM, "How long lies between two commits.")
    .define("checkpoint.location", TEXT, "", Importance.MEDIUM,
            "The folder or address of the application's checkpoint; in the lake, below __connect, when empty.")
)  # fmt: skip


@dataclass(frozen=True)
class DeltaJob:
    """`lake`, `options`: the lake and how its store is reached. `config`: the connector's. `worker`: the worker's
    properties, whose converters are the default. `group_id`: the consumer group that shows how far the sink is.
    """

    lake: str
    options: Mapping[str, str]
    config: Mapping[str, str]
    worker: Mapping[str, str]
    group_id: str

    @property
    def connector(self) -> str:
        """The connector's name."""
        return self.config["name"]

    @cached_property
    def text(self) -> str:
        """The job as `of` takes it."""
        return json.dumps(asdict(self))

    @staticmethod
    def of(text: str) -> "DeltaJob":
        """The job of a text."""
        found: dict[str, Any] = json.loads(text)
        return DeltaJob(**found)

    @staticmethod
    def read(path: str) -> "DeltaJob":
        """The job of a file."""
        return DeltaJob.of(Path(path).read_text(encoding="utf-8"))


class SparkDeltaTask(SparkTask):
    """Supervises the application, and hands it the configuration."""

    keys = SPARK_DELTA_KEYS
    _handed: IO[str] | None = None

    def start(self, config: Mapping[str, str], context: ApplicationTaskContext) -> None:
        """As of `ApplicationTask`."""
        super().start(config, context)
        lake = context.lake
        worker = {key: value for key, value in context.worker_properties.items() if ".converter" in key}
        self._job = DeltaJob(lake.uri, dict(lake.options), dict(config), worker, context.group_id)

    def command(self, config: Mapping[str, str]) -> Sequence[str]:  # noqa: ARG002
        """As of `SparkTask`. The configuration has passwords, which no command line may show."""
        self._take_back()
        self._handed = tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="tidelog-connect-")  # noqa: SIM115
        self._handed.write(self._job.text)
        self._handed.flush()
        return [str(_PROGRAM), self._handed.name]

    def stop(self) -> None:
        """As of `ApplicationTask`."""
        super().stop()
        self._take_back()

    def _take_back(self) -> None:
        if self._handed is not None:
            self._handed.close()
            self._handed = None


class SparkDeltaSink(SinkConnector):
    """Delta tables, merged by key, by Spark: for tables and batches that one process can't merge."""

    names = ("tidelog.connect.SparkDeltaSink", "SparkDeltaSink")
    version = _VERSION
    guarantee = (
        "Exactly once: a batch's offsets are in the application's checkpoint before it is merged, and each commit of "
        "the table has the batch's number as a transaction version. One Spark application runs it, supervised."
    )
    task_class = SparkDeltaTask
    keys = SPARK_DELTA_KEYS

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the keys, and that Spark is here. Raises `ConnectError`."""
        super().start(config, context)
        require_submitter(SPARK_DELTA_KEYS.parse(config))
        if find_spec("pyspark") is None:
            raise ConnectError("This connector needs Spark: pip install 'tidelog[connect,spark]'.")

    def task_configs(self, max_tasks: int) -> Sequence[RawConfig]:  # noqa: ARG002
        """One task: the application has its own tasks."""
        return [self.config]
