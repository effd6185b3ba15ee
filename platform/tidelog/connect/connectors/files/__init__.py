"""Files as sources and sinks: Kafka's own example connectors, and folders of files."""
