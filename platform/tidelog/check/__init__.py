"""tidelog.check: the invariants of a lake, and their repair."""
