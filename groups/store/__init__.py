"""tidelog.groups.store: the table `__consumer_offsets`."""
