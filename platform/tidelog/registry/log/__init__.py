"""The topic `_schemas` as the registry's log: read to its head, and appended to only there."""
