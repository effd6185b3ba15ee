"""One record, produced by hand."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.errors import bad
from tidelog.console.records.reading import topic_of

_NOT_BYTES: Final = 'must be null, {"text": "…"} or {"base64": "…"}'
# A request's body: a value of 10 MiB and what it is wrapped in, as base64 or with escapes, fits.
MOST_BODY: Final = 16 << 20


def produce(call: ConsoleCall) -> Any:
    """Append one record."""
    body = call.fields("partition", "key", "value", "headers")
    partition = body.get("partition")
    if not (partition is None or (isinstance(partition, int) and not isinstance(partition, bool))):
        raise bad("'partition' must be a whole number, or null to go by the key.")
    row = {
        "key": bytes_of(body.get("key"), "key"),
        "value": bytes_of(body.get("value"), "value"),
        "headers": _headers(body.get("headers")),
        "partition": partition,
    }
    ranges = topic_of(call).append([row])
    call.console.invalidate()
    ((found, (offset, _)),) = ranges.items()
    return {"partition": found, "offset": offset}


def bytes_of(given: Any, what: str) -> bytes | None:
    """The bytes of a part of the body. Raises `ConsoleError` 400.

    >>> bytes_of({"text": "ü"}, "key"), bytes_of({"base64": "/w=="}, "key"), bytes_of(None, "key")
    (b'\\xc3\\xbc', b'\\xff', None)
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise bad(f"'{what}' {_NOT_BYTES}.")
    (kind, text), *_ = given.items()
    if not isinstance(text, str) or kind not in ("text", "base64"):
        raise bad(f"'{what}' {_NOT_BYTES}.")
    if kind == "text":
        return text.encode()
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad(f"'{what}' is no base64: {error}.") from None


def _headers(given: Any) -> list[dict[str, Any]] | None:
    if not given:
        return None
    if not isinstance(given, list) or not all(isinstance(one, list) and len(one) == 2 for one in given):
        raise bad("'headers' must be a list of [name, value].")
    if not all(isinstance(name, str) for name, _ in given):
        raise bad("A header's name must be a text.")
    return [{"key": name, "value": bytes_of(value, f"header {name}")} for name, value in given]
