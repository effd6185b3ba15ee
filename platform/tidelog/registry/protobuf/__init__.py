"""Protobuf schemas: read, written as Confluent's registry writes them, and compared by its rules."""
