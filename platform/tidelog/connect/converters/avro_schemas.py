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
    found: dict[str, Any] = {}
    if schema.doc is not None:
        found["connect.doc"] = schema.doc
    if schema.version is not None:
        found["connect.version"] = schema.version
    if schema.parameters:
        found["connect.parameters"] = dict(schema.parameters)
    if schema.default is not None:
        found["connect.default"] = json_default(schema, schema.default)
    if schema.name is not None:
        found["connect.name"] = schema.name
    return found


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


def connect_schema_of(avro: Any, named: dict[str, Any] | None = None, namespace: str = "") -> ConnectSchema:
    """The Connect schema of an Avro schema in JSON's form. `named`: types that references have, by full names.

    Raises `DataError` for a record inside itself, for which Connect's data has no form here.
    """
    return _AvroSchemaReader({} if named is None else named).schema(avro, namespace)


class _AvroSchemaReader:
    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._open: set[str] = set()

    def schema(self, avro: Any, namespace: str) -> ConnectSchema:
        if isinstance(avro, str):
            return self._of_name(avro, namespace)
        if isinstance(avro, list):
            return self._union(avro, namespace)
        kind = avro["type"]
        if isinstance(kind, dict | list):
            return self.schema(kind, namespace)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named_type(avro, namespace)
        if kind == "array":
            return _described(self._array(avro, namespace), avro)
        if kind == "map":
            return _described(map_of(STRING, self.schema(avro["values"], namespace)), avro)
        if kind not in _OF_AVRO:
            return self._of_name(kind, namespace)
        logical = str(avro.get("logicalType", ""))
        found = _OF_LOGICAL.get((kind, logical)) or _OF_AVRO[kind]
        if kind == "bytes" and logical == "decimal":
            return _described(_decimal(avro), avro)
        small = {"int8": INT8, "int16": INT16}.get(str(avro.get("connect.type")))
        return _described(small if kind == "int" and small is not None else found, avro)

    def _of_name(self, name: str, namespace: str) -> ConnectSchema:
        if name in _OF_AVRO:
            return _OF_AVRO[name]
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        known = self._named.get(full) or self._named.get(name)
        if known is None:
            raise DataError(f"The Avro schema names {name}, which it does not define.")
        return self.schema(known, full.rpartition(".")[0])

    def _union(self, branches: Sequence[Any], namespace: str) -> ConnectSchema:
        others = [
            one for one in branches if one != "null" and not (isinstance(one, dict) and one.get("type") == "null")
        ]
        optional = len(others) < len(branches)
        if len(others) == 1:
            found = self.schema(others[0], namespace)
            return found.as_optional() if optional else found
        fields = []
        for one in others:
            found = self.schema(one, namespace)
            fields.append(SchemaField(branch_name(one), found.as_optional()))
        return ConnectSchema(SchemaType.STRUCT, optional, UNION, fields=tuple(fields))

    def _array(self, avro: Mapping[str, Any], namespace: str) -> ConnectSchema:
        items = avro["items"]
        if isinstance(items, dict) and items.get("connect.internal.type") == MAP_ENTRY:
            keys, values = (self.schema(field["type"], NAMESPACE) for field in items["fields"])
            return map_of(keys, values)
        return array_of(self.schema(items, namespace))

    def _named_type(self, avro: Mapping[str, Any], namespace: str) -> ConnectSchema:
        space = avro.get("namespace", namespace)
        name = str(avro["name"])
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = avro
        if avro["type"] == "enum":
            symbols = {f"{_ENUM}.{symbol}": symbol for symbol in avro["symbols"]}
            return _described(replace(STRING, name=full, parameters={_ENUM: full, **symbols}), avro)
        if avro["type"] == "fixed":
            if avro.get("logicalType") == "decimal":
                return _described(_decimal(avro), avro)
            parameters = {"connect.fixed.size": str(avro["size"])}
            return _described(replace(BYTES, name=full, parameters=parameters), avro)
        if full in self._open:
            raise DataError(f"The Avro record {full} has itself inside, which no schema here says. Read it as bytes.")
        self._open.add(full)
        fields = tuple(self._field(field, full.rpartition(".")[0]) for field in avro["fields"])
        self._open.discard(full)
        unnamed = full.startswith(f"{NAMESPACE}.ConnectDefault")
        return _described(ConnectSchema(SchemaType.STRUCT, name=None if unnamed else full, fields=fields), avro)

    def _field(self, field: Mapping[str, Any], namespace: str) -> SchemaField:
        schema = self.schema(field["type"], namespace)
        if schema.doc is None and field.get("doc") is not None:
            schema = replace(schema, doc=field["doc"])
        if schema.default is None and field.get("default") is not None:
            schema = replace(schema, default=value_of_default(schema, field["default"]))
        return SchemaField(str(field["name"]), schema)


def branch_name(avro: Any) -> str:
    """The name of a union's branch, as the field of the struct that stands for the union."""
    if isinstance(avro, str):
        return avro.rpartition(".")[2]
    return str(avro["name"] if "name" in avro else avro["type"]).rpartition(".")[2]


def _decimal(avro: Mapping[str, Any]) -> ConnectSchema:
    precision = int(avro.get("precision", _PRECISION))
    parameters = {} if precision == _PRECISION else {"connect.decimal.precision": str(precision)}
    return decimal_schema(int(avro.get("scale", 0)), parameters=parameters)


def _described(schema: ConnectSchema, avro: Mapping[str, Any]) -> ConnectSchema:
    """The schema with what the properties say of it."""
    name = avro.get("connect.name", schema.name)
    parameters = {**schema.parameters, **avro.get("connect.parameters", {})}
    version, doc = avro.get("connect.version", schema.version), avro.get("connect.doc", schema.doc)
    schema = replace(schema, name=name, version=version, doc=doc, parameters=parameters)
    if avro.get("connect.default") is None:
        return schema
    return replace(schema, default=value_of_default(schema, avro["connect.default"]))


def value_of_default(schema: ConnectSchema, found: Any) -> Any:
    """The value of a default in Avro's JSON."""
    if schema.type is SchemaType.BYTES:
        found = base64.b64encode(str(found).encode("latin-1")).decode()
    if schema.type is SchemaType.STRUCT and isinstance(found, dict):
        return {one.name: value_of_default(one.schema, found.get(one.name)) for one in schema.fields}
    return None if found is None else from_json(schema, found)
