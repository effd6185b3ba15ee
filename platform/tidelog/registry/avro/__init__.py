"""Avro schemas: read, written as Avro's Java library writes them, and compared by Avro's schema resolution."""
