"""The Spark sink: rows of batch and streaming queries appended to topics, with the options of Spark's Kafka sink."""
