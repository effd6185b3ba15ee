"""Connect's REST API ("REST API" of Kafka's documentation of Connect)."""
