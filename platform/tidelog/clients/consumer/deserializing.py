"""DeserializingConsumer: a consumer whose messages hold objects, in the shape of confluent-kafka's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, NoReturn

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import ConsumeError, KeyDeserializationError, ValueDeserializationError
from tidelog.clients.values.message import K, Message, V
from tidelog.clients.values.serdes import WithSerdes
from tidelog.clients.values.serialization import MessageField, SerializationContext


class DeserializingConsumer(WithSerdes, Consumer, Generic[K, V]):
    """A `Consumer` with `key.deserializer` and `value.deserializer`: callables (bytes or None, context) -> object.

    `poll` raises what a message only carries: `ConsumeError` for an error event, `KeyDeserializationError` or
    `ValueDeserializationError` for a record whose bytes can't be read; the next call goes on after it.
    `consume_table` gives bytes. `key.deserializer.builder` and `value.deserializer.builder` build a deserializer when
    the consumer begins, which is closed with it.
    """

    _KIND = "deserializer"

    def poll(self, timeout: float | None = None) -> Message[K, V] | None:
        """The next record with its objects; None after `timeout` seconds. Raises as the class says."""
        message = super().poll(timeout)
        if message is None:
            return None
        raise_event(message)
        context = context_of(message)
        key, value = message.key(), message.value()
        if self._serdes.key is not None:
            with telling(message, context.field):
                key = self._serdes.key(key, context)
        context.field = MessageField.VALUE
        if self._serdes.value is not None:
            with telling(message, context.field):
                value = self._serdes.value(value, context)
        message.set_key(key)
        message.set_value(value)
        return message

    def consume(self, num_messages: int = 1, timeout: float = -1) -> NoReturn:
        """Refused, as by confluent-kafka's: one record that can't be read would take the others with it. Use `poll`."""
        raise NotImplementedError("DeserializingConsumer has no consume(): use poll(), or consume_table() for bytes.")


def raise_event(message: Message) -> None:
    """Raise `ConsumeError` for an error event."""
    if (error := message.error()) is not None:
        raise ConsumeError(error, kafka_message=message)


def context_of(message: Message) -> SerializationContext:
    """What a deserializer gets beside the bytes, of the key first."""
    return SerializationContext(message.topic() or "", MessageField.KEY, message.headers())


@contextmanager
def telling(message: Message, field: MessageField) -> Iterator[None]:
    """Turn what a deserializer raises into the error of a key or a value, with the message that it is about."""
    try:
        yield
    except Exception as e:
        error = KeyDeserializationError if field is MessageField.KEY else ValueDeserializationError
        raise error(e, message) from e
