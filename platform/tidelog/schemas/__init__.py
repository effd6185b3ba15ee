"""tidelog.schemas: Avro, JSON Schema and Protobuf: read, written, compared, and compiled to columns and back."""
