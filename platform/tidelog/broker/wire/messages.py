"""Requests and answers as bytes, by kio: generated from Kafka's own message definitions.

Handlers see a request as kio's entity of its version. They answer with plain mappings, in the field names of the newest
version: what the request's version does not have is left out.
"""

import io
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime, timedelta
from functools import cache
from types import NoneType
from typing import Any, Final

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError
from kio.static.protocol import Entity

from tidelog.broker.wire.apis import BETWEEN_BROKERS, OFFERED, ApiKey
from tidelog.broker.wire.errors import LargeRequestError, MalformedRequestError
from tidelog.broker.wire.large_requests import large_reader
from tidelog.broker.wire.soundness import MOST_ELEMENTS, TooManyElementsError, sound

Answer = Mapping[str, Any]
Build = Callable[[Answer], Entity]

# A request of more elements is large: it is decoded beside the loop that answers clients.
FEW_ELEMENTS: Final = 1_000
_EPOCH = datetime.fromtimestamp(0, UTC)


def decode(key: ApiKey, version: int, payload: memoryview, *, large: bool = False) -> Any:
    """The request that the payload begins with; of what brokers ask each other, its bytes.

    Bytes after its end are passed over, as Kafka does: librdkafka sends three with a Metadata request for all topics.
    Raises `MalformedRequestError`, and `LargeRequestError` for one that is to be decoded as `large`, beside the loop.
    """
    if key in BETWEEN_BROKERS:
        return payload
    schema, read = _reader(key, version)
    try:
        if large:
            request, _ = large_reader(schema)(sound(schema, payload), 0)
        else:
            request, _ = read(sound(schema, payload, FEW_ELEMENTS), 0)
    except TooManyElementsError as e:
        if not large:
            raise LargeRequestError(f"A request {key.name} has more than {FEW_ELEMENTS} elements.") from e
        what = f"its arrays have more than {MOST_ELEMENTS} elements"
        raise MalformedRequestError(f"A request {key.name} of version {version} can't be read: {what}.") from e
    except (SerialError, ValueError, OverflowError) as e:
        raise MalformedRequestError(f"A request {key.name} of version {version} can't be read: {e}.") from e
    return request


def encode(key: ApiKey, version: int, answer: Answer) -> bytes:
    """The answer's bytes, without a header. Raises `KeyError` for a field that no version has, or that is missing."""
    build, write = _writer(key, version)
    buffer = io.BytesIO()
    write(buffer, build(answer))
    return buffer.getvalue()


def errors_in(answer: Answer) -> Counter[int]:
    """{error code: how often} of an answer; 0 is for none. Source: Kafka's `AbstractResponse.errorCounts`."""
    errors: Counter[int] = Counter()
    for name, value in answer.items():
        if name == "error_code":
            errors[int(value)] += 1
        elif isinstance(value, Sequence) and value and isinstance(value[0], Mapping):
            for element in value:
                errors.update(errors_in(element))
    return errors


@cache
def is_flexible(key: ApiKey, version: int) -> bool:
    """Whether the API's messages of this version have tagged fields, and so their headers (KIP-482)."""
    return key not in BETWEEN_BROKERS and load_request_schema(key, version).__flexible__


@cache
def has_throttle_time(key: ApiKey) -> bool:
    """Whether answers of the API have a throttle time, in the newest version at least."""
    return "throttle_time" in {f.name for f in fields(load_response_schema(key, OFFERED[key].last))}


@cache
def _reader(key: ApiKey, version: int) -> tuple[type[Entity], Callable[[memoryview, int], tuple[Any, int]]]:
    schema = load_request_schema(key, version)
    return schema, entity_reader(schema)


@cache
def _writer(key: ApiKey, version: int) -> tuple[Build, Callable[[io.BytesIO, Entity], None]]:
    schema = load_response_schema(key, version)
    return _builder(key, schema), entity_writer(schema)


@cache
def _builder(key: ApiKey, schema: type[Entity]) -> Build:
    """A function that makes an entity of a mapping."""
    hints = typing.get_type_hints(schema)
    parts = [(f.name, _default(f, hints[f.name]), _convert(key, f, hints[f.name])) for f in fields(schema)]
    names = _names(key)[schema.__name__]

    def build(values: Answer) -> Entity:
        if not names.issuperset(values):
            raise KeyError(f"{schema.__name__} of {key.name} has no field {sorted(set(values) - names)}")
        given = {}
        for name, default, convert in parts:
            if name in values:
                value = values[name]
                given[name] = value if convert is None or value is None else convert(value)
            elif default is not MISSING:
                given[name] = default
            else:
                raise KeyError(f"{schema.__name__} of {key.name} needs its field '{name}'")
        return schema(**given)

    return build


@cache
def _names(key: ApiKey) -> Mapping[str, set[str]]:
    """{entity: the names of its fields in any offered version} of an API's answers."""
    by_entity: dict[str, set[str]] = {}

    def add(schema: Any) -> None:
        hints = typing.get_type_hints(schema)
        by_entity.setdefault(schema.__name__, set()).update(hints_of.name for hints_of in fields(schema))
        for f in fields(schema):
            if "kafka_type" not in f.metadata:
                add(_nested(hints[f.name])[0])

    for version in range(OFFERED[key].first, OFFERED[key].last + 1):
        add(load_response_schema(key, version))
    return by_entity


def _default(field: Field[Any], hint: Any) -> Any:
    """What a field has that the answer leaves open: nothing, no error, or what the definition says."""
    if field.default is not MISSING:
        return field.default
    if typing.get_origin(_without_none(hint)) is tuple:
        return ()
    if field.metadata.get("kafka_type") == "error_code":
        return ErrorCode.none
    if field.metadata.get("kafka_type") == "timedelta_i32":  # the throttle time
        return timedelta()
    return None if hint is not _without_none(hint) else MISSING


def _convert(key: ApiKey, field: Field[Any], hint: Any) -> Callable[[Any], Any] | None:
    kind = field.metadata.get("kafka_type")
    if kind is None:
        entity, is_array = _nested(hint)
        build = _builder(key, entity)
        return (lambda values: tuple(map(build, values))) if is_array else build
    if typing.get_origin(_without_none(hint)) is tuple:
        return tuple
    return _CONVERSIONS.get(kind)


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "error_code": ErrorCode,
    "timedelta_i32": lambda ms: timedelta(milliseconds=ms),
    "timedelta_i64": lambda ms: timedelta(milliseconds=ms),
    "datetime_i64": lambda ms: _EPOCH + timedelta(milliseconds=ms),  # -1, for none, too
}


def _nested(hint: Any) -> tuple[Any, bool]:
    """The entity of a field without a primitive type, and whether the field is an array of them."""
    bare = _without_none(hint)
    return (typing.get_args(bare)[0], True) if typing.get_origin(bare) is tuple else (bare, False)


def _without_none(hint: Any) -> Any:
    kinds = [kind for kind in typing.get_args(hint) if kind is not NoneType]
    return kinds[0] if NoneType in typing.get_args(hint) else hint
