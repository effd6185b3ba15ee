"""A warning names a misspelt option and the nearest name; none that Spark's Kafka connector knows is misspelt."""

import logging
from contextlib import suppress

import pytest

from pyspark_tidelog import DefaultSource
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.spark_options import ignored_settings, unknown_options
from tidelog.sinks import options as sink_options
from tidelog.sources import options as source_options

OPTIONS = (*source_options.SOURCE_OPTIONS, *sink_options.SINK_OPTIONS)
# Client settings of Kafka's whose names look like those that count here.
KAFKAS_OWN = (
    "kafka.bootstrap.controllers",
    "kafka.client.id",
    "kafka.compression.gzip.level",
    "kafka.compression.zstd.level",
    "kafka.group.instance.id",
    "kafka.group.protocol",
    "kafka.interceptor.classes",
    "kafka.partition.assignment.strategy",
    "kafka.partitioner.ignore.keys",
    "kafka.transactional.id",
)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("subscribepatern", "subscribePattern"),
        ("failOnDataLos", "failOnDataLoss"),
        ("topics", "topic"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("compression.type", "compression"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("txnId", "txnAppId"),
    ],
)
def test_a_misspelt_option_is_told_with_the_nearest(written: str, meant: str) -> None:
    told = unknown_options({written: "x", "lake": "/l", "topic": "t"}, OPTIONS)
    assert told == [f"Unknown option '{written.lower()}' is ignored. Did you mean '{meant}'?"]


def test_an_option_that_is_near_to_none_is_told_alone() -> None:
    assert unknown_options({"colour": "red"}, OPTIONS) == ["Unknown option 'colour' is ignored."]


@pytest.mark.parametrize(
    "name",
    [
        *(option.name for option in OPTIONS),
        *KAFKAS_OWN,
        "checkpointLocation",
        "path",
        "lake.s3.region",
        "kafka.group.id",
    ],
)
def test_no_known_option_is_misspelt(name: str) -> None:
    for written in (name, name.lower(), name.upper()):
        assert unknown_options({written: "x"}, OPTIONS) == []


@pytest.mark.parametrize("honoured", [source_options._HONOURED, sink_options._HONOURED])
def test_kafkas_own_settings_are_taken_for_none_of_those_that_count(honoured: tuple[str, ...]) -> None:
    for name in KAFKAS_OWN:
        assert "Did you mean" not in str(ignored_settings({name: "x"}, honoured))
    assert "Did you mean 'kafka.bootstrap.servers'?" in str(ignored_settings({"kafka.bootstrap.server": "x"}, honoured))


@pytest.mark.parametrize("side", ["reader", "streamReader", "writer", "streamWriter"])
def test_each_side_tells_it_before_it_refuses_what_is_missing(side: str, caplog: pytest.LogCaptureFixture) -> None:
    """Where `subscribe` or `topic` is what is misspelt, that explains the error that follows. A process warns once."""
    source = DefaultSource({"kafka.client.id": side, "subscibe": "t", "topc": "t"})
    arguments = [source.schema(), False] if side.lower().endswith("writer") else [source.schema()]
    with caplog.at_level(logging.WARNING, "tidelog.spark"):
        for _ in range(2):
            with suppress(InvalidOptionError):
                getattr(source, side)(*arguments)
    assert [record.getMessage() for record in caplog.records] == [
        "Unknown option 'subscibe' is ignored. Did you mean 'subscribe'?",
        "Unknown option 'topc' is ignored. Did you mean 'topic'?",
    ]
