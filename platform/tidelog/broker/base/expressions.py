"""Regular expressions of clients. They are those of RE2: time and memory that one takes are bounded, for any sender."""

from functools import lru_cache
from typing import Any, Final

from tidelog.log.base.errors import InvalidRegularExpressionError

# The longest expression, and the bytes that a compiled one may take.
LONGEST: Final = 4096
_MOST_MEMORY: Final = 1 << 20


@lru_cache(256)
def compiled(regex: str, what: str = "SubscribedTopicRegex") -> Any:
    """An expression of RE2. `what`: the name of the field that has it. Raises `InvalidRegularExpressionError`."""
    try:
        import re2
    except ImportError as e:
        raise InvalidRegularExpressionError(
            "This broker takes no regular expressions, as google-re2 is not installed: it is in the extra `broker`."
            " Install that, or subscribe by names."
        ) from e
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        if len(regex) > LONGEST:
            raise ValueError(f"it has {len(regex)} characters, and at most {LONGEST} are taken")
        return re2.compile(regex, options)
    except (re2.error, ValueError) as e:
        why = e.args[0].decode(errors="replace") if e.args and isinstance(e.args[0], bytes) else str(e)
        raise InvalidRegularExpressionError(
            f"{what} `{regex[:100]}` is not a valid regular expression: {why}. It is one of RE2, which"
            " knows no look-around and no back references."
        ) from e
