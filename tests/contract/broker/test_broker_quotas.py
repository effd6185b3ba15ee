"""Quotas on real clients: they are held to their rate, know their throttle times, and are shown in the metrics.

Times have a least value only: a busy machine makes clients slower than their quota.
"""

import threading
import time

import pytest
import uvloop
from confluent_kafka import Consumer, Producer
from support.broker_processes import broker_command, metrics
from support.brokers import running_broker
from support.certificates import Authority

from tidelog.access.access_log import AccessLog
from tidelog.access.credentials import ScramMechanism, credential
from tidelog.access.quotas import Entity, Quota
from tidelog.broker.base.access import AccessSettings
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import ListenerSettings, SecurityProtocol, TlsSettings

RATE = 100_000
MESSAGE = bytes(10_000)
ONE_BY_ONE = {"batch.num.messages": 1, "max.in.flight": 1}
COUNT = 40  # four seconds' worth; one second's may come at once


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("orders", 1)
        yield opened


def set_quota(lake, entity, **limits):
    log = AccessLog(lake)
    log.alter_quotas({entity: {Quota(name): limit for name, limit in limits.items()}})
    log.close()


def test_a_producer_and_a_consumer_are_held_to_their_rates(lake):
    set_quota(lake, Entity(None, "slow"), producer_byte_rate=RATE, consumer_byte_rate=RATE)
    with broker_command(lake.uri, "--listener", "127.0.0.1:0", "--metrics", "127.0.0.1:0") as command:
        ready = command.ready()
        of_all = {"bootstrap.servers": ready["listener"]}
        throttled = []
        producer = Producer(of_all | ONE_BY_ONE | {"client.id": "slow", "throttle_cb": throttled.append})
        took_s = produce(producer)
        assert took_s >= (COUNT * len(MESSAGE) - RATE) / RATE * 0.9
        assert max(event.throttle_time for event in throttled) > 0
        shown = metrics(ready["metrics"])
        assert 0 < shown["kafka_server_quota_byte_rate", ("slow", "Produce", "")] <= RATE * 1.2
        assert shown["kafka_server_quota_throttle_time", ("slow", "Produce", "")] > 0
        assert ("kafka_server_quota_byte_rate", ("slow", "Fetch", "")) not in shown

        group = {"group.id": "g", "auto.offset.reset": "earliest", "fetch.wait.max.ms": 100}
        took_s = consume(Consumer(of_all | group | {"client.id": "slow"}))
        assert took_s >= (COUNT * len(MESSAGE) - RATE) / RATE * 0.9
        assert ("kafka_server_quota_byte_rate", ("slow", "Fetch", "")) in metrics(ready["metrics"])


def test_a_quota_that_is_set_later_holds_for_connections_that_are_open(lake):
    with broker_command(lake.uri, "--listener", "127.0.0.1:0", "--metrics", "127.0.0.1:0") as command:
        ready = command.ready()
        throttled = threading.Event()
        settings = {"bootstrap.servers": ready["listener"], "throttle_cb": lambda _: throttled.set()}
        producer = Producer(settings)
        produce(producer)
        assert not throttled.is_set()
        set_quota(lake, Entity("ANONYMOUS"), producer_byte_rate=1000)
        deadline_s = time.monotonic() + 60
        while not throttled.is_set() and time.monotonic() < deadline_s:
            producer.produce("orders", MESSAGE)
            producer.flush(0.2)
        assert throttled.is_set()
        producer.purge()
        assert metrics(ready["metrics"])["kafka_server_quota_throttle_time", ("", "Produce", "ANONYMOUS")] > 0


def test_a_user_is_held_to_its_rate_over_tls(lake, tmp_path):
    """By its principal, whatever its client id is; nothing is read of a connection of TLS meanwhile either."""
    authority = Authority(tmp_path)
    tls = TlsSettings(str(authority.issue("broker.pem")))
    listener = ListenerSettings("127.0.0.1", 0, SecurityProtocol.SASL_SSL, tls)
    log = AccessLog(lake)
    log.upsert_scram("alice", credential(ScramMechanism.SHA_256, "alice's own", b"salt of 16 bytes"))
    log.close()
    set_quota(lake, Entity("alice"), producer_byte_rate=RATE)
    access = AccessSettings(super_users=frozenset({"User:alice"}))
    with running_broker(lake, uvloop.new_event_loop, listeners={"CLIENTS": listener}, access=access) as address:
        throttled = []
        settings = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(authority.path),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "alice's own",
            "throttle_cb": throttled.append,
        }
        took_s = produce(Producer(ONE_BY_ONE | settings))
    assert took_s >= (COUNT * len(MESSAGE) - RATE) / RATE * 0.9
    assert max(event.throttle_time for event in throttled) > 0


def produce(producer):
    began_s = time.monotonic()
    for _ in range(COUNT):
        producer.produce("orders", MESSAGE)
    assert producer.flush(120) == 0
    return time.monotonic() - began_s


def consume(consumer):
    consumer.subscribe(["orders"])
    try:
        messages, began_s = [], None
        while len(messages) < COUNT:
            message = consumer.poll(60)
            assert message is not None, f"only {len(messages)} of {COUNT} came"
            assert message.error() is None
            began_s = began_s or time.monotonic()
            messages.append(message)
        return time.monotonic() - began_s
    finally:
        consumer.close()
