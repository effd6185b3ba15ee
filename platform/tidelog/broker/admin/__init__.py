"""tidelog.broker.admin: topics, configurations and what describes a cluster, as Kafka's admin clients ask."""
