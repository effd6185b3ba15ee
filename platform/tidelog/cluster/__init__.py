"""tidelog.cluster: the table `__cluster`, which brokers serve a lake (docs/format.md)."""
