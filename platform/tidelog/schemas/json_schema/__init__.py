"""JSON Schema, drafts 4 to 2020-12: read, and compared by Confluent's rules; payloads as columns."""
