"""tidelog.clients.stats: librdkafka's statistics."""
