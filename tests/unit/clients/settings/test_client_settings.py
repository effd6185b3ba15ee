"""Configuration of clients: every key of librdkafka's and the Java clients' is known, and does what is said of it.

`vectors/librdkafka_keys.json`: key -> [client, range, default], from CONFIGURATION.md of librdkafka 2.16.
`vectors/java_client_keys.json`: the keys of Kafka 4.1's `ProducerConfig` and `ConsumerConfig`, without sasl and ssl.
"""

import json
import logging
from pathlib import Path

import pytest

from tidelog.clients.settings import AdminSettings, ConsumerSettings, ProducerSettings
from tidelog.clients.settings import common as settings_module
from tidelog.clients.settings.ignored import IGNORED, REFUSED, REFUSED_FOR_PRODUCERS
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.base.keys import keys_of
from tidelog.log.base.typed_values import Whole

VECTORS = Path(__file__).parents[2] / "vectors"
LIBRDKAFKA = json.loads((VECTORS / "librdkafka_keys.json").read_text())
JAVA = json.loads((VECTORS / "java_client_keys.json").read_text())
CONFLUENT = [
    "error_cb",
    "throttle_cb",
    "stats_cb",
    "logger",
    "on_delivery",
    "on_commit",
    "oauth_cb",
    "default.topic.config",
]

PRODUCER = {name: (field, key) for field, key in keys_of(ProducerSettings).items() for name in (key.name, *key.aliases)}
CONSUMER = {name: (field, key) for field, key in keys_of(ConsumerSettings).items() for name in (key.name, *key.aliases)}

# key -> the default here, where it is not librdkafka's
OTHER_DEFAULTS = {
    "client.id": "tidelog",
    "enable.idempotence": True,
    "compression.type": None,
    "compression.codec": None,
    "bootstrap.servers": None,
    "metadata.broker.list": None,
    "max.poll.records": None,
    "auto.offset.reset": "latest",
    "partition.assignment.strategy": ("range", "roundrobin"),
    "partitioner": "murmur2_random",
}


def producer(**conf):
    return ProducerSettings.parse({"lake": "/lake", **conf.pop("conf", {}), **conf}, environ={})


def consumer(**conf):
    return ConsumerSettings.parse({"lake": "/lake", "group.id": "g", **conf.pop("conf", {}), **conf}, environ={})


def refusal(settings, conf):
    with pytest.raises(KafkaException) as caught:
        settings.parse(conf, environ={})
    assert caught.value.args[0] == KafkaError._INVALID_ARG
    return caught.value.args[0].str()


# --- every key is known ------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [ProducerSettings, ConsumerSettings, AdminSettings])
def test_no_client_calls_a_key_of_kafkas_unknown(settings):
    def unknown(name):
        try:
            settings.parse({"lake": "/lake", "group.id": "g", name: object()}, environ={})
        except KafkaException as e:
            return "No such configuration property" in e.args[0].str()
        return False

    assert unknown("nope")
    assert [name for name in {*LIBRDKAFKA, *JAVA, *CONFLUENT} if unknown(name)] == []


@pytest.mark.parametrize("name", sorted(LIBRDKAFKA))
def test_a_key_is_supported_ignored_or_refused_and_only_one_of_them(name):
    supported = name in PRODUCER or name in CONSUMER
    refused = name in REFUSED or name in REFUSED_FOR_PRODUCERS
    assert [supported, name in IGNORED, refused].count(True) == 1


@pytest.mark.parametrize("name", sorted(name for name in LIBRDKAFKA if name in PRODUCER or name in CONSUMER))
def test_supported_keys_have_librdkafkas_defaults_and_ranges(name):
    _, takes, default = LIBRDKAFKA[name]
    for known, settings in ((PRODUCER, producer()), (CONSUMER, consumer())):
        if name not in known:
            continue
        field, key = known[name]
        plain = type(settings).__dataclass_fields__[field].default
        if name in OTHER_DEFAULTS:
            assert plain == OTHER_DEFAULTS[name]
        elif name != "allow.auto.create.topics":  # librdkafka's text has the consumer's
            assert str("" if plain is None else plain).lower().removesuffix(".0") == default
        # an entry of Kafka's may wait for more replicas than one; fetch.min.bytes has its range in its text
        if isinstance(key.kind, Whole) and name not in ("acks", "request.required.acks", "fetch.min.bytes"):
            assert f"{key.kind.low} .. {key.kind.high}" == takes


