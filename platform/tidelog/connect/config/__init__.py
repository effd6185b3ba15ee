"""What a connector may be configured with: keys, their types, and how values are checked (Kafka's `ConfigDef`)."""
