"""tidelog.cluster: the table `__cluster`, which brokers serve a lake, and their leases (docs/format.md)."""
