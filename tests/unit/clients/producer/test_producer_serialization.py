"""Serializers give Kafka's bytes, and the serializing producer says which record has none."""

from typing import Any

import pytest
from support.logs import read
from support.producers import Delivered, live_lake

from tidelog.clients.producer.serializing import SerializingProducer
from tidelog.clients.values.errors import KafkaError, KafkaException, KeySerializationError, ValueSerializationError
from tidelog.clients.values.serialization import (
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    SerializationError,
    StringDeserializer,
    StringSerializer,
)

CONTEXT = SerializationContext("t", MessageField.VALUE)

#  Kafka's serializers (org.apache.kafka.common.serialization): object <-> bytes
PAIRS: list[tuple[Any, Any, Any, Any]] = [
    (StringSerializer(), StringDeserializer(), "wört", b"w\xc3\xb6rt"),
    (StringSerializer("utf_16_be"), StringDeserializer("utf_16_be"), "a", b"\x00a"),
    (StringSerializer(), StringDeserializer(), "", b""),
    (IntegerSerializer(), IntegerDeserializer(), 1, b"\x00\x00\x00\x01"),
    (IntegerSerializer(), IntegerDeserializer(), -(2**31), b"\x80\x00\x00\x00"),
    (DoubleSerializer(), DoubleDeserializer(), 1.5, b"\x3f\xf8\x00\x00\x00\x00\x00\x00"),
    (DoubleSerializer(), DoubleDeserializer(), 5623567.0, b"\x41\x55\x73\xc3\xc0\x00\x00\x00"),
]


@pytest.mark.parametrize(("serialize", "deserialize", "given", "stored"), PAIRS)
def test_kafkas_bytes(serialize: Any, deserialize: Any, given: Any, stored: bytes) -> None:
    assert serialize(given, CONTEXT) == serialize(given) == stored
    assert deserialize(stored, CONTEXT) == deserialize(stored) == given
    assert serialize(None, CONTEXT) is None
    assert deserialize(None, CONTEXT) is None


WRONG: list[tuple[Any, Any]] = [
    (StringSerializer("ascii"), "wört"),
    (StringDeserializer(), b"\xff"),
    (IntegerSerializer(), 2**31),
    (IntegerSerializer(), "1"),
    (IntegerDeserializer(), b"123"),
    (DoubleSerializer(), "x"),
    (DoubleDeserializer(), b""),
]


@pytest.mark.parametrize(("call", "given"), WRONG)
def test_what_has_no_bytes(call: Any, given: Any) -> None:
    with pytest.raises(SerializationError):
        call(given, CONTEXT)


def test_a_serializing_producer() -> None:
    lake, _ = live_lake()
    told = Delivered()
    conf = {"lake": lake, "key.serializer": IntegerSerializer(), "value.serializer": StringSerializer()}
    with SerializingProducer(conf) as p:
        p.produce("t", 7, "seven", on_delivery=told, headers={"h": "1"})
        p.produce("t", value=None)
    ((_, message),) = told.all
    assert (message.key(), message.value(), message.headers()) == (b"\x00\x00\x00\x07", b"seven", [("h", b"1")])
    (batch,) = lake.topic("t").read(0)
    assert batch.column("value").to_pylist() == [b"seven", None]


def test_a_serializer_sees_the_context_and_may_add_headers() -> None:
    lake, _ = live_lake()
    seen = []

    def serialize(given: Any, context: SerializationContext) -> bytes:
        seen.append((context.topic, context.field, given))
        context.headers = [*(context.headers or []), (str(context.field), b"1")]
        return b"x"

    told = Delivered()
    with SerializingProducer({"lake": lake, "key.serializer": serialize, "value.serializer": serialize}) as p:
        p.produce("t", key=1, value=2, on_delivery=told)
    assert seen == [("t", "key", 1), ("t", "value", 2)]
    assert told.all[0][1].headers() == [("key", b"1"), ("value", b"1")]


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        ({"key": "x"}, KeySerializationError, KafkaError._KEY_SERIALIZATION),
        ({"value": "x"}, ValueSerializationError, KafkaError._VALUE_SERIALIZATION),
    ],
)
def test_an_error_names_the_record(arguments: Any, error: type[Exception], code: int) -> None:
    lake, _ = live_lake()
    conf = {"lake": lake, "key.serializer": IntegerSerializer(), "value.serializer": IntegerSerializer()}
    with SerializingProducer(conf) as p:
        with pytest.raises(error, match="'x' of a record for topic 't' can't be serialized") as refused:
            p.produce("t", **arguments)
        assert refused.value.code == code
        p.produce("t", value=1)
    assert read(lake, "t") == ["\x00\x00\x00\x01"]


def test_a_serializer_is_a_callable() -> None:
    with pytest.raises(KafkaException, match=r"value\.serializer must be a callable"):
        SerializingProducer({"lake": "/nowhere", "value.serializer": "string"})
