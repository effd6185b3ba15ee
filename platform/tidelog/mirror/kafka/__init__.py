"""tidelog.mirror.kafka: a lake that copies topics and groups from Kafka, offsets included."""
