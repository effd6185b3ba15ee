"""Clients for asyncio, in the shape of `confluent_kafka.aio`."""

from tidelog.aio.consumer import AIOConsumer
from tidelog.aio.producer import AIOProducer
from tidelog.aio.serdes import AsyncDeserializingConsumer, AsyncSerializingProducer

__all__ = ["AIOConsumer", "AIOProducer", "AsyncDeserializingConsumer", "AsyncSerializingProducer"]
