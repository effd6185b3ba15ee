"""Options of the source: every one has a row that fails when it is ignored; refusals are the connector's words."""

from collections.abc import Callable
from typing import Any

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.sources import kafka_messages
from tidelog.sources.limits import AtOffsets, AtTimestamp, AtTimestamps, Earliest, Latest, NoMatch
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.options import (
    SourceOptions,
    parse_batch,
    parse_include_columns,
    parse_include_headers,
    parse_place,
    parse_stream,
)
from tidelog.sources.strategy import Assign, Subscribe, SubscribePattern

Parse = Callable[[dict[str, str], str | None], SourceOptions]
BOTH = (parse_batch, parse_stream)
T0 = TopicPartition("t", 0)
ONE_OF = "following options {} be specified for Kafka source: subscribe, subscribepattern, assign. See the docs for"
DURATION = "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), minutes (m or min), hour (h), "


def with_options(parse: Parse, **options: str) -> SourceOptions:
    return parse({"lake": "/lake", "subscribe": "t", **options}, None)


def kafka(**options: str) -> dict[str, str]:
    return {"kafka." + name.replace("_", "."): value for name, value in options.items()}


@pytest.mark.parametrize("parse", BOTH)
def test_defaults(parse: Parse) -> None:
    options = with_options(parse)
    streaming = parse is parse_stream
    assert options == SourceOptions(
        lake="/lake",
        strategy=Subscribe(("t",)),
        starting=Latest() if streaming else Earliest(),
        ending=Latest(),
        fail_on_data_loss=True,
        min_partitions=None,
        max_records_per_partition=None,
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        max_trigger_delay_ms=15 * 60_000,
        include_headers=False,
        include_columns=False,
        group_id=None,
        group_id_prefix="spark-kafka-source" if streaming else "spark-kafka-relation",
        fetch_attempts=3,
        fetch_retry_interval_ms=1000,
        warnings=(),
    )


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"SUBSCRIBE": " b, a ,,"}, "strategy", Subscribe(("b", "a"))),
        ({"subscribePattern": " or.*s "}, "strategy", SubscribePattern("or.*s")),
        ({"assign": '{"t":[0]}'}, "strategy", Assign(frozenset({T0}))),
        ({"startingOffsets": " Earliest "}, "starting", Earliest()),
        ({"startingOffsets": ' {"t":{"0":5}} '}, "starting", AtOffsets({T0: 5})),
        ({"startingOffsetsByTimestamp": '{"t":{"0":5}}'}, "starting", AtTimestamps({T0: 5}, NoMatch.ERROR)),
        ({"startingTimestamp": " 5 "}, "starting", AtTimestamp(5, NoMatch.ERROR)),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "Latest"},
            "starting",
            AtTimestamp(5, NoMatch.LATEST),
        ),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestamp": "no", "startingOffsets": "no"},
            "starting",
            AtTimestamp(5, NoMatch.ERROR),
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "startingOffsets": "no"},
            "starting",
            AtTimestamps({T0: 5}, NoMatch.ERROR),
        ),
        ({"failOnDataLoss": "FALSE"}, "fail_on_data_loss", False),
        ({"minPartitions": "7"}, "min_partitions", 7),
        ({"maxRecordsPerPartition": "7"}, "max_records_per_partition", 7),
        ({"includeHeaders": "True"}, "include_headers", True),
        ({"columns": "true"}, "include_columns", True),
        ({"kafka.group.id": "g"}, "group_id", "g"),
        ({"groupIdPrefix": "mine"}, "group_id_prefix", "mine"),
        ({"fetchOffset.numRetries": "9"}, "fetch_attempts", 9),
        ({"fetchOffset.retryIntervalMs": "9"}, "fetch_retry_interval_ms", 9),
        ({"kafka.isolation.level": "Read_Committed"}, "warnings", ()),
        ({"anything": "else"}, "warnings", ()),
        ({"Lake.S3.Region": "Eu-1"}, "store", {"lake.s3.region": "Eu-1"}),
    ],
    ids=str,
)
def test_option_is_honoured(parse: Parse, given: dict[str, str], field: str, value: Any) -> None:
    strategy = (
        {} if {name.lower() for name in given} & {"subscribe", "subscribepattern", "assign"} else {"subscribe": "t"}
    )
    assert getattr(parse({"lake": "/lake", **strategy, **given}, None), field) == value


