"""tidelog.groups.assignors: Kafka's assignors."""
