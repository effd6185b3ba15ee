"""tidelog.broker.cluster: which brokers serve a lake, and which of them leads what."""