@pytest.mark.parametrize(
    ("given", "ending"),
    [
        ({"endingOffsets": "LATEST"}, Latest()),
        ({"endingOffsets": '{"t":{"0":-1}}'}, AtOffsets({T0: -1})),
        ({"endingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsets": "no"}, AtTimestamps({T0: 5}, NoMatch.ERROR)),
        ({"endingTimestamp": "5", "endingOffsetsByTimestamp": "no"}, AtTimestamp(5, NoMatch.ERROR)),
        ({"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":-1}}'}, AtOffsets({T0: -1})),
    ],
)
def test_batch_ends_where_it_is_told(given: dict[str, str], ending: object) -> None:
    assert with_options(parse_batch, **given).ending == ending


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"maxOffsetsPerTrigger": "5"}, "max_offsets_per_trigger", 5),
        ({"minOffsetsPerTrigger": "5"}, "min_offsets_per_trigger", 5),
        ({"maxTriggerDelay": "2m"}, "max_trigger_delay_ms", 120_000),
        ({"maxTriggerDelay": " 10S "}, "max_trigger_delay_ms", 10_000),
        ({"maxTriggerDelay": "3min"}, "max_trigger_delay_ms", 180_000),
        ({"maxTriggerDelay": "1h"}, "max_trigger_delay_ms", 3_600_000),
        ({"maxTriggerDelay": "1d"}, "max_trigger_delay_ms", 86_400_000),
        ({"maxTriggerDelay": "250"}, "max_trigger_delay_ms", 250),
        ({"maxTriggerDelay": "2500us"}, "max_trigger_delay_ms", 2),
    ],
)
def test_limits_per_trigger(given: dict[str, str], field: str, value: int) -> None:
    assert getattr(with_options(parse_stream, **given), field) == value


def test_limits_per_trigger_have_no_effect_in_batch_queries() -> None:
    given = {"maxOffsetsPerTrigger": "many", "minOffsetsPerTrigger": "5", "maxTriggerDelay": "soon"}
    with pytest.raises(InvalidOptionError, match='For input string: "many"'):
        with_options(parse_batch, **given)
    options = with_options(parse_batch, **(given | {"maxOffsetsPerTrigger": "9"}))
    assert (options.max_offsets_per_trigger, options.min_offsets_per_trigger) == (None, None)
    assert options.warnings == (
        "maxOffsetsPerTrigger option ignored in batch queries",
        "minOffsetsPerTrigger option ignored in batch queries",
        "maxTriggerDelay option ignored in batch queries",
    )


