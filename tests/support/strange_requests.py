"""Requests of every API and version, by kio's schemas: well formed at random, large, and mutated."""

import io
import random
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import Any
from uuid import UUID

from kio.index import load_request_schema
from kio.serial import entity_writer
from kio.static.constants import EntityType

from tidelog.broker.wire.apis import OFFERED, ApiKey

ALL: Sequence[tuple[ApiKey, int]] = [
    (key, version) for key, versions in OFFERED.items() for version in range(versions.first, versions.last + 1)
]
_TEXTS = (
    *("", "t", "g", "m", "nosuch", "tx", "*", "../x", "\0", "é", "a" * 300, "__access", "__consumer_offsets"),
    *(
        "consumer",
        "range",
        "1",
        "-1",
        "SCRAM-SHA-256",
        "cleanup.policy",
        "compact",
        "retention.ms",
        "user",
        "client-id",
    ),
    *("User:ann", "producer_byte_rate", "kafka-cluster"),
)
_NUMBERS = (0, 1, 2, -1, -2, 3, 5, 127, 255, 1000, 32767, -32768, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63))
_BITS = {
    "int8": 7,
    "int16": 15,
    "uint16": 16,
    "int32": 31,
    "int64": 63,
    "timedelta_i32": 31,
    "timedelta_i64": 63,
}
_PIECES = (
    b"\xff" * 4,
    b"\x7f\xff\xff\xff",
    b"\0\0\0\1",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\x7f",
    b"\x01\xb8\x17\x03abc",
)


class Strange:
    """Requests of one seed. `texts`, `blobs`, `ids`: values that are used beside the usual ones."""

    def __init__(
        self, seed: int, texts: Sequence[str] = (), blobs: Sequence[bytes] = (), ids: Sequence[str] = ()
    ) -> None:
        self.random = random.Random(seed)
        self._texts = (*_TEXTS, *texts)
        self._ids = [UUID(one) for one in ids]
        self._blobs = (b"", b"x", bytes(30), b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0", *blobs)

    def entity(self, schema: Any, depth: int = 0) -> Any:
        """An entity with values at random."""
        return schema(**{one.name: self._value(one, depth) for one in _fields(schema)})

    def request(self, key: ApiKey, version: int) -> bytes:
        """The body of a well-formed request."""
        schema = load_request_schema(key, version)
        assert schema.__type__ is EntityType.request
        return encoded(self.entity(schema))

    def mutated(self, body: bytes) -> bytes:
        """The bytes with lengths, counts, nulls and tags changed, pieces gone or added, or their end cut off."""
        data, chance = bytearray(body), self.random
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(6):
                case 0:
                    data[at : at + 1] = bytes([chance.choice((0, 1, 2, 127, 128, 255, chance.randrange(256)))])
                case 1:
                    piece = chance.choice(_PIECES)
                    data[at : at + len(piece)] = piece
                case 2:
                    del data[at:]
                case 3:
                    del data[at : at + chance.choice((1, 2, 4, 16))]
                case 4:
                    data[at:at] = chance.choice(_PIECES)
                case _:
                    data[at:at] = chance.randbytes(chance.choice((1, 4, 64)))
        return bytes(data)

    def _value(self, field: "_Field", depth: int) -> Any:
        if field.is_tagged and self.random.random() < 0.5:
            return field.default
        if field.is_nullable and self.random.random() < 0.15:
            return None
        if field.is_array:
            count = self.random.choice((0, 1, 1, 1, 2, 3))
            return tuple(self._one(field.kind, field.inner, depth) for _ in range(count))
        return self._one(field.kind, field.inner, depth)

    def _one(self, kind: str | None, schema: Any, depth: int) -> Any:
        chance = self.random
        match kind:
            case None:
                return self.entity(schema, depth + 1)
            case "string":
                return chance.choice(self._texts)
            case "bytes" | "records":
                return chance.choice(self._blobs)
            case "uuid":
                return chance.choice((None, UUID(int=chance.getrandbits(128)), *self._ids))
            case "bool":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.0, 1000.0, 1e308))
        most = 2 ** _BITS[kind] - 1
        least = 0 if kind.startswith("uint") else -most - 1
        number = chance.choice([one for one in _NUMBERS if least <= one <= most])
        if not kind.startswith("timedelta"):
            return number
        # kio writes no longer times
        return timedelta(milliseconds=max(-(2**53), min(2**53, number)))


def encoded(entity: Any) -> bytes:
    """The bytes of an entity."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def arrays_of(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays in a request."""
    for field in _fields(schema):
        if field.is_array:
            yield (*path, field.name)
        if is_dataclass(field.inner):
            yield from arrays_of(field.inner, (*path, field.name))


def large(
    schema: Any, path: tuple[str, ...], count: int, text: Callable[[int], str] = "n{}".format, number: int = 0
) -> Any:
    """A request whose array at the path has `count` elements, all different; every other one has one or none."""
    given = {}
    for field in _fields(schema):
        on_path = path[:1] == (field.name,)
        if field.is_array:
            times = 0 if not on_path else count if len(path) == 1 else 1
            rest = path[1:]
            given[field.name] = tuple(_plain(field, rest, count, text, one) for one in range(times))
        elif field.name == "acks":
            given[field.name] = -1  # with 0 there is no answer to wait for
        elif field.default is not MISSING and not on_path:
            given[field.name] = field.default
        elif field.is_nullable and field.kind != "string" and not on_path:
            given[field.name] = None
        else:
            given[field.name] = _plain(field, path[1:] if on_path else (), count, text, number)
    return schema(**given)


def _plain(field: "_Field", path: tuple[str, ...], count: int, text: Callable[[int], str], number: int) -> Any:
    match field.kind:
        case None:
            return large(field.inner, path, count, text, number)
        case "string":
            return text(number)
        case "bytes" | "records":
            return b"x"
        case "uuid":
            return UUID(int=number + 1)
        case "bool":
            return False
        case "float64":
            return 1.0
        case "timedelta_i32" | "timedelta_i64":
            return timedelta(milliseconds=100)
    return number % 100 if field.kind == "int8" else number


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of an entity: kio's name of its type, None for an entity, which `inner` is."""

    name: str
    kind: str | None
    inner: Any
    is_array: bool
    is_nullable: bool
    is_tagged: bool
    default: Any


@cache
def _fields(schema: Any) -> Sequence[_Field]:
    hints = typing.get_type_hints(schema)
    found = []
    for f in fields(schema):
        options = typing.get_args(hints[f.name])
        is_nullable = NoneType in options
        bare = next(one for one in options if one is not NoneType) if is_nullable else hints[f.name]
        is_array = typing.get_origin(bare) is tuple
        inner = typing.get_args(bare)[0] if is_array else bare
        is_tagged = "tag" in f.metadata and f.default is not MISSING
        found.append(_Field(f.name, f.metadata.get("kafka_type"), inner, is_array, is_nullable, is_tagged, f.default))
    return found
