"""`org.apache.kafka.connect.json.JsonConverter`: JSON, with its schema in an envelope or without any."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final

import orjson

from tidelog.connect.converters.base import NOTHING, SchemaAndValue
from tidelog.connect.converters.json_values import exact_number, from_json, json_bytes, to_json
from tidelog.connect.converters.json_writers import JsonWriter, json_writer, packed_writer, schema_fragment
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.packed import Parts, StructLayout
from tidelog.connect.data.schema import ConnectSchema, SchemaField, SchemaType

_DEPTH: Final = 100
# How many schemas' writers are kept.
_SCHEMAS: Final = 1000
_TYPES: Final = {one.value: one for one in SchemaType}


class JsonConverter:
    """JSON of keys and values.

    `schemas`: with the envelope {"schema": …, "payload": …} (`schemas.enable`). `numeric`: decimals are numbers, not
    base64 of their digits (`decimal.format`). `default`: a null is written and read as its schema's default
    (`replace.null.with.default`).
    """

    def __init__(self, *, schemas: bool = True, numeric: bool = False, default: bool = True) -> None:
        self._schemas = schemas
        self._numeric = numeric
        self._default = default
        self._read_schema = lru_cache(maxsize=_SCHEMAS)(lambda text: schema_of_json(json.loads(text)))
        # By the identity of a schema, which is kept here: a source gives the same one again and again.
        self._writers: dict[int, tuple[ConnectSchema, JsonWriter, orjson.Fragment]] = {}
        # Of packed records, by the identity of their layout.
        self._packed: dict[int, tuple[StructLayout, Callable[[Parts], bytes]]] = {}

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The JSON. A null without a schema is null bytes: a tombstone."""
        if schema is None and value is None:
            return None
        try:
            _, write, described = self._writers.get(id(schema)) or self._writer(schema)
            if value is None and schema is not None and schema.optional and not self._default:
                payload = None
            else:
                payload = write(value)
            if self._schemas:
                return json_bytes({"schema": described, "payload": payload})
            return None if payload is None else json_bytes(payload)
        except DataError as error:
            raise _formless(topic, error) from None
        except RecursionError:
            raise _formless(topic, "it is nested too deep") from None

    def from_packed(self, topic: str, layout: StructLayout, parts: Parts) -> bytes:
        """The JSON of a struct that is not put together, as `from_connect` writes the struct."""
        try:
            _, write = self._packed.get(id(layout)) or self._packed_writer(layout)
            return write(parts)
        except DataError as error:
            raise _formless(topic, error) from None

    def _packed_writer(self, layout: StructLayout) -> tuple[StructLayout, Callable[[Parts], bytes]]:
        if len(self._packed) >= _SCHEMAS:
            self._packed.clear()
        around = b"", b""
        if self._schemas:
            around = b'{"schema":' + orjson.dumps(schema_as_json(layout.schema)) + b',"payload":', b"}"
        made = self._packed[id(layout)] = layout, packed_writer(layout, numeric=self._numeric, around=around)
        return made

    def _writer(self, schema: ConnectSchema | None) -> tuple[Any, JsonWriter, Any]:
        if schema is None:
            return None, partial(to_json, None, numeric=self._numeric), None
        if len(self._writers) >= _SCHEMAS:
            self._writers.clear()
        made = schema, json_writer(schema, numeric=self._numeric), schema_fragment(schema_as_json(schema))
        self._writers[id(schema)] = made
        return made

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """What the JSON says; its numbers with a point are decimals where the schema has decimals."""
        if data is None:
            return NOTHING
        try:
            document = json.loads(data, parse_float=exact_number if self._schemas else float)
        except (ValueError, RecursionError) as error:
            raise DataError(f"A record of topic {topic} is no JSON: {error or 'it is nested too deep'}") from None
        if not self._schemas:
            return None, document
        if not isinstance(document, dict) or document.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain'
                " additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in"
                f" your converter configuration. Topic: {topic}"
            )
        if document["schema"] is None:
            return None, _plain(document["payload"])
        try:
            schema = self._read_schema(json.dumps(document["schema"], default=float))
            return schema, from_json(schema, document["payload"], default=self._default)
        except DataError as error:
            raise DataError(f"A record of topic {topic} isn't what its schema says: {error}") from None

    def close(self) -> None:
        """Nothing to release."""


def _formless(topic: str, why: object) -> DataError:
    return DataError(f"A record of topic {topic} has no form in JSON: {why}")


def _plain(value: Any) -> Any:
    """Numbers without a schema are floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def schema_as_json(schema: ConnectSchema) -> dict[str, Any]:
    """A schema as the envelope has it (`JsonConverter.asJsonSchema`)."""
    description: dict[str, Any] = {"type": schema.type.value}
    if schema.type is SchemaType.MAP and schema.key_schema is not None:
        description["keys"] = schema_as_json(schema.key_schema)
    if schema.type is SchemaType.MAP and schema.value_schema is not None:
        description["values"] = schema_as_json(schema.value_schema)
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        description["items"] = schema_as_json(schema.value_schema)
    if schema.type is SchemaType.STRUCT:
        description["fields"] = [{**schema_as_json(one.schema), "field": one.name} for one in schema.fields]
    description["optional"] = schema.optional
    named = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    description |= {name: value for name, value in named.items() if value is not None}
    if schema.parameters:
        description["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        description["default"] = to_json(replace(schema, default=None), schema.default)
    return description


def schema_of_json(description: Any, depth: int = 0) -> ConnectSchema:
    """The schema of an envelope (`JsonConverter.asConnectSchema`). Raises `DataError`."""
    if not isinstance(description, dict) or not isinstance(description.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    kind = _TYPES.get(description["type"])
    if kind is None:
        raise DataError(f"Unknown schema type: {description['type'][:100]}")
    if depth > _DEPTH:
        raise DataError(f"Schemas are nested deeper than {_DEPTH}.")

    def inner(name: str, said: str) -> ConnectSchema:
        if not isinstance(description.get(name), dict):
            raise DataError(said)
        return schema_of_json(description[name], depth + 1)

    keys = values = None
    fields: tuple[SchemaField, ...] = ()
    if kind is SchemaType.ARRAY:
        values = inner("items", "Array schema did not specify the element type")
    elif kind is SchemaType.MAP:
        keys = inner("keys", "Map schema did not specify the key type")
        values = inner("values", "Map schema did not specify the value type")
    elif kind is SchemaType.STRUCT:
        fields = _fields_of(description.get("fields"), depth)
    schema = ConnectSchema(
        kind,
        description.get("optional") is True,
        _text(description, "name"),
        _version(description.get("version")),
        _text(description, "doc"),
        None,
        _parameters(description.get("parameters")),
        fields,
        keys,
        values,
    )
    default = description.get("default")
    return schema if default is None else replace(schema, default=from_json(schema, default))


def _fields_of(descriptions: Any, depth: int) -> tuple[SchemaField, ...]:
    if not isinstance(descriptions, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for description in descriptions:
        if not isinstance(description, dict) or not isinstance(description.get("field"), str):
            raise DataError("Struct schema's field name not specified properly")
        fields.append(SchemaField(description["field"], schema_of_json(description, depth + 1)))
    if len({one.name for one in fields}) < len(fields):
        raise DataError("Cannot create field because of field name duplication")
    return tuple(fields)


def _text(found: Mapping[str, Any], name: str) -> str | None:
    value = found.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(f"Invalid schema {name}, must be a string")
    return value


def _version(value: Any) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise DataError("Invalid schema version, must be an integer")
    return value


def _parameters(value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise DataError("Schema parameters must be an object of strings")
    return value
