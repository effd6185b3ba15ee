"""tidelog.broker.cluster: which brokers serve a lake: their registrations, leases and links."""
