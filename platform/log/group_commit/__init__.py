"""tidelog.log.group_commit: what a producer has waiting becomes one entry."""
