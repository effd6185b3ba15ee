"""A driver for tests: runs a topology as an application does, over a lake of its own in a temporary folder."""

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from os import W_OK, access
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

import tidelog.spark
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.spark.class_archive import short_lived
from tidelog.spark.streams.application import Streams
from tidelog.spark.streams.endpoints import InProcess
from tidelog.spark.streams.graph import Topology
from tidelog.spark.streams.serdes import STRING, Serde

# Memory, where Linux has it: nothing of a test needs to survive.
_MEMORY = "/dev/shm"  # noqa: S108
_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    # How soon a query looks again for records: a look takes a moment of a core, for each query that waits.
    "spark.sql.streaming.pollingDelay": "20ms",
    # A test's few rows are through before code for them is generated and compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nothing outlives a test: no file of a checkpoint needs another one with its checksum, or the default manager's
    # atomic rename, for which Hadoop asks processes of their own (`readlink`) about each file.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    # State of a few keys: in memory, and in one small file for each batch.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
}
# Local files without Hadoop's own checksums: each is a second file, and a process (`chmod`) that sets its mode.
_FILES = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}


class TopologyTestDriver:
    """Runs a topology for a test, as Kafka's driver of this name does.

    All drivers of a process share a Spark session: the one that runs, else a small local one. Records that are piped
    in are processed when an output topic is read, all in one batch: of a table only the newest value of each key is
    sent on then, as Kafka Streams' cache does it. Read after each record to see each value. `config` may name a `lake`
    whose topics a test has made; it stays.
    """

    def __init__(
        self, topology: Topology, config: Mapping[str, Any] | None = None, spark: SparkSession | None = None
    ) -> None:
        self._folder = tempfile.mkdtemp(prefix="tidelog-streams-", dir=_MEMORY if access(_MEMORY, W_OK) else None)
        given = {"application.id": "test", "commit.interval.ms": "0", **_SMALL, **(config or {})}
        self._opened = ExitStack()
        self.lake = self._lake(given.pop("lake", None))
        shared = spark or SparkSession.getActiveSession() or _small_session()
        endpoints = InProcess(self.lake, Path(self._folder) / "feeds", _FILES)
        self._streams = Streams(topology, {**given, "lake": self.lake.uri}, shared, endpoints)
        for node in topology.nodes:
            if node.kind == "SOURCE":
                for topic in node.topic.split(","):
                    self.lake.ensure_topic(topic)

    def _lake(self, given: Any) -> Lake:
        if isinstance(given, Lake):
            return given
        if given is not None:
            return self._opened.enter_context(Lake(given, create=False))
        made = self._opened.enter_context(Lake(f"{self._folder}/lake"))
        made.alter_config({"num.partitions": "1"})
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def create_input_topic(self, topic: str, key: Serde = STRING, value: Serde = STRING) -> "TestInputTopic":
        """A topic to pipe records into."""
        return TestInputTopic(self, topic, key, value)

    def create_output_topic(self, topic: str, key: Serde = STRING, value: Serde = STRING) -> "TestOutputTopic":
        """A topic to read what was written to it."""
        return TestOutputTopic(self, topic, key, value)

    def advance(self) -> None:
        """Process all records that were piped in. Raises what the topology fails with."""
        if self._streams.state == "CREATED":
            # One after another: a query's first workers have 10 s to start, on a busy machine too.
            self._streams.start(in_turn=True)
        else:
            self._streams.process_all_available()

    def close(self) -> None:
        """Stop the topology, and delete its lake where it is the driver's own."""
        self._streams.stop()
        self._opened.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class TestInputTopic:
    """A topic that a test pipes records into."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, topic: str, key: Serde, value: Serde) -> None:
        self._lake, self._topic, self._key, self._value = driver.lake, topic, key, value
        driver.lake.ensure_topic(topic)

    def pipe_input(self, key: Any, value: Any, timestamp: datetime | int | None = None) -> None:
        """Pipe a record in; `timestamp` in ms since the epoch, or as a time with its zone, now when there is none."""
        self.pipe_records([(key, value, timestamp)])

    def pipe_key_values(self, records: Iterable[tuple[Any, Any]]) -> None:
        """Pipe keys and values in."""
        self.pipe_records((key, value, None) for key, value in records)

    def pipe_records(self, records: Iterable[tuple[Any, Any, datetime | int | None]]) -> None:
        """Pipe keys, values and timestamps in."""
        rows = []
        for key, value, timestamp in records:
            row: dict[str, Any] = {"key": self._key.dumps(key), "value": self._value.dumps(value)}
            if timestamp is not None:
                row["timestamp"] = _at_ms(timestamp)
            rows.append(row)
        self._lake.topic(self._topic).append(rows)


class TestOutputTopic:
    """A topic whose records a test reads, each once."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, topic: str, key: Serde, value: Serde) -> None:
        self._driver, self._topic, self._key, self._value = driver, topic, key, value
        self._read: dict[int, int] = {}

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        """The keys and values of all records that were not read yet, in their order."""
        return [(key, value) for key, value, _ in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """The newest value of each key among the records that were not read yet."""
        return dict(self.read_key_values_to_list())

    def read_key_value(self) -> tuple[Any, Any]:
        """The key and the value of the only record that was not read yet. Raises `InvalidOptionError`."""
        records = self.read_key_values_to_list()
        if len(records) != 1:
            raise InvalidOptionError(
                f"Topic '{self._topic}' has {len(records)} new records: read_key_values_to_list()."
            )
        return records[0]

    def is_empty(self) -> bool:
        """Whether every record was read."""
        self._driver.advance()
        return all(end <= self._read.get(partition, 0) for partition, (_, end) in self._offsets().items())

    def read_records_to_list(self) -> list[tuple[Any, Any, datetime]]:
        """Keys, values and timestamps of all records that were not read yet."""
        self._driver.advance()
        records = []
        for partition, (_, end) in self._offsets().items():
            start = self._read.get(partition, 0)
            self._read[partition] = end
            for batch in self._driver.lake.topic(self._topic).read(partition, start, end) if start < end else ():
                columns = (batch.column(name).to_pylist() for name in ("key", "value", "timestamp"))
                for key, value, timestamp in zip(*columns, strict=True):
                    records.append((self._key.loads(key), self._value.loads(value), timestamp))
        return records

    def _offsets(self) -> dict[int, tuple[int, int]]:
        return self._driver.lake.offsets(self._topic) if self._driver.lake.peek(self._topic) else {}


def _small_session() -> SparkSession:
    settings = {
        **_SMALL,
        "spark.default.parallelism": "2",
        "spark.driver.extraJavaOptions": short_lived(),
    }
    made = tidelog.spark.session("topology-test", "local[2]", settings, delta=False)
    made.sparkContext.setLogLevel("ERROR")
    return made


def _at_ms(time: datetime | int) -> int:
    return time if isinstance(time, int) else round(time.timestamp() * 1000)
