"""Which records a page asks for: by key, header, text, and a path into JSON. Pure.

A path is a part of JSONPath (RFC 9535): names and indexes only, `$.order.lines[0]['sku']`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tidelog.console.base.errors import bad

Headers = Sequence[tuple[str, bytes | None]]
# A record's value as what JSON holds; raises ValueError where it is nothing of the kind.
AsJson = Callable[[bytes], Any]
_STEP: Final = re.compile(r"""\.([^.\[\]'"=]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_MOST_STEPS: Final = 64
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """All of what is given must be so; None asks for nothing.

    `key`, `text`: somewhere in the key, in the value. `headers`: names, each with a value or None for any. `path`:
    steps, and `wanted` the text that is there, None for any.
    """

    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    text: bytes | None = None
    path: tuple[str | int, ...] | None = None
    wanted: str | None = None

    @property
    def takes_all(self) -> bool:
        """Whether every record passes."""
        return self == RecordFilter()

    def takes(self, key: bytes | None, value: bytes | None, headers: Headers, as_json: AsJson) -> bool:
        """Whether a record passes."""
        return (
            (self.key is None or (key is not None and self.key in key))
            and all(_has(headers, name, wanted) for name, wanted in self.headers)
            and (self.text is None or (value is not None and self.text in value))
            and (self.path is None or (value is not None and self._at_path(value, as_json)))
        )

    def _at_path(self, value: bytes, as_json: AsJson) -> bool:
        assert self.path is not None  # the caller looks
        try:
            node = as_json(value)
        except ValueError:
            return False
        for step in self.path:
            node = _inside(node, step)
            if node is _MISSING:
                return False
        return self.wanted is None or as_text(node) == self.wanted


def record_filter(key: str, headers: Sequence[str], text: str, path: str) -> RecordFilter:
    """A filter of a query's texts; "" asks for nothing. Raises `ConsoleError` 400.

    `headers`: "name" or "name:text"; `path`: "$.a.b" or "$.a.b=text".
    """
    steps, wanted = parsed_path(path) if path else (None, None)
    pairs = []
    for one in headers:
        name, colon, value = one.partition(":")
        if name:
            pairs.append((name, _bytes(value) if colon else None))
    return RecordFilter(_bytes(key) if key else None, tuple(pairs), _bytes(text) if text else None, steps, wanted)


def parsed_path(path: str) -> tuple[tuple[str | int, ...], str | None]:
    """The steps of a path, and the text after "=". Raises `ConsoleError` 400.

    >>> parsed_path("$.order.lines[0]['a.b']=7")
    (('order', 'lines', 0, 'a.b'), '7')
    >>> parsed_path("$")
    ((), None)
    """
    if not path.startswith("$"):
        raise bad("'path' must begin with '$', as in $.order.id=7.")
    steps: list[str | int] = []
    at = 1
    while at < len(path) and path[at] != "=":
        match = _STEP.match(path, at)
        if match is None or len(steps) == _MOST_STEPS:
            raise bad(f"'path' can't be read from {path[at : at + 20]!r} on: names and indexes, as $.lines[0]['sku'].")
        name, index, single, double = match.groups()
        steps.append(int(index) if index else name or single or double or "")
        at = match.end()
    return tuple(steps), path[at + 1 :] if at < len(path) else None


def as_text(found: Any) -> str:
    """What JSON holds, as a person writes it: a text without quotes."""
    return found if isinstance(found, str) else orjson.dumps(found).decode()


def _inside(node: Any, step: str | int) -> Any:
    if isinstance(node, dict) and isinstance(step, str):
        return node.get(step, _MISSING)
    if isinstance(node, list) and isinstance(step, int) and step < len(node):
        return node[step]
    return _MISSING


def _has(headers: Headers, name: str, wanted: bytes | None) -> bool:
    return any(own == name and (wanted is None or value == wanted) for own, value in headers)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
