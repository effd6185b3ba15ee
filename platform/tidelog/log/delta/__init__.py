"""tidelog.log.delta: Delta's actions, schema and paths."""
