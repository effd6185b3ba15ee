"""Clients for asyncio, in the shape of `confluent_kafka.aio`. Users import them from `tidelog.aio`."""
