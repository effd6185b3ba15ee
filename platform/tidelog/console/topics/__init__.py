"""tidelog.console.topics: the overview, and topics: listed, created, changed, deleted."""
