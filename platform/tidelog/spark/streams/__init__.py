"""Kafka Streams' words over Structured Streaming. Users import them from `tidelog.streams`."""
