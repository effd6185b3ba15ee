"""Confluent's HTTP API of a schema registry ("Schema Registry API Reference" of its documentation)."""
