"""DeserializingConsumer: a consumer whose messages hold objects, in the shape of confluent-kafka's."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tidelog.clients.consumer import Consumer
from tidelog.clients.errors import ConsumeError, KeyDeserializationError, ValueDeserializationError, invalid_argument
from tidelog.clients.message import Message
from tidelog.clients.serialization import MessageField, SerializationContext

Deserialize = Callable[[bytes | None, SerializationContext], Any]


class DeserializingConsumer(Consumer):
    """A `Consumer` with `key.deserializer` and `value.deserializer`: callables (bytes or None, context) -> object.

    `poll` raises what a message could only tell: `ConsumeError` for an error event, `KeyDeserializationError` or
    `ValueDeserializationError` for a record whose bytes can't be read; the next call goes on after it.
    `consume_table` gives bytes.
    """

    def __init__(self, conf: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        given = {**(conf or {}), **more}
        self._key = _deserializer(given, "key.deserializer")
        self._value = _deserializer(given, "value.deserializer")
        super().__init__(given)

    def poll(self, timeout: float | None = None) -> Message | None:
        """The next record with its objects; None after `timeout` seconds. Raises as the class says."""
        message = super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        context = SerializationContext(message.topic() or "", MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        if self._key is not None:
            try:
                key = self._key(key, context)
            except Exception as e:
                raise KeyDeserializationError(e, message) from e
        context.field = MessageField.VALUE
        if self._value is not None:
            try:
                value = self._value(value, context)
            except Exception as e:
                raise ValueDeserializationError(e, message) from e
        message.set_key(key)
        message.set_value(value)
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> NoReturn:
        """Refused, as by confluent-kafka's: one record that can't be read would take the others with it. Use `poll`."""
        raise NotImplementedError("DeserializingConsumer has no consume(): use poll(), or consume_table() for bytes.")


def _deserializer(conf: dict[str, Any], name: str) -> Deserialize | None:
    found: Deserialize | None = conf.pop(name, None)
    if found is not None and not callable(found):
        raise invalid_argument(f"{name} must be a callable (bytes, SerializationContext), not {found!r}.")
    return found
