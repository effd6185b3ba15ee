"""Connect's schemas as Protobuf's messages and back, by the rules of Confluent's ProtobufData.

A struct is a message, and its fields have the numbers of the parameter `io.confluent.connect.protobuf.Tag`, else those
of their places. What Protobuf lacks is in the option `confluent.field_meta`: the small numbers and a decimal's scale.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from google.protobuf import message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

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

_OWN: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{_OWN}.Tag"
ENUM: Final = f"{_OWN}.Enum"
UNION: Final = f"{_OWN}.Union."
_UNNAMED: Final = "ConnectDefault"
_PRECISION: Final = "connect.decimal.precision"
# (the message's type, the file that has it) of each logical type.
_LOGICAL: Final[Mapping[str, tuple[str, str]]] = {
    DECIMAL: (".confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: (".google.type.Date", "google/type/date.proto"),
    TIME: (".google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: (".google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_TYPES: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "int32", SchemaType.INT16: "int32", SchemaType.INT32: "int32", SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float", SchemaType.FLOAT64: "double", SchemaType.BOOLEAN: "bool",
    SchemaType.STRING: "string", SchemaType.BYTES: "bytes",
}  # fmt: skip
_META: Final = "confluent/meta.proto"


# --- Connect to Protobuf -------------------------------------------------------------------------------------


class ProtoWriter:
    """Writes the .proto file of one struct. `optional`: optional fields of it are Protobuf's optional ones.

    `name`: the message's full name, once `text` was called.
    """

    def __init__(self, *, optional: bool = False) -> None:
        self._optional = optional
        self._imports: set[str] = set()
        self._unnamed = 0
        self.name = ""

    def text(self, schema: ConnectSchema) -> str:
        """The file. Raises `DataError` for what no message has: a schema that is no struct, arrays in arrays."""
        if schema.type is not SchemaType.STRUCT:
            raise DataError(f"Unsupported root schema of type {schema.type.name}: wrap values with HoistField.")
        self.name = schema.name or self._name(schema)
        package, _, short = self.name.rpartition(".")
        message = self._message(short, schema)
        head = ['syntax = "proto3";', *([f"package {package};"] if package else [])]
        return "\n".join([*head, *(f'import "{one}";' for one in sorted(self._imports)), message, ""])

    def _message(self, name: str, schema: ConnectSchema) -> str:
        inner: dict[str, tuple[ConnectSchema, str]] = {}  # messages and enums inside, by their names
        lines, number = [], 0
        for field in schema.fields:
            if is_union(field.schema):
                branches = []
                for one in field.schema.fields:
                    number += TAG not in one.schema.parameters
                    branches.append(self._field(one, number, inner, ""))
                label = str(field.schema.name).removeprefix(UNION).rpartition(".")[2]
                lines.append(f"oneof {label} {{ {' '.join(branches)} }}")
                continue
            number += TAG not in field.schema.parameters
            lines.append(self._field(field, number, inner, "optional " if self._optional else ""))
        return "\n".join([f"message {name} {{", *lines, *(text for _, text in inner.values()), "}"])

    def _field(
        self, field: SchemaField, number: int, inner: dict[str, tuple[ConnectSchema, str]], optional: str
    ) -> str:
        schema, label = field.schema, ""
        tag = schema.parameters.get(TAG, str(number))
        params: dict[str, str] = {}
        if schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
            pair = (schema.key_schema, schema.value_schema)
            keys, values = (self._type(one, field.name, inner, params) for one in pair)
            if params:  # one option would be of both
                raise DataError(f"The map {field.name} has small numbers or decimals: wrap its values in structs.")
            return f"map<{keys}, {values}> {field.name} = {tag};"
        if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
            label, kind = "repeated ", self._type(schema.value_schema, field.name, inner, params)
        else:
            label = optional if schema.optional and schema.type is not SchemaType.STRUCT else ""
            kind = self._type(schema, field.name, inner, params)
        if params:
            self._imports.add(_META)
        return f"{label}{kind} {field.name} = {tag}{_meta(params)};"

    def _type(
        self, schema: ConnectSchema, field: str, inner: dict[str, tuple[ConnectSchema, str]], params: dict[str, str]
    ) -> str:
        """The type of a field's values. `params`: takes what the type does not say."""
        if schema.name in _LOGICAL:
            kind, file = _LOGICAL[str(schema.name)]
            self._imports.add(file)
            if schema.name == DECIMAL:
                params["scale"] = schema.parameters[SCALE]
                if _PRECISION in schema.parameters:
                    params["precision"] = schema.parameters[_PRECISION]
            return kind
        if schema.type in (SchemaType.ARRAY, SchemaType.MAP):
            raise DataError(f"The field {field} has an {schema.type.value} inside a list or map: wrap it in a struct.")
        if schema.type is SchemaType.STRUCT:
            short = self._name(schema)
            short = f"{short}Message" if short == field else short
            self._define(inner, short, schema)
            return short
        if ENUM in schema.parameters:
            short = schema.parameters[ENUM]
            self._define(inner, short, schema)
            return short
        if schema.type in (SchemaType.INT8, SchemaType.INT16):
            params["connect.type"] = schema.type.value
        return _TYPES[schema.type]

    def _define(self, inner: dict[str, tuple[ConnectSchema, str]], name: str, schema: ConnectSchema) -> None:
        plain = replace(schema, optional=False, default=None, doc=None, parameters=_without_tag(schema))
        before = inner.get(name)
        if before is None:
            text = self._message(name, schema) if schema.type is SchemaType.STRUCT else _enum(name, schema)
            inner[name] = plain, text
        elif before[0] != plain:
            raise DataError(f"Two structs of one message are named {name}: rename one with SetSchemaMetadata.")

    def _name(self, schema: ConnectSchema) -> str:
        if schema.name:
            return schema.name.rpartition(".")[2]
        self._unnamed += 1
        return f"{_UNNAMED}{self._unnamed}"


