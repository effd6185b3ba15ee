"""A client of Kafka's protocol that says exactly what a test has it say: requests as kio's entities of any version."""

import asyncio
import io
import itertools
import struct
from datetime import timedelta
from functools import cache
from types import TracebackType
from typing import Any, Self, get_args, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import is_flexible


class WireClient:
    """One connection. Requests are sent one at a time, and their answers read."""

    def __init__(self, address: str, client_id: str = "test") -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._client_id = client_id
        self._ids = itertools.count(1)
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._writer.close()

    def drop(self) -> None:
        """End the connection as a killed client does."""
        self._writer.transport.abort()

    async def ask(self, api: ApiKey, version: int, /, **fields: Any) -> Any:
        """The answer to a request of these fields; nested ones as mappings, times in ms, what is left out by default.

        Fields that the version lacks are left out, too.
        """
        async with self._turn:
            number = next(self._ids)
            self._writer.write(request_frame(api, version, number, self._client_id, fields))
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            frame = await self._reader.readexactly(size)
        assert struct.unpack_from(">i", frame)[0] == number
        start = 5 if is_flexible(api, version) and api is not ApiKey.API_VERSIONS else 4
        schema = load_response_schema(api, version)
        answer, end = entity_reader(schema)(memoryview(frame)[start:], 0)
        assert end == len(frame) - start
        return answer


def request_frame(key: ApiKey, version: int, number: int, client_id: str, fields: dict[str, Any]) -> bytes:
    """A request's frame."""
    schema = load_request_schema(key, version)
    assert schema.__type__ is EntityType.request
    body = io.BytesIO()
    entity_writer(schema)(body, made(schema, fields))
    name = client_id.encode()
    header = struct.pack(">hhih", key, version, number, len(name)) + name
    header += b"\0" if is_flexible(key, version) else b""
    return struct.pack(">i", len(header) + len(body.getvalue())) + header + body.getvalue()


def made(schema: Any, fields: dict[str, Any]) -> Any:
    """An entity of these fields, as far as its version has them."""
    hints = _hints(schema)
    return schema(**{name: _value(hints[name], value) for name, value in fields.items() if name in hints})


@cache
def _hints(schema: Any) -> dict[str, Any]:
    return get_type_hints(schema)


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return made(hint, value)
    if isinstance(value, list | tuple):
        tuples = hint if hasattr(hint, "__origin__") else next(one for one in get_args(hint) if get_args(one))
        return tuple(_value(get_args(tuples)[0], one) for one in value)
    if "Timedelta" in str(hint) and isinstance(value, int):
        return timedelta(milliseconds=value)
    return value
