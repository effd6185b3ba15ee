"""Unmodified Kafka clients and typed topics: their values go into columns, and come back as they were sent."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.transactional_clients import WAIT_S, transactional
from support.value_subjects import Subjects
from support.value_typings import FLIGHT, LATER, avro_payload, flight, prefixed

from tidelog.log.base.errors import UnsupportedFormatError
from tidelog.log.delta.layout import entry_path
from tidelog.log.lake import Lake

TYPED = {"value.columns": "avro", "value.schema.subject": "typed-value"}


def values_of(lake: Lake) -> list[bytes | None]:
    """Values of both schemas, of none, and a tombstone; their subject has the two schemas."""
    subjects = Subjects(lake).no_rules()
    first, second = (subjects.register("typed-value", orjson.dumps(one).decode()) for one in (FLIGHT, LATER))
    later = avro_payload(LATER, flight(3, plane=None, cancelled=True))
    return [prefixed(first, avro_payload(FLIGHT, flight(1))), None, b"text", prefixed(second, later)]


def produced(address: str, values: list[bytes | None], **config: Any) -> list[KafkaError | None]:
    """The outcome of each value, all sent as one batch."""
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": address, "linger.ms": 300, **config})
    for value in values:
        producer.produce("typed", value, partition=0, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(WAIT_S) == 0
    return outcomes


def consumed(address: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("typed", 0, OFFSET_BEGINNING)])
    found: list[bytes | None] = []
    try:
        while len(found) < count:
            messages = consumer.consume(count, 10)
            assert messages, "nothing more comes"
            found += [message.value() for message in messages]
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
def test_values_go_through_a_broker_byte_for_byte(lake: Lake, bytes_: str) -> None:
    values = values_of(lake)
    lake.create_topic("typed", 1, TYPED | {"value.bytes": bytes_})
    with running_broker(lake) as address:
        assert produced(address, values, **{"enable.idempotence": True}) == [None] * 4
        producer = transactional(address)
        producer.begin_transaction()
        for value in values:
            producer.produce("typed", value, partition=0)
        producer.commit_transaction(WAIT_S)
        assert consumed(address, 8) == values * 2
    with running_broker(lake) as address:  # which has nothing in its caches
        assert consumed(address, 8) == values * 2
    batches = list(lake.topic("typed").read(0, include_columns=True))
    numbers = [one and one["number"] for batch in batches for one in batch.column("columns").to_pylist()]
    assert numbers == [1, None, None, 3] * 2


def test_a_broker_names_the_records_that_do_not_fit(lake: Lake) -> None:
    values = values_of(lake)
    lake.create_topic("typed", 1, TYPED | {"topic.validate": "true"})
    with running_broker(lake) as address:
        outcomes = produced(address, [values[0], values[2], values[3], b"bad"])
        # librdkafka tells records apart where the answer names several.
        good, bad = KafkaError._INVALID_DIFFERENT_RECORD, KafkaError.INVALID_RECORD
        assert [one and one.code() for one in outcomes] == [good, bad, good, bad]
        assert produced(address, [values[0], None, values[3]]) == [None] * 3
        assert consumed(address, 3) == [values[0], None, values[3]]


def test_a_broker_refuses_a_typed_topic_of_a_later_format(tmp_path: Path) -> None:
    """As an earlier broker does one of today; the lake's other topics are served."""
    with Lake(tmp_path / "lake") as before:
        values = values_of(before)
        before.create_topic("typed", 1, TYPED)
        before.create_topic("plain")
    first = tmp_path / "lake/typed" / entry_path(0)
    first.write_text(first.read_text().replace('"tidelog.format":"3"', '"tidelog.format":"4"'))
    with Lake(tmp_path / "lake", create=False) as lake, running_broker(lake) as address:
        topics = AdminClient({"bootstrap.servers": address}).list_topics(timeout=WAIT_S).topics
        code = UnsupportedFormatError("").kafka_code
        assert (topics["typed"].error.code(), topics["plain"].error) == (code, None)
        (refused,) = produced(address, values[:1], **{"message.timeout.ms": 5_000})
        assert refused is not None
    assert len(list((tmp_path / "lake/typed/_delta_log").glob("*.json"))) == 1
