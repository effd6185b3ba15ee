"""What programs ask of confluent-kafka beside its clients: versions, a key's partition, a message's fields."""

from collections.abc import Callable

import pytest

import tidelog
from tidelog.clients.values.message import Message


def test_versions_have_confluents_forms():
    assert tidelog.version() == tidelog.__version__
    text, number = tidelog.libversion()
    assert number >> 8 == int("".join(f"{int(part):02x}" for part in text.split(".")), 16)


# As confluent-kafka 2.16.1 answers.
@pytest.mark.parametrize(
    ("function", "key", "count", "partition"),
    [
        (tidelog.murmur2, b"abc", 10, 7),
        (tidelog.murmur2, b"", 3, 0),
        (tidelog.consistent, b"abc", 10, 8),
        (tidelog.consistent, b"", 3, 0),
        (tidelog.fnv1a, b"abc", 10, 1),
        (tidelog.fnv1a, b"", 3, 0),
    ],
)
def test_a_keys_partition(function: Callable[[bytes, int], int], key: bytes, count: int, partition: int):
    assert function(key, count) == partition
    with pytest.raises(ValueError, match="above 0"):
        function(key, 0)
    with pytest.raises(TypeError, match="bytes"):
        function("abc", 10)  # type: ignore[arg-type]


def test_a_messages_fields_are_replaced_by_name():
    message: Message[str, dict] = Message("t", 0, 1, b"k", b"v")
    message.set_key(key="key")
    message.set_value(value={"a": 1})
    message.set_headers(headers=[("h", b"1")])
    message.set_topic(topic="u")
    message.set_error(error=None)
    assert (message.key(), message.value(), message.headers(), message.topic()) == ("key", {"a": 1}, [("h", b"1")], "u")
    assert (message.deserialized_key(), message.deserialized_value()) == ("key", {"a": 1})
    assert message.delivery_count() is None
