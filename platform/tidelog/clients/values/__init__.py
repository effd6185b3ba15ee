"""tidelog.clients.values: messages, partitions and errors, as confluent-kafka has them."""
