"""Connect's data as JSON, with JSON Schemas in a registry: Confluent's JsonSchemaConverter and JsonSchemaData.

What JSON Schema lacks is in further properties: `connect.type`, `connect.index` (a field's place), `connect.version`
and `connect.parameters`. A name is the title, and an optional schema is a oneOf with null.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.clients.schema_registry.client import SchemaRegistryClient
from tidelog.clients.schema_registry.json_schema import JSONSerializer, check, validator_of
from tidelog.clients.schema_registry.model import Schema, SchemaRegistryError
from tidelog.clients.schema_registry.serdes import READER, WriterSchemas, configured, referenced
from tidelog.clients.values.errors import SerializationError
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.connect.config.definition import Importance
from tidelog.connect.config.values import FLAG, as_written
from tidelog.connect.converters.base import (
    NOTHING,
    SchemaAndValue,
    registry_client,
    registry_failure,
    registry_keys,
    required_schema,
    serializer_settings,
)
from tidelog.connect.converters.json_values import ONE_OF, by_texts, exact_number, from_json, json_bytes, to_json
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaField,
    SchemaType,
    array_of,
    map_of,
    struct_of,
)

ENUM: Final = "io.confluent.connect.json.Enum"
_OWN: Final = "io.confluent.connect.json"
_TYPE, _INDEX, _VERSION, _PARAMETERS = "connect.type", "connect.index", "connect.version", "connect.parameters"
_NULL: Final = {"type": "null"}
_OF_TYPES: Final[Mapping[SchemaType, Mapping[str, Any]]] = {
    SchemaType.INT8: {"type": "integer", _TYPE: "int8"}, SchemaType.INT16: {"type": "integer", _TYPE: "int16"},
    SchemaType.INT32: {"type": "integer", _TYPE: "int32"}, SchemaType.INT64: {"type": "integer", _TYPE: "int64"},
    SchemaType.FLOAT32: {"type": "number", _TYPE: "float32"}, SchemaType.FLOAT64: {"type": "number", _TYPE: "float64"},
    SchemaType.BOOLEAN: {"type": "boolean"}, SchemaType.STRING: {"type": "string"},
    SchemaType.BYTES: {"type": "string", _TYPE: "bytes"},
}  # fmt: skip
_NUMBERS: Final[Mapping[str, ConnectSchema]] = {
    "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "float32": FLOAT32, "float64": FLOAT64,
    "bytes": BYTES,
}  # fmt: skip


# --- Connect to JSON Schema ----------------------------------------------------------------------------------
JSON_SCHEMA_KEYS: Final = (
    registry_keys()
    .define("decimal.format", as_written("BASE64", "NUMERIC"), "BASE64", Importance.LOW,
            "How decimals are written: BASE64 (their digits as bytes) or NUMERIC.")
    .define("json.fail.invalid.schema", FLAG, False, Importance.MEDIUM,
            "Whether values that don't fit their schema are refused.")
    .define("use.optional.for.nonrequired", FLAG, False, Importance.MEDIUM,
            "Whether properties that a schema does not require are optional.")
)  # fmt: skip


def json_schema_of(schema: ConnectSchema, *, numeric: bool = False) -> dict[str, Any]:
    """The JSON Schema of a schema. `numeric`: decimals are numbers, not their bytes as text."""
    if schema.name == ONE_OF and schema.type is SchemaType.STRUCT:
        branches = [json_schema_of(replace(one.schema, optional=False), numeric=numeric) for one in schema.fields]
        return {"oneOf": [*([_NULL] if schema.optional else []), *branches]}
    written = {**_written(schema, numeric=numeric), **_described(schema)}
    return {"oneOf": [_NULL, written]} if schema.optional else written


def _written(schema: ConnectSchema, *, numeric: bool) -> dict[str, Any]:
    if schema.type is SchemaType.STRUCT:
        properties = {
            one.name: {**json_schema_of(one.schema, numeric=numeric), _INDEX: index}
            for index, one in enumerate(schema.fields)
        }
        return {"type": "object", "properties": properties}
    keys, values = schema.key_schema, schema.value_schema
    if schema.type is SchemaType.ARRAY and values is not None:
        return {"type": "array", "items": json_schema_of(values, numeric=numeric)}
    if schema.type is SchemaType.MAP and keys is not None and values is not None:
        if by_texts(schema):
            return {"type": "object", _TYPE: "map", "additionalProperties": json_schema_of(values, numeric=numeric)}
        entry = _written(struct_of({"key": keys, "value": values}), numeric=numeric)
        return {"type": "array", _TYPE: "map", "items": entry}
    if schema.name == DECIMAL and numeric:
        return {"type": "number", _TYPE: "bytes"}
    symbols = [one for name, one in schema.parameters.items() if name.startswith(f"{ENUM}.")]
    return {"enum": symbols} if symbols else dict(_OF_TYPES[schema.type])


def _described(schema: ConnectSchema) -> dict[str, Any]:
    keywords: dict[str, Any] = {}
    if schema.name is not None:
        keywords["title"] = schema.name
    if schema.version is not None:
        keywords[_VERSION] = schema.version
    if schema.doc is not None:
        keywords["description"] = schema.doc
    parameters = {name: one for name, one in schema.parameters.items() if not name.startswith(_OWN)}
    if parameters:
        keywords[_PARAMETERS] = parameters
    if schema.default is not None:
        keywords["default"] = to_json(replace(schema, default=None), schema.default)
    return keywords


# --- JSON Schema to Connect ----------------------------------------------------------------------------------


class JsonSchemaReader:
    """Reads one JSON Schema. `others`: schemas that it references, by their names.

    `optional_unless_required`: a property that `required` does not name is optional.
    """

    def __init__(self, root: Any, others: Mapping[str, Any], *, optional_unless_required: bool = False) -> None:
        self._root, self._others = root, others
        self._loose = optional_unless_required
        self._open: list[tuple[int, str]] = []

    def schema(self) -> ConnectSchema:
        """The Connect schema. Raises `DataError` for one that Connect's data has no form for."""
        return self._read(self._root, self._root)

    def _read(self, node: Any, root: Any) -> ConnectSchema:
        """`root`: what references inside of `node` start from."""
        if not isinstance(node, dict):
            raise DataError(f"The JSON Schema {node!r} says nothing of its values. Give it a type.")
        if "$ref" in node:
            return self._referred(str(node["$ref"]), root)
        branches = node.get("oneOf") or node.get("anyOf")
        if isinstance(branches, list):
            return self._union(branches, root)
        if isinstance(node.get("allOf"), list):
            return self._all(node["allOf"], {key: one for key, one in node.items() if key != "allOf"}, root)
        if isinstance(node.get("type"), list):
            return self._union([{**node, "type": one} for one in node["type"]], root)
        read = self._plain(node, root)
        schema = replace(
            read,
            name=node.get("title", read.name),
            version=node.get(_VERSION),
            doc=node.get("description"),
            parameters={**read.parameters, **node.get(_PARAMETERS, {})},
        )
        default = node.get("default")
        return schema if default is None else replace(schema, default=from_json(schema, default, registry=True))

    def _plain(self, node: Mapping[str, Any], root: Any) -> ConnectSchema:
        kind, own = node.get("type"), str(node.get(_TYPE, ""))
        if "enum" in node:
            return replace(STRING, parameters={ENUM: "", **{f"{ENUM}.{one}": str(one) for one in node["enum"]}})
        if kind == "boolean":
            return BOOLEAN
        if kind in ("integer", "number"):
            return _NUMBERS.get(own, INT64 if kind == "integer" else FLOAT64)
        if kind == "string":
            return BYTES if own == "bytes" else STRING
        if kind == "array":
            return self._array(node.get("items"), own, root)
        if kind == "object" or "properties" in node:
            return self._object(node, own, root)
        raise DataError(f"The JSON Schema says no type of Connect's: {kind or 'it has no type'}. Read it as text.")

    def _array(self, items: Any, own: str, root: Any) -> ConnectSchema:
        if items is None:
            raise DataError("Array schema did not specify the items type")
        if own == "map" and isinstance(items, dict):
            entry = items.get("properties", {})
            return map_of(self._read(entry.get("key"), root), self._read(entry.get("value"), root))
        return array_of(self._read(items, root))

    def _object(self, node: Mapping[str, Any], own: str, root: Any) -> ConnectSchema:
        properties, others = node.get("properties", {}), node.get("additionalProperties")
        if own == "map" or (not properties and isinstance(others, dict)):
            return map_of(STRING, self._read(others, root))
        numbered = enumerate(properties.items())
        ordered = sorted(numbered, key=lambda entry: (_place(entry[1][1], entry[0]), entry[0]))
        required = node.get("required", ())
        fields = []
        for _, (name, below) in ordered:
            schema = self._read(below, root)
            optional = self._loose and name not in required
            fields.append(SchemaField(name, schema.as_optional() if optional else schema))
        return ConnectSchema(SchemaType.STRUCT, fields=tuple(fields))

    def _union(self, branches: Sequence[Any], root: Any) -> ConnectSchema:
        others = [one for one in branches if not (isinstance(one, dict) and one.get("type") == "null")]
        optional = len(others) < len(branches)
        if len(others) == 1:
            found = self._read(others[0], root)
            return found.as_optional() if optional else found
        fields = {f"{ONE_OF}.field.{index}": self._read(one, root).as_optional() for index, one in enumerate(others)}
        return struct_of(fields, name=ONE_OF, optional=optional)

    def _all(self, parts: Sequence[Any], siblings: Mapping[str, Any], root: Any) -> ConnectSchema:
        """What all parts say together: fields of structs, or what several say of a value. `siblings`: keys beside."""
        plain = [one for one in parts if isinstance(one, dict) and not {"$ref", "properties"} & one.keys()]
        structs = [self._read(one, root) for one in (*parts, siblings) if one not in plain and _has_fields(one)]
        if not structs:
            return self._read({key: one for part in (*plain, siblings) for key, one in part.items()}, root)
        if any(one.type is not SchemaType.STRUCT for one in structs):
            raise DataError("The JSON Schema's allOf has references to what is no object. Read it without a schema.")
        fields = {field.name: field for one in structs for field in one.fields}
        name = siblings.get("title", next((one.name for one in structs if one.name is not None), None))
        return ConnectSchema(SchemaType.STRUCT, name=name, doc=siblings.get("description"), fields=(*fields.values(),))

    def _referred(self, reference: str, root: Any) -> ConnectSchema:
        node, inside = self._target(reference, root)
        here = (id(inside), reference)
        if here in self._open:
            raise DataError(f"The JSON Schema {reference} has itself inside: read it without a schema.")
        self._open.append(here)
        schema = self._read(node, inside)
        self._open.pop()
        return schema

    def _target(self, reference: str, root: Any) -> tuple[Any, Any]:
        """(what a reference names, the document that it is in)."""
        name, _, path = reference.partition("#")
        document = root
        if name:
            document = next((one for key, one in self._others.items() if name == key or name.endswith(f"/{key}")), None)
        node = document
        for step in filter(None, path.split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            raise DataError(f"The JSON Schema references {reference}, which is not there.")
        return node, document


def _place(schema: Any, place: int) -> int:
    return int(schema.get(_INDEX, place)) if isinstance(schema, dict) else place


def _has_fields(schema: Any) -> bool:
    return isinstance(schema, dict) and bool({"$ref", "properties"} & schema.keys())


class JsonSchemaConverter:
    """Keys or values as JSON behind their schema's id. `values`: a parsed configuration.

    `client`: of the registry, closed with the converter.
    """

    def __init__(self, client: SchemaRegistryClient, values: Mapping[str, Any], *, is_key: bool = False) -> None:
        self._client = client
        self._field = MessageField.KEY if is_key else MessageField.VALUE
        self._settings = serializer_settings(values) | {"validate": False}
        self._strict = values["json.fail.invalid.schema"]
        self._numeric = values["decimal.format"].upper() == "NUMERIC"
        self._loose = values["use.optional.for.nonrequired"]
        self._serializers: dict[ConnectSchema, tuple[JSONSerializer, Any]] = {}  # with what tests values, or None
        self._schemas: WriterSchemas[ConnectSchema] = WriterSchemas(
            client, configured(None, READER), self._compiled, "JSON"
        )

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a value. Raises `DataError`; `RetriableConnectError` where the registry does not answer."""
        if value is None:
            return None
        schema = schema or required_schema(value)
        json_value = to_json(schema, value, numeric=self._numeric, registry=True)
        try:
            made = self._serializers.get(schema)
            if made is None:
                text = json.dumps(json_schema_of(schema, numeric=self._numeric))
                writes = JSONSerializer(text, self._client, conf=self._settings, json_encode=json_bytes)
                tests = validator_of(self._client, Schema(text, "JSON")) if self._strict else None
                made = self._serializers[schema] = writes, tests
            serializer, validator = made
            if validator is not None:
                check(validator, json.loads(json_bytes(json_value)))
            return serializer(json_value, SerializationContext(topic, self._field))
        except SerializationError as error:
            raise DataError(f"The value does not fit its JSON Schema: {error}") from error
        except SchemaRegistryError as error:
            raise registry_failure(error) from error

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The schema and the value of bytes. Raises as `from_connect`."""
        if data is None:
            return NOTHING
        try:
            named, payload = self._schemas.unframed(data, SerializationContext(topic, self._field))
            schema = self._schemas.writer(named)
            json_value = json.loads(payload, parse_float=exact_number)
        except SchemaRegistryError as error:
            raise registry_failure(error) from error
        except (SerializationError, ValueError, RecursionError) as error:
            raise DataError(f"The bytes of {topic} can't be read as JSON: {error}") from error
        return schema, from_json(schema, json_value, registry=True)

    def close(self) -> None:
        """Close the registry's client."""
        self._client.close()

    def _compiled(self, schema: Schema) -> ConnectSchema:
        others = {name: json.loads(text) for name, text in referenced(self._client, schema.references).items()}
        root = json.loads(schema.schema_str or "")
        return JsonSchemaReader(root, others, optional_unless_required=self._loose).schema()


def json_schema_converter(config: Mapping[str, str], is_key: bool, lake: Any) -> JsonSchemaConverter:
    """The converter of a configuration. Raises `ConnectConfigError`."""
    values = JSON_SCHEMA_KEYS.parse(config)
    return JsonSchemaConverter(registry_client(values, lake), values, is_key=is_key)
