"""Connectors for tests: a source that counts, and a sink that keeps what it gets in a file."""

import json
import os
import threading
from pathlib import Path

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.validators import between
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.data.schema import INT64, STRING
from tidelog.connect.spi.connectors import ExactlyOnceSupport, SinkConnector, SourceConnector
from tidelog.connect.spi.sinks import SinkTask
from tidelog.connect.spi.sources import SourceTask

COUNTER, COLLECTOR = "test.CounterSourceConnector", "test.CollectorSinkConnector"


class CounterTask(SourceTask):
    """Gives 0, 1, 2, … as values, each with its key, a few at a time; goes on after the stored offset."""

    def start(self, config, context):
        self.config, self.context = config, context
        self.most, self.batch = int(config["most"]), int(config["batch"])
        self.partition = {"counter": config["counter"]}
        stored = context.offset_storage_reader.offset(self.partition)
        self.at = 0 if stored is None else stored["next"]
        self.committed = []

    def poll(self):
        if self.config.get("fail.at") and self.at >= int(self.config["fail.at"]):
            raise ConnectError(f"failed at {self.at}, as it was to")
        if self.at >= self.most:
            self.context.wait(0.02)
            return []
        numbers = range(self.at, min(self.most, self.at + self.batch))
        self.at = numbers.stop
        if float(self.config.get("pause.s", "0")):
            self.context.wait(float(self.config["pause.s"]))
        return [self.record(number) for number in numbers]

    def record(self, number):
        return SourceRecord(
            topic=self.config["topic"],
            key=f"{self.config['counter']}-{number % 7}",
            key_schema=STRING,
            value=number,
            value_schema=INT64,
            source_partition=self.partition,
            source_offset={"next": number + 1},
        )

    def commit_record(self, record, offset):
        self.committed.append((record.value, offset))


class CounterSource(SourceConnector):
    names = (COUNTER, "counter")
    version = "1.0"
    guarantee = "Exactly once."
    task_class = CounterTask

    @classmethod
    def config_def(cls):
        return (
            ConfigDef()
            .define("topic", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The topic.")
            .define("most", ConfigKind.LONG, 100, Importance.LOW, "How far.", validator=between(0))
            .define("batch", ConfigKind.INT, 5, Importance.LOW, "How many at a time.", validator=between(1))
            .define("pause.s", ConfigKind.DOUBLE, 0.0, Importance.LOW, "Seconds between polls.")
            .define("fail.at", ConfigKind.LONG, None, Importance.LOW, "Where to fail.")
        )

    @classmethod
    def exactly_once_support(cls, config):
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(cls, config, offsets):
        for partition, offset in offsets:
            if "counter" not in partition or (offset is not None and "next" not in offset):
                raise ConnectError("A counter's partition is {counter}, its offset {next}.")
        return True

    def start(self, config, context):
        self.config = self.config_def().parse(config)

    def task_configs(self, max_tasks):
        given = {key: str(value) for key, value in self.config.items() if value is not None}
        return [{**given, "counter": str(number)} for number in range(max_tasks)]


class CollectorTask(SinkTask):
    """Appends [topic, partition, offset, key, value] to a file when it flushes; refuses what it is to refuse."""

    def start(self, config, context):
        self.path, self.context = Path(config["file"]), context
        self.refused, self.busy = config.get("refuse"), int(config.get("busy", "0"))
        self.lines = []

    def put(self, records):
        if records and self.busy:
            self.busy -= 1
            self.context.retry_after(0.01)
            raise RetriableConnectError("busy, as it was to be")
        for record in records:
            if self.refused is not None and str(record.value) == self.refused:
                self.context.errant_record_reporter.report(record, ConnectError("refused, as it was to be"))
                continue
            self.lines.append([record.topic, record.partition, record.offset, record.key, record.value])

    def flush(self, offsets):
        if self.lines:
            with self.path.open("a") as file:
                file.write("".join(json.dumps(one) + "\n" for one in self.lines))
                file.flush()
                os.fsync(file.fileno())
            self.lines.clear()


class CollectorSink(SinkConnector):
    names = (COLLECTOR, "collector")
    version = "1.0"
    guarantee = "At least once."
    task_class = CollectorTask

    @classmethod
    def config_def(cls):
        return (
            ConfigDef()
            .define("file", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The file.")
            .define("refuse", ConfigKind.STRING, None, Importance.LOW, "The value to refuse.")
            .define("busy", ConfigKind.INT, 0, Importance.LOW, "How often to be busy.")
        )

    def start(self, config, context):
        self.config = self.config_def().parse(config)

    def task_configs(self, max_tasks):
        given = {key: str(value) for key, value in self.config.items() if value is not None}
        return [given] * max_tasks


PLUGINS = (CounterSource, CollectorSink)


def collected(path):
    """The records that the sink kept."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def every_thread():
    """The threads of connectors and workers that run."""
    return [one.name for one in threading.enumerate() if one.name.startswith("connect-")]