# Each supported key: a value, and what its field holds then. `test_the_table_is_complete` wants every key here.
P, C = producer, consumer
SUPPORTED = [
    (P, "lake", "/other", "lake", "/other"),
    (P, "bootstrap.servers", "s3://bucket/lake", "lake", "s3://bucket/lake"),
    (C, "metadata.broker.list", "./folder", "lake", "./folder"),
    (P, "storage.options", {"a": 1}, "storage_options", {"a": "1"}),
    (P, "client.id", "me", "client_id", "me"),
    (C, "error_cb", print, "error_cb", print),
    (C, "logger", logging.getLogger("x"), "logger", logging.getLogger("x")),
    (P, "retry.backoff.ms", "7", "retry_backoff_ms", 7),
    (P, "retry.backoff.max.ms", 70, "retry_backoff_max_ms", 70),
    (P, "security.protocol", "PLAINTEXT", "security_protocol", "plaintext"),
    (P, "statistics.interval.ms", "5000", "statistics_interval_ms", 5000),
    (C, "stats_cb", print, "stats_cb", print),
    (P, "acks", "all", "acks", -1),
    (P, "request.required.acks", 1, "acks", 1),
    (P, "enable.idempotence", "FALSE", "enable_idempotence", False),
    (P, "max.in.flight.requests.per.connection", 3, "max_in_flight", 3),
    (P, "max.in.flight", 4, "max_in_flight", 4),
    (P, "retries", 5, "retries", 5),
    (P, "message.send.max.retries", "6", "retries", 6),
    (P, "delivery.timeout.ms", 1000, "delivery_timeout_ms", 1000),
    (P, "message.timeout.ms", 2000, "delivery_timeout_ms", 2000),
    (P, "linger.ms", 0.5, "linger_ms", 0.5),
    (P, "queue.buffering.max.ms", "20", "linger_ms", 20.0),
    (P, "batch.size", 10, "batch_size", 10),
    (P, "batch.num.messages", 11, "batch_num_messages", 11),
    (P, "queue.buffering.max.messages", 12, "queue_max_messages", 12),
    (P, "queue.buffering.max.kbytes", 13, "queue_max_kbytes", 13),
    (P, "buffer.memory", 33_554_432, "queue_max_kbytes", 32_768),
    (P, "message.max.bytes", 1400, "message_max_bytes", 1400),
    (P, "max.request.size", 1500, "message_max_bytes", 1500),
    (P, "compression.type", "lz4", "compression_type", "lz4"),
    (P, "compression.codec", "none", "compression_type", "none"),
    (P, "partitioner", "murmur2_random", "partitioner", "murmur2_random"),
    (P, "on_delivery", print, "on_delivery", print),
    (P, "dr_cb", print, "on_delivery", print),
    (P, "dr_msg_cb", print, "on_delivery", print),
    (P, "delivery.report.only.error", True, "report_only_error", True),
    (P, "allow.auto.create.topics", False, "allow_auto_create_topics", False),
    (P, "queuing.strategy", "fifo", "queuing_strategy", "fifo"),
    (P, "transactional.id", "copier", "transactional_id", "copier"),
    (P, "transaction.timeout.ms", "1000", "transaction_timeout_ms", 1000),
    (C, "group.id", "h", "group_id", "h"),
    (C, "group.instance.id", "i", "group_instance_id", "i"),
    (C, "partition.assignment.strategy", "cooperative-sticky", "assignment_strategy", ("cooperative-sticky",)),
    (C, "group.protocol", "Consumer", "group_protocol", "consumer"),
    (C, "group.remote.assignor", "range", "group_remote_assignor", "range"),
    (C, "session.timeout.ms", 9000, "session_timeout_ms", 9000),
    (C, "heartbeat.interval.ms", 900, "heartbeat_interval_ms", 900),
    (C, "max.poll.interval.ms", 60_000, "max_poll_interval_ms", 60_000),
    (C, "max.poll.records", 500, "max_poll_records", 500),
    (C, "enable.auto.commit", False, "enable_auto_commit", False),
    (C, "auto.commit.enable", 0, "enable_auto_commit", False),
    (C, "auto.commit.interval.ms", 0, "auto_commit_interval_ms", 0),
    (C, "enable.auto.offset.store", "f", "enable_auto_offset_store", False),
    (C, "offset.store.method", "broker", "offset_store_method", "broker"),
    (C, "auto.offset.reset", "smallest", "auto_offset_reset", "earliest"),
    (C, "isolation.level", "Read_Uncommitted", "isolation_level", "read_uncommitted"),
    (C, "fetch.min.bytes", 2, "fetch_min_bytes", 2),
    (C, "fetch.wait.max.ms", 30, "fetch_wait_max_ms", 30),
    (C, "fetch.max.wait.ms", 40, "fetch_wait_max_ms", 40),
    (C, "fetch.max.bytes", 5000, "fetch_max_bytes", 5000),
    (C, "max.partition.fetch.bytes", 6000, "max_partition_fetch_bytes", 6000),
    (C, "fetch.message.max.bytes", 7000, "max_partition_fetch_bytes", 7000),
    (C, "fetch.error.backoff.ms", 8, "fetch_error_backoff_ms", 8),
    (C, "queued.min.messages", 9, "queued_min_messages", 9),
    (C, "queued.max.messages.kbytes", 10, "queued_max_messages_kbytes", 10),
    (C, "topic.metadata.refresh.interval.ms", -1, "topic_metadata_refresh_interval_ms", -1),
    (C, "enable.partition.eof", "true", "enable_partition_eof", True),
    (C, "on_commit", print, "on_commit", print),
]


