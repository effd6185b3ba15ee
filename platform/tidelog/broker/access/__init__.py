"""tidelog.broker.access: what clients may do, and how much."""
