"""What a connector implements, and what a worker gives it (`org.apache.kafka.connect.source` and `.sink`)."""
