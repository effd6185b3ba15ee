"""Connect's schemas as Avro's and back, by the rules of Confluent's AvroData.

What Avro lacks is in further properties: `connect.type` (int8, int16), `connect.name`, `connect.version`,
`connect.doc`, `connect.parameters` and `connect.default`.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tidelog.connect.converters.json_values import from_json, number_of, unscaled
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    SCALE,
    STRING,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    SchemaType,
    array_of,
    date_schema,
    decimal_schema,
    map_of,
    time_schema,
    timestamp_schema,
)
from tidelog.schemas.avro.model import ABSENT, AvroField, AvroType

NAMESPACE: Final = "io.confluent.connect.avro"
UNION: Final = f"{NAMESPACE}.Union"
MAP_ENTRY: Final = "MapEntry"
_ENUM: Final = f"{NAMESPACE}.Enum"
_PRECISION: Final = 64
_PLAIN: Final[Mapping[SchemaType, Any]] = {
    SchemaType.INT8: {"type": "int", "connect.type": "int8"},
    SchemaType.INT16: {"type": "int", "connect.type": "int16"},
    SchemaType.INT32: {"type": "int"}, SchemaType.INT64: {"type": "long"}, SchemaType.FLOAT32: {"type": "float"},
    SchemaType.FLOAT64: {"type": "double"}, SchemaType.BOOLEAN: {"type": "boolean"},
    SchemaType.STRING: {"type": "string"}, SchemaType.BYTES: {"type": "bytes"},
}  # fmt: skip
_LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis"}
_OF_AVRO: Final[Mapping[str, ConnectSchema]] = {
    "boolean": BOOLEAN, "int": INT32, "long": INT64, "float": FLOAT32, "double": FLOAT64, "bytes": BYTES,
    "string": STRING,
}  # fmt: skip
_OF_LOGICAL: Final[Mapping[tuple[str, str], ConnectSchema]] = {
    ("int", "date"): date_schema(), ("int", "time-millis"): time_schema(),
    ("long", "timestamp-millis"): timestamp_schema(),
}  # fmt: skip


# --- Connect to Avro ---------------------------------------------------------------------------------------


class AvroWriter:
    """Writes one schema; records that come again are written by their names."""

    def __init__(self) -> None:
        self._named: dict[str, ConnectSchema] = {}
        self._unnamed = 0

    def schema(self, schema: ConnectSchema) -> Any:
        """The Avro schema, as JSON has it. Raises `DataError` where two structs have one name."""
        written = self._required(schema)
        if not schema.optional:
            return written
        return ["null", written] if schema.default is None else [written, "null"]

    def _required(self, schema: ConnectSchema) -> Any:
        if schema.type is SchemaType.STRUCT:
            return self._struct(schema)
        if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
            return {"type": "array", "items": self.schema(schema.value_schema), **_properties(schema)}
        if schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
            return self._map(schema, schema.key_schema, schema.value_schema)
        written = {**_PLAIN[schema.type], **_properties(schema)}
        if schema.name == DECIMAL:
            scale = int(schema.parameters[SCALE])
            precision = int(schema.parameters.get("connect.decimal.precision", _PRECISION))
            written |= {"logicalType": "decimal", "precision": precision, "scale": scale}
        elif schema.name in _LOGICAL:
            written["logicalType"] = _LOGICAL[str(schema.name)]
        return written["type"] if len(written) == 1 else written

    def _map(self, schema: ConnectSchema, keys: ConnectSchema, values: ConnectSchema) -> Any:
        if keys.type is SchemaType.STRING and not keys.optional:
            return {"type": "map", "values": self.schema(values), **_properties(schema)}
        self._unnamed += 1
        name = MAP_ENTRY if self._unnamed == 1 else f"{MAP_ENTRY}{self._unnamed}"
        fields = [{"name": "key", "type": self.schema(keys)}, {"name": "value", "type": self.schema(values)}]
        entry = {"type": "record", "name": name, "namespace": NAMESPACE, "connect.internal.type": MAP_ENTRY}
        return {"type": "array", "items": {**entry, "fields": fields}, **_properties(schema)}

    def _struct(self, schema: ConnectSchema) -> Any:
        if schema.name == UNION:
            return [self._required(field.schema) for field in schema.fields]
        name = schema.name or f"{NAMESPACE}.ConnectDefault{self._number()}"
        before = self._named.get(name)
        plain = replace(schema, optional=False, default=None)
        if before is not None:
            if before != plain:
                raise DataError(f"Two structs of one schema are named {name}: rename one with SetSchemaMetadata.")
            return name
        self._named[name] = plain
        namespace, _, short = name.rpartition(".")
        return {
            "type": "record",
            "name": short,
            **({"namespace": namespace} if namespace else {}),
            "fields": [self._field(field) for field in schema.fields],
            **_properties(schema),
        }

    def _number(self) -> str:
        self._unnamed += 1
        return "" if self._unnamed == 1 else str(self._unnamed)

    def _field(self, field: SchemaField) -> dict[str, Any]:
        written: dict[str, Any] = {"name": field.name, "type": self.schema(field.schema)}
        if field.schema.doc is not None:
            written["doc"] = field.schema.doc
        if field.schema.default is not None:
            written["default"] = json_default(field.schema, field.schema.default)
        elif field.schema.optional:
            written["default"] = None
        return written


def _properties(schema: ConnectSchema) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    if schema.doc is not None:
        properties["connect.doc"] = schema.doc
    if schema.version is not None:
        properties["connect.version"] = schema.version
    if schema.parameters:
        properties["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        properties["connect.default"] = json_default(schema, schema.default)
    if schema.name is not None:
        properties["connect.name"] = schema.name
    return properties


def json_default(schema: ConnectSchema, value: Any) -> Any:
    """A default as Avro's JSON has it: bytes as a text of ISO-8859-1, logical types as their numbers."""
    if value is None:
        return None
    if schema.name == DECIMAL:
        return unscaled(value, int(schema.parameters[SCALE])).decode("latin-1")
    if schema.name in _LOGICAL:
        return number_of(value)
    if schema.type is SchemaType.BYTES:
        return bytes(value).decode("latin-1")
    if schema.type is SchemaType.STRUCT:
        return {field.name: json_default(field.schema, value.get(field.name)) for field in schema.fields}
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return [json_default(schema.value_schema, one) for one in value]
    if schema.type is SchemaType.MAP and schema.value_schema is not None:
        return {key: json_default(schema.value_schema, one) for key, one in value.items()}
    return value


