"""`confluent_kafka.aio` under tidelog's name: clients for asyncio; the code is in `clients/aio`."""

from tidelog.clients.aio.consumer import AIOConsumer
from tidelog.clients.aio.producer import AIOProducer
from tidelog.clients.aio.serdes import AsyncDeserializingConsumer, AsyncSerializingProducer

__all__ = ["AIOConsumer", "AIOProducer", "AsyncDeserializingConsumer", "AsyncSerializingProducer"]
