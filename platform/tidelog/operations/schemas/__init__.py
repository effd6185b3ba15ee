"""The schemas of a lake: a fold of the records of `_schemas`, the decisions about it, and the log that holds it."""
