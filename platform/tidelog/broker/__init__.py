"""tidelog.broker: Kafka's protocol over a lake, by processes that hold no state which the lake does not hold."""
