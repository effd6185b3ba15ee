"""A producer of objects, in the shape of `confluent_kafka.SerializingProducer`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Generic

from tidelog.clients.producer.producer import Producer
from tidelog.clients.producer.records import DeliveryCallback, as_headers
from tidelog.clients.values.errors import KeySerializationError, ValueSerializationError
from tidelog.clients.values.message import K, V
from tidelog.clients.values.serdes import WithSerdes
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.group_commit.requests import NO_PARTITION


class SerializingProducer(WithSerdes, Producer, Generic[K, V]):
    """A `Producer` whose keys and values are objects: `key.serializer` and `value.serializer` make bytes of them.

    A serializer is a callable (object, `SerializationContext`) -> bytes, str or None; `key.serializer.builder` and
    `value.serializer.builder` build one when the producer begins, which is closed with it. `produce_batch` and
    `produce_table` take bytes. Source: `confluent_kafka.SerializingProducer`.
    """

    _KIND = "serializer"

    def produce(  # type: ignore[override] # confluent-kafka's order of arguments: the key comes first here
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = NO_PARTITION,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Serialize a key and a value and queue the record, as `Producer.produce` does.

        The key comes before the value, as in confluent-kafka. Raises `KeySerializationError` or
        `ValueSerializationError` naming the topic and the record; nothing is queued then.
        """
        self._require_open()
        context = SerializationContext(topic, MessageField.KEY, as_headers(headers) if headers else None)
        key_data: Any = key
        value_data: Any = value
        if self._serdes.key is not None:
            with naming(topic, context.field, key):
                key_data = self._serdes.key(key, context)
        context.field = MessageField.VALUE
        if self._serdes.value is not None:
            with naming(topic, context.field, value):
                value_data = self._serdes.value(value, context)
        super().produce(topic, value_data, key_data, partition, None, on_delivery, timestamp, context.headers)


@contextmanager
def naming(topic: str, field: MessageField, given: Any) -> Iterator[None]:
    """Turn what a serializer raises into the error of a key or a value, with the record that it is about."""
    try:
        yield
    except Exception as e:
        error = KeySerializationError if field is MessageField.KEY else ValueSerializationError
        raise error(_named(e, topic, field, given)) from e


def _named(error: Exception, topic: str, what: str, given: Any) -> Exception:
    """The error, with the record that it is about."""
    shown = repr(given)
    shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
    named = ValueError(f"The {what} {shown} of a record for topic '{topic}' can't be serialized: {error}")
    named.__cause__ = error
    return named
