"""JSON text in and out, bounded in depth."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tidelog.schemas.base.errors import SchemaError

Json: TypeAlias = Any

# Deeper ones are refused; the libraries that read schemas recurse.
MOST_LEVELS = 200


def loads(text: str) -> Json:
    """Read a JSON text. Raises `SchemaError` for one that is no JSON, or deeper than `MOST_LEVELS`.

    Of keys that an object has twice, the last counts; numbers keep all their digits before the point.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
        dumps(value).encode()  # not of lone surrogates, which no text of UTF-8 holds
    except RecursionError:
        raise too_deep() from None
    except ValueError as error:
        raise SchemaError(f"The schema is not valid JSON: {error}. Send JSON text as the schema.") from error
    check_depth(value)
    return value


def dumps(value: Json, *, sort_keys: bool = False) -> str:
    """One line without blanks, as Jackson writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def check_depth(value: Json, most: int = MOST_LEVELS) -> None:
    """Raise `SchemaError` where objects and arrays are nested deeper than `most` levels."""
    level: list[Json] = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return
    raise too_deep(most)


def too_deep(most: int = MOST_LEVELS) -> SchemaError:
    """A schema whose parts are nested too deep."""
    message = (
        f"The schema is nested deeper than {most} levels. Move inner types to schemas of their own, as references."
    )
    return SchemaError(message)


def _within(value: Json) -> Sequence[Json]:
    inner: Sequence[Json] = ()
    if isinstance(value, Mapping):
        inner = tuple(value.values())
    elif isinstance(value, list):
        inner = value
    return [one for one in inner if isinstance(one, Mapping | list)]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
