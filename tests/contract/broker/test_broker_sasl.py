"""Real clients that log in at a broker by each mechanism: librdkafka and aiokafka; and a thousand of them at once."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.waiting import eventually

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.broker.base.access import AccessSettings
from tidelog.broker.base.listener_settings import ListenerSettings, SecurityProtocol
from tidelog.log.lake import Lake

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "correct horse, battery=staple"
SASL_LISTENER = {"PLAINTEXT": ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_PLAINTEXT, mechanisms=MECHANISMS)}
# Once a listener authenticates, a user needs rights; these tests are about log-ins.
ALLOWED = AccessSettings(super_users=frozenset({f"User:{USER}"}))


def add_user(lake: Lake, user: str = USER, password: str = PASSWORD) -> None:
    AccessLog(lake).upsert_scram(user, *(credential(one, password, b"salt of 16 bytes") for one in ScramMechanism))


@pytest.fixture
def address(lake: Lake) -> Iterator[str]:
    add_user(lake)
    with running_broker(lake, listeners=SASL_LISTENER, access=ALLOWED) as address:
        yield address


def librdkafka(address: str, mechanism: str, password: str = PASSWORD, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
        **more,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_logs_in_and_takes_records_there_and_back(address: str, mechanism: str) -> None:
    producer = Producer(librdkafka(address, mechanism, acks="all"))
    producer.produce("t", b"x", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer(librdkafka(address, mechanism, **{"group.id": mechanism, "auto.offset.reset": "earliest"}))
    consumer.subscribe(["t"])
    try:
        found = eventually(lambda: (m := consumer.poll(0.2)) and not m.error() and m, "a record")
        assert found.topic() == "t"
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_learns_of_a_wrong_password(address: str, mechanism: str) -> None:
    heard = []
    admin = AdminClient(librdkafka(address, mechanism, "wrong", error_cb=heard.append))
    with suppress(KafkaException):
        admin.list_topics(timeout=5)
    eventually(lambda: admin.poll(0.1) is not None and heard, "the refusal")
    codes = {error.code() for error in heard}
    assert KafkaError._AUTHENTICATION in codes
    assert any("invalid credentials" in error.str() for error in heard)


def aiokafka(address: str, mechanism: str, password: str = PASSWORD) -> dict[str, object]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in_and_takes_records_there_and_back(address: str, mechanism: str) -> None:
    async def there_and_back() -> None:
        async with AIOKafkaProducer(**aiokafka(address, mechanism)) as producer:
            await producer.send_and_wait("t", b"y")
        async with AIOKafkaConsumer("t", auto_offset_reset="earliest", **aiokafka(address, mechanism)) as consumer:
            async with asyncio.timeout(60):
                assert (await consumer.getone()).topic == "t"

    asyncio.run(there_and_back())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_learns_of_a_wrong_password(address: str, mechanism: str) -> None:
    async def refused() -> None:
        producer = AIOKafkaProducer(**aiokafka(address, mechanism, "wrong"))
        try:
            with pytest.raises(AiokafkaError):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(refused())


def test_a_user_that_is_removed_does_not_come_in_again(lake: Lake, address: str) -> None:
    config = librdkafka(address, "SCRAM-SHA-512")
    assert AdminClient(config).list_topics(timeout=30).topics
    AccessLog(lake).delete_user(USER)

    def is_refused() -> bool:
        heard: list[KafkaError] = []
        admin = AdminClient({**config, "error_cb": heard.append})
        with suppress(KafkaException):
            admin.list_topics(timeout=2)
        admin.poll(0.5)
        return any(error.code() == KafkaError._AUTHENTICATION for error in heard)

    eventually(is_refused, "the user is unknown to the broker")
