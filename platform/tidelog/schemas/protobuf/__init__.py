"""Protobuf: schemas read, written as Confluent's registry writes them, compared by its rules; payloads as columns."""
