"""Producer, Consumer and what they share, in the shape of confluent-kafka's Python client."""
