"""Objects instead of bytes: the deserializers that come along, and the consumer that calls them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidelog.clients.consumer.deserializing import DeserializingConsumer
from tidelog.clients.values.errors import (
    ConsumeError,
    KafkaError,
    KafkaException,
    KeyDeserializationError,
    ValueDeserializationError,
)
from tidelog.clients.values.partitions import TopicPartition
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
from tidelog.log.lake import Lake


@pytest.mark.parametrize(
    ("serialize", "deserialize", "obj", "data"),
    [
        (StringSerializer(), StringDeserializer(), "é", b"\xc3\xa9"),
        (StringSerializer("latin_1"), StringDeserializer("latin_1"), "é", b"\xe9"),
        (IntegerSerializer(), IntegerDeserializer(), -2, b"\xff\xff\xff\xfe"),
        (DoubleSerializer(), DoubleDeserializer(), 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
        (StringSerializer(), StringDeserializer(), None, None),
        (IntegerSerializer(), IntegerDeserializer(), None, None),
    ],
)
def test_there_and_back(serialize: Any, deserialize: Any, obj: Any, data: bytes | None) -> None:
    assert serialize(obj) == data
    assert deserialize(data) == obj


@pytest.mark.parametrize(
    "call",
    [
        lambda: StringSerializer()(7),
        lambda: StringSerializer("ascii")("é"),
        lambda: StringDeserializer()(b"\xff"),
        lambda: IntegerSerializer()(2**31),
        lambda: IntegerSerializer()("1"),
        lambda: IntegerDeserializer()(b"\0"),
        lambda: DoubleDeserializer()(b"\0"),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any]) -> None:
    with pytest.raises(SerializationError):
        call()


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as opened:
        opened.create_topic("t", partitions=1)
        yield opened


def reader(lake: Lake, **conf: Any) -> DeserializingConsumer:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    made = DeserializingConsumer({"lake": lake, "group.id": "g", **given})
    made.assign([TopicPartition("t", 0, 0)])
    return made


def test_messages_hold_objects(lake: Lake) -> None:
    lake.topic("t").append(
        pa.table({"key": [b"\0\0\0\7"], "value": [b"v"], "headers": [[{"key": "h", "value": b"1"}]]})
    )
    seen: list[SerializationContext] = []

    def value(data: bytes | None, context: SerializationContext) -> Any:
        seen.append(context)
        return {"data": data}

    with reader(lake, key_deserializer=IntegerDeserializer(), value_deserializer=value) as own:
        message = own.poll(10)
        assert own.poll(0) is None
    assert message is not None
    assert (message.key(), message.value()) == (7, {"data": b"v"})
    assert seen == [SerializationContext("t", MessageField.VALUE, [("h", b"1")])]


def test_without_deserializers_there_are_bytes(lake: Lake) -> None:
    lake.topic("t").append(pa.table({"value": [b"v"]}))
    with reader(lake) as own:
        message = own.poll(10)
    assert message is not None
    assert message.value() == b"v"


@pytest.mark.parametrize(("part", "error"), [("key", KeyDeserializationError), ("value", ValueDeserializationError)])
def test_a_record_that_can_not_be_read_is_named_and_passed_over(
    lake: Lake, part: str, error: type[ConsumeError]
) -> None:
    lake.topic("t").append(pa.table({"key": [b"bad", None], "value": [b"bad", None]}))
    with reader(lake, **{f"{part}_deserializer": IntegerDeserializer()}) as own:
        with pytest.raises(error, match=rf"t \[0\] @ 0.*{part} can't be deserialized") as caught:
            own.poll(10)
        assert caught.value.kafka_message.value() == b"bad"
        assert isinstance(caught.value.exception, SerializationError)
        message = own.poll(10)
        assert message is not None
        assert message.offset() == 1


def test_error_events_are_raised(lake: Lake) -> None:
    with reader(lake) as own:
        own.assign([TopicPartition("t", 5)])
        with pytest.raises(ConsumeError) as caught:
            own.poll(10)
        assert caught.value.code == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_what_it_refuses(lake: Lake) -> None:
    with pytest.raises(KafkaException, match=r"key\.deserializer must be a callable"):
        reader(lake, key_deserializer="string")
    with reader(lake) as own, pytest.raises(NotImplementedError):
        own.consume()
