"""Avro: schemas read, written as Avro's Java library writes them, compared by its rules; payloads as columns."""
