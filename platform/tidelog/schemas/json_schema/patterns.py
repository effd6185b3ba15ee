"""Regular expressions of schemas, matched in linear time: a pattern is the user's, and must not hang the registry."""

from functools import lru_cache

import jsonschema_rs


@lru_cache(maxsize=1024)
def matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name; not, for patterns that need backtracking, or are none."""
    try:
        validator = jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions())
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return validator.is_valid(name)