@pytest.mark.parametrize(("parse", "name", "given", "field", "held"), SUPPORTED)
def test_a_supported_key_reaches_its_field(parse, name, given, field, held):
    conf = {"lake": None} if field == "lake" and name != "lake" else {}
    assert getattr(parse(conf={**conf, name: given}), field) == held


def test_the_table_is_complete():
    assert {row[1] for row in SUPPORTED} == {*PRODUCER, *CONSUMER}


# Fields that hold their only value, or values that are all one, and those that count in the rules between keys.
READ_BY_RULES = {"security_protocol", "queuing_strategy", "offset_store_method", "isolation_level"}
READ_BY_RULES |= {"buffer_memory", "max_in_flight"}


def test_every_supported_key_is_read_by_a_client():
    settings = Path(settings_module.__file__).parent
    code = "".join(p.read_text() for p in settings.parent.rglob("*.py") if p.parent != settings)
    fields = {*keys_of(ProducerSettings), *keys_of(ConsumerSettings)}
    assert {field for field in fields if f".{field}" not in code} == READ_BY_RULES


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "name", "nearest"),
    [
        (ProducerSettings, "bootstrap.serverz", "bootstrap.servers"),
        (ProducerSettings, "Linger_MS", "linger.ms"),
        (ProducerSettings, "lingerms", "linger.ms"),
        (ConsumerSettings, "groupid", "group.id"),
        (ConsumerSettings, "auto.offset.rest", "auto.offset.reset"),
        (ConsumerSettings, "enable.autocommit", "enable.auto.commit"),
        (AdminSettings, "bootstrap-servers", "bootstrap.servers"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(settings, name, nearest):
    said = refusal(settings, {"lake": "/lake", "group.id": "g", name: "x"})
    assert said == f'No such configuration property: "{name}". The nearest known one is "{nearest}".'


def test_an_unknown_key_is_refused_whatever_its_value_and_type():
    assert "No such configuration property" in refusal(ProducerSettings, {"nope": None})
    assert "No such configuration property" in refusal(ProducerSettings, {3: 4})
    with pytest.raises(TypeError, match="dict"):
        ProducerSettings.parse("bootstrap.servers=/lake")


@pytest.mark.parametrize(
    ("settings", "conf", "why"),
    [
        (ProducerSettings, {"sasl.username": "me"}, "storage.options"),
        (AdminSettings, {"security.protocol": "SASL_SSL"}, "storage.options"),
        (ProducerSettings, {"transactional.id": "t", "enable.idempotence": False}, "`transactional.id` is set"),
        (ProducerSettings, {"transactional.id": "t", "acks": 1}, "`acks` must be set to `all`"),
        (ConsumerSettings, {"rebalance_cb": print}, "on_assign"),
        (ProducerSettings, {"key.serializer": print}, "SerializingProducer"),
        (ConsumerSettings, {"value.deserializer": print}, "DeserializingConsumer"),
        (ConsumerSettings, {"group.protocol": "share"}, "classic, consumer"),
        (ConsumerSettings, {"group.remote.assignor": "sticky"}, "uniform, range"),
        *(
            (ConsumerSettings, {"group.protocol": "consumer", name: value}, f"`{name}` is not supported for `group.pro")
            for name, value in {
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 100,
                "partition.assignment.strategy": "range",
            }.items()
        ),
        (ProducerSettings, {"queuing.strategy": "lifo"}, "fifo"),
    ],
)
def test_a_refused_key_says_why(settings, conf, why):
    assert why in refusal(settings, {"lake": "/lake", "group.id": "g", **conf})


def test_keys_that_do_nothing_are_kept_with_their_reason():
    assert dict(producer(conf={"socket.timeout.ms": 10}).ignored) == {"socket.timeout.ms": IGNORED["socket.timeout.ms"]}
    assert dict(consumer(conf={"linger.ms": 1}).ignored) == {"linger.ms": "it is a key of a producer"}
    assert dict(consumer(conf={"transactional.id": "t"}).ignored) == {"transactional.id": "it is a key of a producer"}
    assert dict(AdminSettings.parse({"group.id": "g"}, {}).ignored) == {"group.id": "it is a key of a consumer"}
    assert dict(producer().ignored) == {}
    # another client's key is no excuse for nonsense
    assert "outside allowed range" in refusal(ConsumerSettings, {"group.id": "g", "linger.ms": -1})


def test_none_leaves_a_key_unset_and_topic_keys_may_be_nested():
    assert producer(conf={"linger.ms": None, "sasl.username": None, "socket.timeout.ms": None}) == producer()
    assert producer(conf={"default.topic.config": {"acks": 1}}).acks == 1
    assert "give a dict" in refusal(ProducerSettings, {"default.topic.config": "acks=1"})


def test_two_names_of_a_key_must_agree():
    assert producer(conf={"acks": 1, "request.required.acks": "1"}).acks == 1
    assert "set twice" in refusal(ProducerSettings, {"linger.ms": 1, "queue.buffering.max.ms": 2})
    assert "say different things" in refusal(ProducerSettings, {"buffer.memory": 4096, "queue.buffering.max.kbytes": 5})


# --- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"linger.ms": "a"}, "give a number"),
        ({"linger.ms": 900_001}, "outside allowed range 0..900000"),
        ({"linger.ms": float("nan")}, "outside allowed range"),
        ({"retries": 1.5}, "give a whole number"),
        ({"retries": ""}, "give a whole number"),
        ({"retries": True}, "give a whole number"),
        ({"retries": "1_000"}, "give a whole number"),
        ({"retries": "\u0661"}, "give a whole number"),
        ({"retries": 10**30}, "outside allowed range"),
        ({"linger.ms": "1_0"}, "give a number"),
        ({"linger.ms": 10**400}, "outside allowed range"),
        ({"batch.size": 0}, "outside allowed range 1..2147483647"),
        ({"acks": 2}, "give one of all, -1, 0, 1"),
        ({"compression.type": "brotli"}, "give one of none, gzip, snappy, lz4, zstd"),
        ({"enable.idempotence": "maybe"}, "expected bool value: true or false"),
        ({"on_delivery": 3}, "requires a callable object"),
        ({"partitioner": "murmur"}, "murmur2"),
        ({"logger": "x"}, "logging.Logger"),
        ({"storage.options": "x"}, "give a dict"),
        ({"client.id": b"x"}, "give a text"),
        ({"lake": 3}, "as a text"),
        ({"lake": " "}, "Give a folder's path"),
    ],
)
def test_a_value_that_a_producers_key_does_not_take(conf, why):
    said = refusal(ProducerSettings, conf)
    assert f'for configuration property "{next(iter(conf))}": ' in said
    assert why in said


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"group.id": ""}, "length is 0"),
        ({"group.id": "g" * 250}, "length is 250"),
        ({"auto.offset.reset": "nope"}, "earliest"),
        ({"partition.assignment.strategy": "range,foo"}, "cooperative-sticky"),
        ({"partition.assignment.strategy": ""}, "cooperative-sticky"),
        ({"fetch.min.bytes": 0}, "outside allowed range"),
    ],
)
def test_a_value_that_a_consumers_key_does_not_take(conf, why):
    assert why in refusal(ConsumerSettings, {"group.id": "g", **conf})


@pytest.mark.parametrize("text", ["latest", "LARGEST", "end"])
def test_words_go_in_any_case(text):
    assert consumer(conf={"auto.offset.reset": text}).auto_offset_reset == "latest"


def test_javas_none_is_librdkafkas_error():
    assert consumer(conf={"auto.offset.reset": "none"}).auto_offset_reset == "error"
    assert consumer(conf={"auto.offset.reset": "error"}).auto_offset_reset == "error"


def test_strategies_come_as_text_or_list():
    for given in ("sticky, range", ["sticky", "range"]):
        assert consumer(conf={"partition.assignment.strategy": given}).assignment_strategy == ("sticky", "range")
