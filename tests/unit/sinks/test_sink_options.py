"""Options and columns of the sink: every one has a row that fails when it is ignored."""

from collections.abc import Callable
from typing import Any

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.records.partitioners import PARTITIONERS
from tidelog.sinks.options import (
    HEADERS,
    NO_OVERWRITE,
    NULL_TOPIC,
    SinkOptions,
    WriteId,
    check_columns,
    parse_batch,
    parse_stream,
)

Parse = Callable[[dict[str, str], str | None], SinkOptions]
BOTH = (parse_batch, parse_stream)


@pytest.mark.parametrize("parse", BOTH)
def test_defaults(parse: Parse) -> None:
    assert parse({"lake": "/lake"}, None) == SinkOptions(
        lake="/lake",
        topic=None,
        include_timestamp=False,
        compression=None,
        acks="all",
        partitioner="murmur2",
        txn=None,
        warnings=(),
    )


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"Topic": " orders "}, "topic", "orders"),
        ({"includeTimestamp": "TRUE"}, "include_timestamp", True),
        ({"compression": " LZ4 "}, "compression", "lz4"),
        ({"kafka.compression.type": "gzip"}, "compression", "gzip"),
        ({"compression": "Zstd", "kafka.compression.type": "gzip"}, "compression", "zstd"),
        ({"acks": "0"}, "acks", 0),
        ({"kafka.acks": "1"}, "acks", 1),
        ({"kafka.acks": "-1"}, "acks", "all"),
        ({"acks": "1", "kafka.acks": "all"}, "acks", 1),
        ({"partitioner": " Murmur3 "}, "partitioner", "murmur3"),
        ({"partitioner": "my.rules:by_region"}, "partitioner", "my.rules:by_region"),
        (
            {"kafka.partitioner.class": " org.apache.kafka.clients.producer.RoundRobinPartitioner "},
            "partitioner",
            "round_robin",
        ),
        (
            {"kafka.partitioner.class": "org.apache.kafka.clients.producer.UniformStickyPartitioner"},
            "partitioner",
            "random",
        ),
        (
            {"kafka.partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
            "partitioner",
            "murmur2",
        ),
        ({"partitioner": "murmur3", "kafka.partitioner.class": "com.acme.Rules"}, "partitioner", "murmur3"),
        ({"anything": "else", "kafka.acks": "all"}, "warnings", ()),
        ({"Lake.S3.Region": "Eu-1"}, "store", {"lake.s3.region": "Eu-1"}),
        (
            {"kafka.linger.ms": "5", "kafka.batch.size": "5"},
            "warnings",
            ("Ignored, since there is no Kafka client to configure: kafka.batch.size, kafka.linger.ms.",),
        ),
    ],
    ids=str,
)
def test_option_is_honoured(parse: Parse, given: dict[str, str], field: str, value: Any) -> None:
    assert getattr(parse({"lake": "/lake", **given}, None), field) == value


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(
    ("given", "environment", "lake"),
    [
        ({"LAKE": " /a ", "kafka.bootstrap.servers": "/b"}, "/c", "/a"),
        ({"kafka.bootstrap.servers": "/b"}, "/c", "/b"),
        ({}, "/c", "/c"),
    ],
)
def test_where_the_lake_is(parse: Parse, given: dict[str, str], environment: str, lake: str) -> None:
    assert parse(given, environment).lake == lake


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"lake": "", "kafka.bootstrap.servers": "/b"},
            "Option 'lake': The lake's address is empty.",
        ),
        (
            {"kafka.key.serializer": "x"},
            "Kafka option 'key.serializer' is not supported as keys are serialized with ByteArraySerializer.",
        ),
        (
            {"kafka.value.serializer": "x"},
            "Kafka option 'value.serializer' is not supported as value are serialized with ByteArraySerializer.",
        ),
        (
            {"compression": "brotli"},
            "Invalid value brotli for configuration compression.type: String must be one of: none, gzip, snappy, lz4, "
            "zstd",
        ),
        ({"kafka.acks": "2"}, "Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
        ({"includeTimestamp": "yes"}, "yes is not a boolean string. Set option 'includeTimestamp' to true or false"),
        ({"partitioner": "murmur4"}, "Unknown partitioner 'murmur4'."),
        ({"partitioner": "my rules:f"}, "Unknown partitioner 'my rules:f'."),
        (
            {"kafka.partitioner.class": "com.acme.Rules"},
            "'kafka.partitioner.class' names the Java class com.acme.Rules",
        ),
    ],
    ids=str,
)
def test_refusals(parse: Parse, given: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        parse({"lake": "/lake", **given}, None)
    assert str(refusal.value).startswith(text)


def test_no_lake_is_said_in_kafkas_words_and_ours() -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        parse_batch({}, None)
    assert str(refusal.value).startswith(
        "Missing required configuration \"bootstrap.servers\" which has no default value. Set the option 'lake'"
    )


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_can_be_chosen(name: str) -> None:
    assert parse_batch({"lake": "/lake", "partitioner": name}, None).partitioner == name


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"txnAppId": "app", "txnVersion": " 7 "}, WriteId("app", 7)),
        ({"txnAppId": "app", "txnVersion": "0"}, WriteId("app", 0)),
        ({"txnAppId": "app"}, "Options 'txnAppId' and 'txnVersion' go together"),
        ({"txnVersion": "7"}, "Options 'txnAppId' and 'txnVersion' go together"),
        ({"txnAppId": " ", "txnVersion": "7"}, "Option 'txnAppId' is empty."),
        ({"txnAppId": "app", "txnVersion": "-1"}, "Option 'txnVersion' must be an integer from 0 on, not -1."),
        ({"txnAppId": "app", "txnVersion": "1.5"}, "For input string: \"1.5\". Set option 'txnVersion'"),
    ],
)
def test_ids_of_a_batch_write(given: dict[str, str], outcome: WriteId | str) -> None:
    if isinstance(outcome, WriteId):
        assert parse_batch({"lake": "/lake", **given}, None).txn == outcome
    else:
        with pytest.raises(InvalidOptionError) as refusal:
            parse_batch({"lake": "/lake", **given}, None)
        assert str(refusal.value).startswith(outcome)
    with pytest.raises(InvalidOptionError, match="not valid in streaming queries"):
        parse_stream({"lake": "/lake", **given}, None)


