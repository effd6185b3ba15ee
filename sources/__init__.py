"""The Spark source: topics read by batch and streaming queries, with the options of Spark's Kafka source."""
