"""Values of records as people read them: text, JSON, hex, and Avro and Protobuf by the lake's schemas."""

import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.json_values import Decode, ValueKind, decoder
from tidelog.clients.schema_registry.model import SchemaRegistryError
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.console.base.console import Console
from tidelog.log.base.errors import TidelogError
from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.schemas.base.framing import id_of

FORMATS: Final = ("auto", "text", "json", "hex", "avro", "protobuf")
# What lists show of a value; and how large one may be for lists to read it as more than text.
CUT: Final = 4_096
_MOST_READ: Final = 262_144
_KINDS: Final[Mapping[str, ValueKind]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}
_MOST_REMEMBERED: Final = 1_000
# Characters of why a value is shown as bytes: messages of validators have the value in them.
_MOST_REASON: Final = 300


class _Read(NamedTuple):
    """A value in a form ("": in none), its text, its schema's id, and why it is in none."""

    kind: str
    text: str
    schema: int | None
    why: str = ""


_UNREAD: Final = _Read("", "", None)


class ValueForms:
    """A part of the console: reads values by schemas of the lake, which it keeps. For many threads."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._client: SchemaRegistryClient | None = None
        self._decoders: dict[ValueKind, Decode] = {}
        self._kinds: dict[int, ValueKind | None] = {}

    def close(self) -> None:
        """Close the client of the registry."""
        if self._client is not None:
            self._client.close()

    def shown(self, data: bytes | None, wanted: str, topic: str, *, whole: bool) -> Mapping[str, Any] | None:
        """A value in a form of `FORMATS`; where it is not of that form, as text or hex, with the reason. None for null.

        `whole`: not cut, and read however large.
        """
        if data is None:
            return None
        kind, text, number, why = self._read(data, wanted, topic) if whole or len(data) <= _MOST_READ else _UNREAD
        if not kind:
            kind, text = _plain(data, wanted) if whole or len(data) <= CUT else _plain(data[:CUT], wanted, cut=True)
        cut = not whole and (len(text) > CUT or (kind in ("text", "hex") and len(data) > CUT))
        form: dict[str, Any] = {"as": kind, "text": text if whole else text[:CUT], "size": len(data), "cut": cut}
        if number is not None:
            form["schema"] = number
        if why:
            form["reason"] = why[:_MOST_REASON]
        return form

    def as_json(self, topic: str, data: bytes) -> Any:
        """What a value holds, for a path into it. Raises ValueError where it is neither JSON nor of a schema."""
        try:
            return orjson.loads(data)
        except ValueError:
            kind, text, _, _ = self._read(data, "auto", topic)
            if not kind:
                raise
            return orjson.loads(text)

    def _read(self, data: bytes, wanted: str, topic: str) -> _Read:
        """The value in a form that was wanted, `_UNREAD` where it is of none; with the reason, where it should be."""
        number = id_of(data) if wanted in ("auto", "avro", "protobuf", "json") else None
        if number is not None:
            kind = self._kind(number)
            if kind is not None and wanted in ("auto", kind):
                try:
                    context = SerializationContext(topic, MessageField.VALUE, [])
                    text = self._decoders[kind](data, context).decode()
                except (SerializationError, TidelogError, UnicodeDecodeError) as error:
                    return _Read("", "", None, f"It can't be read by schema {number}: {error}")
                return _Read(kind, text, number)
        if wanted in ("auto", "json") and data[:1].strip() in _JSON_STARTS:
            try:
                orjson.loads(data)
                return _Read("json", data.decode(), None)
            except ValueError:
                pass
        return _UNREAD

    def _kind(self, number: int) -> ValueKind | None:
        """The kind of a schema of the lake, None for an id that has none."""
        with self._lock:
            if number in self._kinds:
                return self._kinds[number]
            lake = self._console.lake
            try:
                if lake.peek(SCHEMAS_TOPIC) is None:
                    return None
                if self._client is None:
                    client = self._client = SchemaRegistryClient({"lake": lake})
                    self._decoders = {kind: decoder(kind, client) for kind in _KINDS.values()}
                value_kind = _KINDS.get(self._client.get_schema(number).schema_type or "AVRO")
            except SchemaRegistryError:
                value_kind = None
            if len(self._kinds) >= _MOST_REMEMBERED:
                self._kinds = {}
            if value_kind is not None:  # one that is not there may come
                self._kinds[number] = value_kind
            return value_kind


_JSON_STARTS: Final = frozenset(bytes([one]) for one in b'{["-0123456789tfn') | {b""}


def _plain(data: bytes, wanted: str, *, cut: bool = False) -> tuple[str, str]:
    """Text where the bytes are UTF-8 without control characters, else hex. `cut`: a character at the end may be split.

    >>> _plain("ü\\n".encode(), "auto"), _plain(b"\\x00\\xff", "auto"), _plain(b"a", "hex")
    (('text', 'ü\\n'), ('hex', '00ff'), ('hex', '61'))
    """
    if wanted == "hex":
        return "hex", data.hex()
    if wanted == "text":
        return "text", data.decode("utf-8", "replace")
    for less in range(4 if cut else 1):
        try:
            text = data[: len(data) - less].decode() if less else data.decode()
        except UnicodeDecodeError:
            continue
        if all(one >= " " or one in "\t\r\n" for one in text):
            return "text", text
        break
    return "hex", data.hex()