def is_union(schema: ConnectSchema) -> bool:
    """Whether a struct stands for a oneof."""
    return schema.type is SchemaType.STRUCT and (schema.name or "").startswith(UNION)


def _enum(name: str, schema: ConnectSchema) -> str:
    prefix = f"{ENUM}."
    symbols = {key.removeprefix(prefix): int(one) for key, one in schema.parameters.items() if key.startswith(prefix)}
    ordered = sorted(symbols.items(), key=lambda one: (one[1] != 0, one[1]))  # proto3 wants 0 first
    return " ".join([f"enum {name} {{", *(f"{symbol} = {number};" for symbol, number in ordered), "}"])


def _meta(params: Mapping[str, str]) -> str:
    if not params:
        return ""
    pairs = ", ".join(f'{{key: "{key}", value: "{one}"}}' for key, one in sorted(params.items()))
    return f" [(confluent.field_meta) = {{params: [{pairs}]}}]"


def _without_tag(schema: ConnectSchema) -> dict[str, str]:
    return {key: one for key, one in schema.parameters.items() if key != TAG}


# --- Protobuf to Connect -------------------------------------------------------------------------------------


class MessageReader:
    """Reads a message's descriptor. `pool`: descriptors, with those of confluent/meta.proto.

    `full_names`: structs have the full names of messages. `optional`: only what Protobuf has as optional is optional.
    """

    def __init__(self, pool: DescriptorPool, *, full_names: bool = False, optional: bool = False) -> None:
        self._full_names, self._optional = full_names, optional
        # Of this pool: whether the usual one knows the option depends on what else the process has imported.
        self._options = message_factory.GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
        self._meta = pool.FindExtensionByName("confluent.field_meta")
        self._open: list[str] = []

    def schema(self, descriptor: Any) -> ConnectSchema:
        """The struct of a message. Raises `DataError` for one that has itself inside."""
        if descriptor.full_name in self._open:
            raise DataError(f"The message {descriptor.full_name} has itself inside: read it without a schema.")
        self._open.append(descriptor.full_name)
        fields = [SchemaField(union_field(one), self._union(one)) for one in unions_of(descriptor)]
        grouped = {one.name for union in unions_of(descriptor) for one in union.fields}
        fields += [SchemaField(one.name, self._field(one)) for one in descriptor.fields if one.name not in grouped]
        self._open.pop()
        name = descriptor.full_name if self._full_names else descriptor.name
        return ConnectSchema(SchemaType.STRUCT, name=name, fields=tuple(fields))

    def _union(self, oneof: Any) -> ConnectSchema:
        fields = tuple(SchemaField(one.name, self._field(one)) for one in oneof.fields)
        return ConnectSchema(SchemaType.STRUCT, optional=True, name=f"{UNION}{oneof.name}", fields=fields)

    def _field(self, field: Any) -> ConnectSchema:
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key, value = (self._field(entry.fields_by_name[name]) for name in ("key", "value"))
            schema = map_of(key, value, name=field.name)
        else:
            schema = self._value(field)
            if field.label == field.LABEL_REPEATED:
                schema = array_of(schema.as_optional(), optional=True)
        optional = schema.optional or field.has_presence or not self._optional
        return replace(schema, optional=optional, parameters={**schema.parameters, TAG: str(field.number)})

    def _value(self, field: Any) -> ConnectSchema:
        if field.message_type is not None:
            params = self._params(field)
            logical = {
                "google.type.Date": date_schema, "google.type.TimeOfDay": time_schema,
                "google.protobuf.Timestamp": timestamp_schema,
            }  # fmt: skip
            full = field.message_type.full_name
            if full == "confluent.type.Decimal":
                precision = {_PRECISION: params["precision"]} if "precision" in params else {}
                return decimal_schema(int(params.get("scale", "0")), optional=True, parameters=precision)
            return logical[full](optional=True) if full in logical else self.schema(field.message_type).as_optional()
        if field.enum_type is not None:
            symbols = {f"{ENUM}.{one.name}": str(one.number) for one in field.enum_type.values}
            name = field.enum_type.name
            return replace(STRING, optional=True, name=name, parameters={ENUM: name, **symbols})
        small = self._params(field).get("connect.type") if field.type in _SMALL else None
        return {"int8": INT8, "int16": INT16}.get(small or "", _OF_NUMBERS[field.type])

    def _params(self, field: Any) -> dict[str, str]:
        """What the option `confluent.field_meta` says."""
        options: Any = self._options.FromString(field.GetOptions().SerializeToString())
        return dict(options.Extensions[self._meta].params)


def unions_of(descriptor: Any) -> list[Any]:
    """The oneofs of a message but those that stand for an optional field."""
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    hidden = {one.oneof_index for one in proto.field if one.proto3_optional}
    return [one for index, one in enumerate(descriptor.oneofs) if index not in hidden]


def union_field(oneof: Any) -> str:
    """The field of a struct that stands for a oneof."""
    return f"{oneof.name}_{oneof.index}"


# By the numbers of Protobuf's types (FieldDescriptorProto.Type): int32, sint32 and sfixed32 are 32 bits, those of
# uint32 and fixed32 need more.
_SMALL: Final = frozenset({5, 15, 17})
_OF_NUMBERS: Final[Mapping[int, ConnectSchema]] = {
    1: FLOAT64, 2: FLOAT32, 3: INT64, 4: INT64, 5: INT32, 6: INT64, 7: INT64, 8: BOOLEAN, 9: STRING, 12: BYTES,
    13: INT64, 15: INT32, 16: INT64, 17: INT32, 18: INT64,
}  # fmt: skip
