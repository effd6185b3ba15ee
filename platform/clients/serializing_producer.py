"""A producer of objects, in the shape of `confluent_kafka.SerializingProducer`."""

from collections.abc import Callable, Mapping
from typing import Any

from tidelog.clients.errors import KeySerializationError, ValueSerializationError, invalid_argument
from tidelog.clients.producer import Producer
from tidelog.clients.producer_records import NO_PARTITION, DeliveryCallback, as_headers
from tidelog.clients.serialization import MessageField, SerializationContext

_Serialize = Callable[[Any, SerializationContext], bytes | str | None]


class SerializingProducer(Producer):
    """A `Producer` whose keys and values are objects: `key.serializer` and `value.serializer` make bytes of them.

    A serializer is a callable (object, `SerializationContext`) -> bytes, str or None. Source:
    `confluent_kafka.SerializingProducer`.
    """

    def __init__(self, conf: Mapping[str, Any]) -> None:
        others = dict(conf)
        self._key_serializer = _serializer(others, "key.serializer")
        self._value_serializer = _serializer(others, "value.serializer")
        super().__init__(others)

    def produce(  # type: ignore[override] # confluent-kafka's order of arguments: the key comes first here
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = NO_PARTITION,
        on_delivery: DeliveryCallback | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Serialize a key and a value and queue the record, as `Producer.produce` does.

        The key comes before the value, as in confluent-kafka. Raises `KeySerializationError` or
        `ValueSerializationError` naming the topic and the record; nothing is queued then.
        """
        pairs = as_headers(headers) if headers else None
        context = SerializationContext(topic, MessageField.KEY, pairs)
        if self._key_serializer:
            try:
                key = self._key_serializer(key, context)
            except Exception as e:
                raise KeySerializationError(_named(e, topic, "key", key)) from e
        context.field = MessageField.VALUE
        if self._value_serializer:
            try:
                value = self._value_serializer(value, context)
            except Exception as e:
                raise ValueSerializationError(_named(e, topic, "value", value)) from e
        super().produce(topic, value, key, partition, None, on_delivery, timestamp, context.headers)


def _serializer(conf: dict[str, Any], key: str) -> _Serialize | None:
    given: _Serialize | None = conf.pop(key, None)
    if given is not None and not callable(given):
        raise invalid_argument(f'Invalid value "{given!r}" for configuration property "{key}": give a callable.')
    return given


def _named(error: Exception, topic: str, what: str, given: Any) -> Exception:
    """The error, with the record that it is about."""
    shown = repr(given)
    shown = shown if len(shown) <= 100 else f"{shown[:100]}…"
    named = ValueError(f"The {what} {shown} of a record for topic '{topic}' can't be serialized: {error}")
    named.__cause__ = error
    return named
