"""Configuration of clients: rules between keys, the lake's address, and what is said of keys that do nothing."""

import logging

import pytest

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.open_lake import open_lake
from tidelog.clients.producer.producer import Producer
from tidelog.clients.settings import AdminSettings, ConsumerSettings, ProducerSettings
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.lake import Lake


def producer(conf):
    return ProducerSettings.parse({"lake": "/lake", **conf}, environ={})


def consumer(conf):
    return ConsumerSettings.parse({"lake": "/lake", "group.id": "g", **conf}, environ={})


def refusal(settings, conf):
    with pytest.raises(KafkaException) as caught:
        settings.parse(conf, environ={})
    assert caught.value.args[0] == KafkaError._INVALID_ARG
    return caught.value.args[0].str()


# --- rules between keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "idempotent", "in_flight"),
    [
        ({}, True, 5),
        ({"enable.idempotence": True}, True, 5),
        ({"max.in.flight": 2}, True, 2),
        ({"acks": 1}, False, 1_000_000),
        ({"acks": 0}, False, 1_000_000),
        ({"retries": 0}, False, 1_000_000),
        ({"max.in.flight": 6}, False, 6),
        ({"enable.idempotence": False}, False, 1_000_000),
    ],
)
def test_idempotence_yields_where_nobody_asked_for_it(conf, idempotent, in_flight):
    settings = producer(conf)
    assert (settings.enable_idempotence, settings.max_in_flight) == (idempotent, in_flight)


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"enable.idempotence": True, "acks": 1}, "`acks` must be set to `all` when `enable.idempotence` is true"),
        ({"enable.idempotence": True, "max.in.flight": 6}, "`max.in.flight` must be set <= 5"),
        ({"enable.idempotence": True, "retries": 0}, "`retries` must be set >= 1"),
        ({"linger.ms": 5000, "message.timeout.ms": 1000}, "must be greater than `linger.ms`"),
        ({"linger.ms": 1000, "message.timeout.ms": 1000}, "must be greater than `linger.ms`"),
        ({"retry.backoff.ms": 5, "retry.backoff.max.ms": 4}, "must be <= `retry.backoff.max.ms`"),
    ],
)
def test_a_producers_contradictions(conf, why):
    assert why in refusal(ProducerSettings, conf)


def test_a_producer_without_a_deadline_may_linger():
    assert producer({"linger.ms": 5000, "delivery.timeout.ms": 0}).linger_ms == 5000
    assert producer({"delivery.timeout.ms": 4}).linger_ms == 2


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"session.timeout.ms": 50_000, "max.poll.interval.ms": 20_000}, "must be >= `session.timeout.ms` (50000)"),
        ({"max.poll.interval.ms": 20_000}, "must be >= `session.timeout.ms` (45000)"),
        ({"session.timeout.ms": 5000, "heartbeat.interval.ms": 5000}, "must be lower than `session.timeout.ms`"),
        ({"partition.assignment.strategy": "range,cooperative-sticky"}, "same protocol type"),
    ],
)
def test_a_consumers_contradictions(conf, why):
    assert why in refusal(ConsumerSettings, {"group.id": "g", **conf})


def test_a_short_session_has_a_shorter_heartbeat():
    assert consumer({}).heartbeat_interval_ms == 3000
    assert consumer({"session.timeout.ms": 1500}).heartbeat_interval_ms == 500


def test_a_consumer_names_its_group():
    said = refusal(ConsumerSettings, {"lake": "/lake"})
    assert "group.id must be set" in said
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        ConsumerSettings.parse({"lake": "/lake"}, environ={})


# --- the lake ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "brokers",
    ["localhost:9092", "localhost", "10.0.0.1", "[::1]:9092", "a.example:9092,b.example:9092", "PLAINTEXT://a:9092"],
)
def test_an_address_of_brokers_is_refused(brokers):
    assert "Give the lake's address" in refusal(ProducerSettings, {"bootstrap.servers": brokers})


@pytest.mark.parametrize("address", ["/data/lake", "lake", "file:///data/lake", "memory://a", "s3://b/lake", "./a:b/c"])
def test_an_address_of_a_lake(address):
    assert ProducerSettings.parse({"bootstrap.servers": address}, environ={}).lake == address


