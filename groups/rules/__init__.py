"""tidelog.groups.rules: Kafka's group protocol as pure rules."""
