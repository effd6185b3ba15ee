"""tidelog.broker.groups: the coordinator of consumer groups."""
