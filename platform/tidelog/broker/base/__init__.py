"""tidelog.broker.base: what all parts of a broker share."""
