"""tidelog.log.state: a topic's state, and which entry may follow it."""