ALL = [
    ("value", "binary"),
    ("key", "string"),
    ("headers", HEADERS),
    ("topic", "string"),
    ("partition", "int"),
    ("timestamp", "string"),
    ("more", "double"),
]


def changed(**types: str | None) -> list[tuple[str, str]]:
    """The good columns with some of another type, or (None) without them."""
    kinds = {name: types.get(name, kind) for name, kind in ALL}
    return [(name, kind) for name, kind in kinds.items() if kind is not None]


NO_TOPIC = "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
BYTES = "must be a(n) string or binary"


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (ALL, {}, None),
        ([("value", "string")], {"topic": "t"}, None),
        (changed(topic="int"), {"topic": "t"}, None),
        (changed(timestamp="timestamp"), {"includeTimestamp": "true"}, None),
        ([("value", "binary"), ("value", "int")], {"topic": "t"}, None),
        (changed(topic=None), {}, NO_TOPIC),
        ([("value", "string"), ("Topic", "string")], {}, NO_TOPIC),
        (changed(topic="binary"), {}, "topic attribute unsupported type binary. topic must be a(n) string"),
        (changed(key="int"), {}, f"key attribute unsupported type int. key {BYTES}"),
        (changed(value=None), {}, "Required attribute 'value' not found"),
        (
            [*changed(value=None), ("columns", "string")],
            {},
            "columns attribute unsupported type string. columns must be a struct of a typed topic's fields",
        ),
        ([*changed(value=None), ("columns", "struct<a:int>")], {}, None),
        (changed(value="bigint"), {}, f"value attribute unsupported type bigint. value {BYTES}"),
        (
            changed(headers="map<string,binary>"),
            {},
            f"headers attribute unsupported type map<string,binary>. headers must be a(n) {HEADERS}",
        ),
        (changed(partition="bigint"), {}, "partition attribute unsupported type bigint. partition must be a(n) int"),
        (changed(topic=None, key="int", value=None), {}, NO_TOPIC),
        (changed(key="int", value=None), {}, f"key attribute unsupported type int. key {BYTES}"),
        (
            ALL,
            {"includeTimestamp": "true"},
            "timestamp attribute unsupported type string. timestamp must be a(n) timestamp",
        ),
        (
            changed(timestamp=None),
            {"includeTimestamp": "true"},
            "Required attribute 'timestamp' not found: the option includeTimestamp writes that column. Add it, or "
            "leave the option out to have records stamped when they are written.",
        ),
    ],
)
def test_columns(columns: list[tuple[str, str]], options: dict[str, str], text: str | None) -> None:
    parsed = parse_batch({"lake": "/lake", **options}, None)
    if text is None:
        check_columns(columns, parsed)
        return
    with pytest.raises(InvalidOptionError) as refusal:
        check_columns(columns, parsed)
    assert str(refusal.value) == text


def test_texts_that_tasks_and_save_modes_use() -> None:
    assert NULL_TOPIC == (
        "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for setting a "
        "default topic."
    )
    assert NO_OVERWRITE == (
        "tidelog: save mode Overwrite is not allowed, as a topic is a log: write with .mode('append'). To begin again,"
        " delete the topic's records first ('tidelog topic delete-records'), or write to another topic."
    )


def test_a_batch_may_bring_the_id_of_its_entry() -> None:
    given = {"lake": "l", "topic": "t", "requestId": "R-1"}
    assert parse_batch(given, None).request_id == "R-1"
    assert parse_batch({"lake": "l", "topic": "t"}, None).request_id is None
