"""tidelog.broker.cluster: which brokers serve a lake: their registrations, beats and links."""