# --- Avro to Connect ---------------------------------------------------------------------------------------


def connect_schema_of(avro: AvroType) -> ConnectSchema:
    """The Connect schema of an Avro schema. Raises `DataError` for one that Connect's data has no form for."""
    return _AvroSchemaReader().schema(avro)


class _AvroSchemaReader:
    def __init__(self) -> None:
        self._open: set[AvroType] = set()

    def schema(self, avro: AvroType) -> ConnectSchema:
        if avro.kind == "union":
            return self._union(avro.inner)
        return _described(self._plain(avro), avro.props)

    def _plain(self, avro: AvroType) -> ConnectSchema:
        """The schema without what properties say of it."""
        logical = str(avro.props.get("logicalType", ""))
        if avro.kind in ("bytes", "fixed") and logical == "decimal":
            return _decimal(avro.props)
        if avro.kind == "record":
            return self._record(avro)
        if avro.kind == "array":
            return self._array(avro.inner[0])
        if avro.kind == "map":
            return map_of(STRING, self.schema(avro.inner[0]))
        if avro.kind == "enum":
            symbols = {f"{_ENUM}.{symbol}": symbol for symbol in avro.symbols}
            return replace(STRING, name=avro.full_name, parameters={_ENUM: avro.full_name, **symbols})
        if avro.kind == "fixed":
            return replace(BYTES, name=avro.full_name, parameters={"connect.fixed.size": str(avro.size)})
        if avro.kind not in _OF_AVRO:
            raise DataError("The Avro schema has a null that is no branch of a union. Read it as bytes.")
        small = {"int8": INT8, "int16": INT16}.get(str(avro.props.get("connect.type")))
        if avro.kind == "int" and small is not None:
            return small
        return _OF_LOGICAL.get((avro.kind, logical)) or _OF_AVRO[avro.kind]

    def _union(self, branches: Sequence[AvroType]) -> ConnectSchema:
        others = [one for one in branches if one.kind != "null"]
        optional = len(others) < len(branches)
        if len(others) == 1:
            found = self.schema(others[0])
            return found.as_optional() if optional else found
        # A branch is a field, called by its type's name.
        fields = tuple(SchemaField(one.name or one.kind, self.schema(one).as_optional()) for one in others)
        return ConnectSchema(SchemaType.STRUCT, optional, UNION, fields=fields)

    def _array(self, items: AvroType) -> ConnectSchema:
        if items.props.get("connect.internal.type") == MAP_ENTRY:
            keys, values = (self.schema(field.type) for field in items.fields)
            return map_of(keys, values)
        return array_of(self.schema(items))

    def _record(self, avro: AvroType) -> ConnectSchema:
        name = avro.full_name
        if avro in self._open:
            raise DataError(f"The Avro record {name} has itself inside, which no schema here says. Read it as bytes.")
        self._open.add(avro)
        fields = tuple(SchemaField(field.name, self._field(field)) for field in avro.fields)
        self._open.discard(avro)
        unnamed = name.startswith(f"{NAMESPACE}.ConnectDefault")
        return ConnectSchema(SchemaType.STRUCT, name=None if unnamed else name, fields=fields)

    def _field(self, field: AvroField) -> ConnectSchema:
        schema = self.schema(field.type)
        if schema.doc is None and field.doc is not None:
            schema = replace(schema, doc=field.doc)
        if schema.default is None and field.default is not None and field.default is not ABSENT:
            schema = replace(schema, default=value_of_default(schema, field.default))
        return schema


def _decimal(props: Mapping[str, Any]) -> ConnectSchema:
    precision = int(props.get("precision", _PRECISION))
    parameters = {} if precision == _PRECISION else {"connect.decimal.precision": str(precision)}
    return decimal_schema(int(props.get("scale", 0)), parameters=parameters)


def _described(schema: ConnectSchema, props: Mapping[str, Any]) -> ConnectSchema:
    """The schema with what the properties say of it."""
    name = props.get("connect.name", schema.name)
    parameters = {**schema.parameters, **props.get("connect.parameters", {})}
    version, doc = props.get("connect.version", schema.version), props.get("connect.doc", schema.doc)
    schema = replace(schema, name=name, version=version, doc=doc, parameters=parameters)
    if props.get("connect.default") is None:
        return schema
    return replace(schema, default=value_of_default(schema, props["connect.default"]))


def value_of_default(schema: ConnectSchema, default: Any) -> Any:
    """The value of a default in Avro's JSON."""
    if schema.type is SchemaType.BYTES:
        default = base64.b64encode(str(default).encode("latin-1")).decode()
    if schema.type is SchemaType.STRUCT and isinstance(default, dict):
        return {one.name: value_of_default(one.schema, default.get(one.name)) for one in schema.fields}
    return None if default is None else from_json(schema, default)
