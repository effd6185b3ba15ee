"""Clients for asyncio that make bytes of objects and objects of bytes, as those of `confluent_kafka.aio`.

Serializers and deserializers, and the builders of them, may be plain functions, which run in the loop, or coroutine
functions.
"""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Generic, Self

from tidelog.clients.aio.calls import AsyncClient, awaited
from tidelog.clients.aio.consumer import AIOConsumer
from tidelog.clients.aio.producer import AIOProducer
from tidelog.clients.consumer.deserializing import context_of, raise_event, telling
from tidelog.clients.producer.records import as_headers
from tidelog.clients.producer.serializing import naming
from tidelog.clients.values.message import K, Message, V
from tidelog.clients.values.serdes import Serdes, configured_serdes
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.group_commit.requests import NO_PARTITION


class _WithSerdes(AsyncClient):
    """A client that begins when it is awaited, or entered by `async with`: its builders may be coroutine functions."""

    _KIND: ClassVar[str]

    def __init__(self, conf: Mapping[str, Any], **options: Any) -> None:
        self._conf = conf
        self._options = options
        self._begun: Serdes | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self._begin().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def _begin(self) -> Self:
        if self._begun is not None:
            return self
        configured, left = configured_serdes(self._conf, self._KIND)
        serdes = Serdes(left)
        try:
            for one in configured:
                serdes.add(one, await awaited(one.build, left))
            super().__init__(serdes.conf, **self._options)  # type: ignore[arg-type] # that of the client beside it
        except BaseException:
            await _close(serdes)
            raise
        self._begun = serdes
        serdes.give_cluster_id("set_async_cluster_id_resolver", self.cluster_id)  # type: ignore[attr-defined] # as above
        return self

    @property
    def _serdes(self) -> Serdes:
        if self._begun is None:
            name = type(self).__name__
            raise RuntimeError(f"This {name} has not begun: await it first, as in `client = await {name}(conf)`.")
        return self._begun

    async def close(self) -> None:
        """Close the client, then what builders built."""
        serdes = self._serdes
        await super().close()
        await _close(serdes)


async def _close(serdes: Serdes) -> None:
    """Close what was built, once: by `aclose` or else by `close`, the rest also when closing one of them fails."""
    async with AsyncExitStack() as ends:
        while serdes.owned:
            one = serdes.owned.pop()
            if callable(close := getattr(one, "aclose", None) or getattr(one, "close", None)):
                ends.push_async_callback(awaited, close)


class AsyncSerializingProducer(_WithSerdes, AIOProducer, Generic[K, V]):
    """An `AIOProducer` of objects: `producer = await AsyncSerializingProducer(conf)`, or `async with` it.

    `key.serializer`, `value.serializer` and their builders are as for a `SerializingProducer`; builders run when it
    is awaited. `options`: those of `AIOProducer`.
    """

    _KIND = "serializer"

    async def produce(  # type: ignore[override] # confluent-kafka's order of arguments: the key comes first here
        self,
        topic: str,
        key: K | None = None,
        value: V | None = None,
        partition: int = NO_PARTITION,
        timestamp: int = 0,
        headers: Any = None,
    ) -> "asyncio.Future[Message]":
        """Serialize a key and a value and queue the record, as `AIOProducer.produce` does.

        Raises `KeySerializationError` or `ValueSerializationError`; nothing is queued then.
        """
        serdes = self._serdes
        context = SerializationContext(topic, MessageField.KEY, as_headers(headers) if headers else None)
        key_data: Any = key
        value_data: Any = value
        if serdes.key is not None:
            with naming(topic, context.field, key):
                key_data = await awaited(serdes.key, key, context)
        context.field = MessageField.VALUE
        if serdes.value is not None:
            with naming(topic, context.field, value):
                value_data = await awaited(serdes.value, value, context)
        return await super().produce(topic, value_data, key_data, partition, timestamp, context.headers)


class AsyncDeserializingConsumer(_WithSerdes, AIOConsumer, Generic[K, V]):
    """An `AIOConsumer` of objects: `consumer = await AsyncDeserializingConsumer(conf)`, or `async with` it.

    `key.deserializer`, `value.deserializer` and their builders are as for a `DeserializingConsumer`; builders run when
    it is awaited. `options`: those of `AIOConsumer`.
    """

    _KIND = "deserializer"

    async def poll(self, timeout: float | None = -1) -> Message[K, V] | None:
        """The next record with its objects; None after `timeout` seconds.

        Raises `ConsumeError` for an error event, `KeyDeserializationError` or `ValueDeserializationError` for a record
        whose bytes can't be read; the next call goes on after it.
        """
        message = await super().poll(timeout)
        if message is None:
            return None
        raise_event(message)
        return await self._deserialized(message)

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message[K, V]]:
        """The next records with their objects, and error events as they are.

        Raises as `poll` for a record whose bytes can't be read, with those that came with it: `poll` one by one where
        that may be.
        """
        found = await super().consume(num_messages, timeout)
        return [one if one.error() is not None else await self._deserialized(one) for one in found]

    async def _deserialized(self, message: Message) -> Message[K, V]:
        serdes, context = self._serdes, context_of(message)
        if serdes.key is not None:
            with telling(message, context.field):
                key = await awaited(serdes.key, message.key(), context)
            message.set_key(key)
        context.field = MessageField.VALUE
        if serdes.value is not None:
            with telling(message, context.field):
                value = await awaited(serdes.value, message.value(), context)
            message.set_value(value)
        return message
