"""Kafka Connect over a lake: connectors, their workers, and Connect's REST API."""