def test_a_stores_options_stand_among_the_keys_or_in_a_dict():
    region, token = {"lake.s3.region": "r"}, {"lake.s3.session.token": "hunter2hunter2"}
    for conf in (
        {**region, **token},
        {"storage.options": {**region, **token}},
        {**region, "storage.options": token},
        {**region, **token, "storage.options": region, "lake.s3.endpoint": None},
        {"default.topic.config": {**region, **token}},
    ):
        settings = ConsumerSettings.parse({"lake": "s3://b/l", "group.id": "g", **conf})
        assert settings.storage_options == {**region, **token}
        assert "hunter2" not in repr(settings)
    assert AdminSettings.parse({"lake": "/l", "lake.s3.express": True}).storage_options == {"lake.s3.express": "true"}
    assert AdminSettings.parse({"lake": "/l"}).storage_options is None


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ({"lake.s3.tokn": "hunter2hunter2"}, "The nearest known one is 'lake.s3."),
        (
            {"lake.s3.session.token": "hunter2hunter2", "storage.options": {"lake.s3.session.token": "hunter2"}},
            '"lake.s3.session.token" is set twice, the other time in a dict',
        ),
        ({"storage.options": "token=hunter2hunter2"}, "give a dict"),
    ],
)
def test_a_stores_options_that_are_refused_are_not_shown(conf, why):
    said = refusal(AdminSettings, {"lake": "s3://b/l", **conf})
    assert why in said
    assert "hunter2" not in said


def test_the_environment_names_a_lake_where_the_dict_does_not():
    assert AdminSettings.parse({}, environ={"TIDELOG_LAKE": "/there"}).lake == "/there"
    assert AdminSettings.parse({"lake": "/here"}, environ={"TIDELOG_LAKE": "/there"}).lake == "/here"
    with pytest.raises(KafkaException, match="TIDELOG_LAKE"):
        open_lake(AdminSettings.parse({}, environ={}))


def test_a_client_opens_its_lake_and_closes_only_its_own(tmp_path):
    opened = open_lake(AdminSettings.parse({"lake": tmp_path / "new"}))
    assert opened.owned
    opened.lake.create_topic("t")
    opened.close()
    with Lake(str(tmp_path / "new")) as lake:
        shared = open_lake(AdminSettings.parse({"lake": lake}))
        assert shared.lake is lake
        shared.close()
        assert lake.ensure_topic("u")  # still open
        lake.topic("u").offsets()


def test_a_lake_that_cannot_be_opened(tmp_path):
    (tmp_path / "__lake.json").write_text("{")
    with pytest.raises(KafkaException) as caught:
        open_lake(AdminSettings.parse({"lake": str(tmp_path)}))
    assert caught.value.args[0] == KafkaError.UNSUPPORTED_VERSION
    with pytest.raises(KafkaException) as caught:
        open_lake(AdminSettings.parse({"lake": "ftp://x/y"}))
    assert caught.value.args[0] == KafkaError._INVALID_ARG


def test_each_ignored_key_is_warned_of_once_per_client(caplog):
    for _ in range(2):
        open_lake(AdminSettings.parse({"lake": "memory://warned", "socket.timeout.ms": 10, "acks": 1})).close()
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
        ignored = 'Configuration property "socket.timeout.ms" is ignored: tidelog\'s own clients connect to no'
        assert any(ignored in message for message in caplog.messages)
        caplog.clear()
    own = logging.getLogger("its.own")
    open_lake(AdminSettings.parse({"lake": "memory://warned", "acks": 1, "logger": own})).close()
    assert [record.name for record in caplog.records] == ["its.own"]


@pytest.mark.parametrize("make", [lambda conf: Producer(conf), lambda conf: Consumer({**conf, "group.id": "g"})])
def test_every_client_says_where_it_is_and_refuses_credentials(make):
    Lake("memory://whereabouts")
    with make({"lake": "memory://whereabouts"}) as client:
        assert client.cluster_id(timeout=1) == "memory://whereabouts"
        with pytest.raises(KafkaException, match=r"storage\.options"):
            client.set_sasl_credentials("me", "secret")