REFUSED_BY_BOTH: list[tuple[dict[str, str], str]] = [
    ({}, "One of the " + ONE_OF.format("must")),
    ({"subscribe": "a", "subscribePattern": "b"}, "Only one of the " + ONE_OF.format("can")),
    ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
    (
        {"subscribePattern": "  "},
        "Pattern to subscribe is empty as specified value for option 'subscribePattern' is '  '",
    ),
    ({"assign": "t:0"}, "No topicpartitions to assign as specified value for option 'assign' is 't:0'"),
    ({"assign": '{"t":0}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"t":0}'),
    ({"minPartitions": "0"}, "minPartitions must be positive"),
    ({"minPartitions": "2147483648"}, 'For input string: "2147483648"'),
    ({"maxRecordsPerPartition": "0"}, "maxrecordsperpartition must be positive"),
    ({"maxRecordsPerPartition": "1.5"}, 'For input string: "1.5"'),
    (kafka(auto_offset_reset="earliest"), kafka_messages.AUTO_OFFSET_RESET),
    (kafka(key_deserializer="x"), kafka_messages.KEY_DESERIALIZER),
    (kafka(value_deserializer="x"), kafka_messages.VALUE_DESERIALIZER),
    (kafka(enable_auto_commit="x"), "Kafka option 'enable.auto.commit' is not supported"),
    (kafka(interceptor_classes="x"), "Kafka option 'interceptor.classes' is not supported"),
    (kafka(isolation_level="dirty"), "No enum constant org.apache.kafka.common.IsolationLevel.DIRTY"),
    (
        {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"},
        "The value of minOffsetPerTrigger(5) is higher than the maxOffsetsPerTrigger(4).",
    ),
    (
        {"startingOffsets": "soon"},
        'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got soon',
    ),
    (
        {"startingOffsetsByTimestamp": "soon"},
        'Expected e.g. {"topicA": {"0": 123456789, "1": 123456789},\n'
        '"topicB": {"0": 123456789, "1": 123456789}}, got soon',
    ),
    ({"startingTimestamp": " soon "}, "Expected a single long value, got soon"),
    ({"startingOffsetsByTimestampStrategy": "maybe"}, "No value found for 'MAYBE'"),
    ({"failOnDataLoss": "yes"}, 'For input string: "yes"'),
    ({"failOnDataLoss": " true"}, 'For input string: " true"'),
    ({"includeHeaders": "yes"}, "yes is not a boolean string."),
    ({"fetchOffset.numRetries": "x"}, 'For input string: "x"'),
    ({"fetchOffset.retryIntervalMs": "x"}, 'For input string: "x"'),
    ({"kafkaConsumer.pollTimeoutMs": "x"}, 'For input string: "x"'),
    ({"lake": " "}, "Option 'lake': The lake's address is empty."),
    ({"lake": "", "kafka.bootstrap.servers": "/lake"}, "Option 'lake': The lake's address is empty."),
]


@pytest.mark.parametrize("parse", BOTH)
@pytest.mark.parametrize(("given", "text"), REFUSED_BY_BOTH, ids=str)
def test_refusals(parse: Parse, given: dict[str, str], text: str) -> None:
    names_strategy = not given or {"subscribe", "subscribePattern", "assign"} & given.keys()
    base = {"lake": "/lake"} if names_strategy else {"lake": "/lake", "subscribe": "t"}
    with pytest.raises(InvalidOptionError) as refusal:
        parse(base | given, None)
    assert text in str(refusal.value)


@pytest.mark.parametrize(
    "name",
    [
        "minPartitions",
        "maxRecordsPerPartition",
        "minOffsetsPerTrigger",
        "maxOffsetsPerTrigger",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
        "kafkaConsumer.pollTimeoutMs",
        "failOnDataLoss",
        "includeHeaders",
    ],
)
def test_a_message_of_javas_is_followed_by_the_option_that_it_is_about(name: str) -> None:
    with pytest.raises(InvalidOptionError, match=rf"x.*\. Set option '{name}' to (true or false|a whole number)"):
        with_options(parse_stream, **{name: "x"})


@pytest.mark.parametrize("name", ["minOffsetsPerTrigger", "maxOffsetsPerTrigger"])
def test_each_of_the_two_limits_is_named_when_it_is_the_wrong_one(name: str) -> None:
    given = {"minOffsetsPerTrigger": "1", "maxOffsetsPerTrigger": "2", name: "x"}
    with pytest.raises(InvalidOptionError, match=f"Set option '{name}'"):
        with_options(parse_batch, **given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        (
            {"startingOffsets": '{"t":{"0":-1}}'},
            "startingOffsets for t-0 can't be latest for batch queries on Kafka",
        ),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
        (
            {"endingOffsets": '{"t":{"0":-2}}'},
            "ending offset for t-0 can't be earliest for batch queries on Kafka",
        ),
        ({"endingTimestamp": "x"}, "Expected a single long value, got x"),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            "The specified start offset 5 is greater than the end offset 4 for topic t partition 0.",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsetsByTimestamp": '{"t":{"0":4}}'},
            "The specified start timestamp 5 is greater than the end timestamp 4 for topic t partition 0.",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":4}}'},
            "The specified start offset and end offset should have the same topic-partitions.\n"
            "Topic-partitions for start offset: t-0, topic-partitions for end offset: t-1.",
        ),
    ],
)
def test_batch_refusals(given: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        with_options(parse_batch, **given)
    assert str(refusal.value) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
        ({"endingOffsetsByTimestamp": "{}"}, "ending timestamp not valid in streaming queries"),
        ({"endingTimestamp": "5"}, "ending timestamp not valid in streaming queries"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be positive"),
        ({"maxTriggerDelay": "5x"}, DURATION + 'or day (d). E.g. 50s, 100ms, or 250us.\nInvalid suffix: "x"'),
        (
            {"maxTriggerDelay": "soon"},
            DURATION + "or day (d). E.g. 50s, 100ms, or 250us.\nFailed to parse time string: soon",
        ),
    ],
)
def test_stream_refusals(given: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        with_options(parse_stream, **given)
    assert str(refusal.value) == text


@pytest.mark.parametrize(
    ("given", "environment", "lake"),
    [
        ({"lake": " s3://b/lake ", "kafka.bootstrap.servers": "/no"}, "/no", "s3://b/lake"),
        ({"kafka.bootstrap.servers": "/data/lake"}, "/no", "/data/lake"),
        ({}, "/data/lake", "/data/lake"),
    ],
)
def test_where_the_lake_is(given: dict[str, str], environment: str, lake: str) -> None:
    assert parse_stream({"subscribe": "t", **given}, environment).lake == lake


@pytest.mark.parametrize("environment", [None, "", " "])
def test_no_lake_is_said_in_kafkas_words_and_ours(environment: str | None) -> None:
    with pytest.raises(InvalidOptionError) as refusal:
        parse_batch({"subscribe": "t"}, environment)
    assert str(refusal.value).startswith(
        "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer. Set the option 'lake'"
    )


@pytest.mark.parametrize("brokers", ["localhost:9092", "b1:9092, b2:9092", "PLAINTEXT://b:9092", "[::1]:9092"])
def test_addresses_of_brokers_are_no_lake(brokers: str) -> None:
    with pytest.raises(InvalidOptionError, match="the address of Kafka brokers"):
        parse_stream({"subscribe": "t", "kafka.bootstrap.servers": brokers}, None)


def test_one_warning_names_all_ignored_kafka_settings() -> None:
    options = parse_stream(
        {
            "kafka.bootstrap.servers": "/lake",
            "subscribe": "t",
            "kafka.security.protocol": "SSL",
            "kafka.Max.Poll.Records": "5",
            "kafkaConsumer.pollTimeoutMs": "5",
            "kafka.isolation.level": "read_committed",
        },
        None,
    )
    assert options.warnings == (
        "Ignored, since there is no Kafka client to configure: kafka.max.poll.records, kafka.security.protocol, "
        "kafkaconsumer.polltimeoutms.",
    )


def test_group_id() -> None:
    generated = with_options(parse_stream, groupIdPrefix="mine")
    assert generated.reading_group("7") == "mine-7"
    chosen = with_options(parse_stream, groupIdPrefix="mine", **kafka(group_id="g"))
    assert chosen.reading_group("7") == "g"
    assert chosen.warnings == (
        kafka_messages.CUSTOM_GROUP_ID,
        "Option groupIdPrefix will be ignored as option kafka.group.id has been set.",
    )
    assert (
        "Kafka option 'kafka.group.id' has been set on this query, it is not recommended"
        in kafka_messages.CUSTOM_GROUP_ID
    )


def test_schema_depends_on_two_options_and_the_topics() -> None:
    assert parse_include_headers({"INCLUDEHEADERS": "true"})
    assert not parse_include_headers({})
    assert parse_include_columns({"COLUMNS": "true"})
    assert not parse_include_columns({})


def test_the_topics_are_found_whatever_else_the_query_says() -> None:
    """Spark asks for the schema of streams and batches in one way."""
    given = {"lake": "/lake", "lake.s3.region": "x", "Assign": '{"t":[0]}', "endingOffsets": "nonsense"}
    place = parse_place({**given, "startingOffsets": "latest", "kafka.auto.offset.reset": "earliest"}, None)
    assert (place.lake, place.strategy, dict(place.store)) == (
        "/lake",
        Assign(frozenset({T0})),
        {"lake.s3.region": "x"},
    )
    with pytest.raises(InvalidOptionError, match="must be specified"):
        parse_place({"lake": "/lake"}, None)
