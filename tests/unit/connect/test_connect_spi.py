"""What tasks and connectors do that override nothing but what they must."""

from tidelog.connect.config.definition import REQUIRED, ConfigDef, Importance
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.spi.connectors import ExactlyOnceSupport, SinkConnector, SourceConnector
from tidelog.connect.spi.sinks import SinkTask


class Flushed(SinkTask):
    def __init__(self):
        self.flushed = []

    def start(self, config, context):
        raise AssertionError

    def put(self, records):
        raise AssertionError

    def flush(self, offsets):
        self.flushed.append(dict(offsets))


def test_a_sink_commits_what_it_took_after_a_flush():
    task = Flushed()
    assert task.pre_commit({("t", 0): 5}) == {("t", 0): 5}
    assert task.flushed == [{("t", 0): 5}]


class Source(SourceConnector):
    keys = ConfigDef().define("file", ConfigKind.STRING, REQUIRED, Importance.HIGH, "The file.")

    @classmethod
    def check_together(cls, values):
        if values["file"].value == "/":
            values["file"].errors.append("/ is no file")

    def task_configs(self, max_tasks):
        return []


class Sink(SinkConnector):
    @classmethod
    def config_def(cls):
        return Source.keys

    task_configs = Source.task_configs


def test_a_connector_promises_nothing_that_it_does_not_say():
    assert Source.exactly_once_support({}) is ExactlyOnceSupport.UNSUPPORTED
    assert Source.alter_offsets({}, [({"file": "a"}, {"at": 1})]) is False
    assert Sink.alter_offsets({}, {("t", 0): 3}) is False


def test_a_connector_is_validated_by_its_keys():
    assert [(value.name, len(value.errors)) for value in Source.validate({})] == [("file", 1)]
    assert [(value.name, value.value) for value in Sink.validate({"file": "a"})] == [("file", "a")]
    assert [value.errors for value in Source.validate({"file": "/"})] == [["/ is no file"]]
