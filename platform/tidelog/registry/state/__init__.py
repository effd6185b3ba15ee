"""The registry's state: a fold of the records of `_schemas`, and the decisions about it."""
