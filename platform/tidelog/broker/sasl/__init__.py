"""tidelog.broker.sasl: the principal of a connection."""
