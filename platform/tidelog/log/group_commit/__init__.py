"""tidelog.log.group_commit: what many producers have waiting becomes one entry."""
