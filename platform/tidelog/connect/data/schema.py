"""Schemas of keys, values and headers, as Connect has them.

Values are plain Python: int, float, bool, str, bytes, list, dict (of a map, and of a struct by its fields' names), None
where the schema is optional; and Decimal, date, time and datetime (UTC) where the schema has the logical type's name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.data.errors import DataError

# Names of the logical types (`org.apache.kafka.connect.data.Decimal` and so on), and the decimal's one parameter.
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"


class SchemaType(StrEnum):
    """The types of schemas: each name is Connect's own, each value what Connect's JSON has for it."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
# The values of each type that has one class of them.
_CLASSES: Final[Mapping[SchemaType, tuple[type, ...]]] = {
    SchemaType.FLOAT32: (float, int),
    SchemaType.FLOAT64: (float, int),
    SchemaType.BOOLEAN: (bool,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes, bytearray, memoryview),
    SchemaType.ARRAY: (list, tuple),
    SchemaType.MAP: (dict,),
    SchemaType.STRUCT: (dict,),
}
# The values of logical types, and the type that a schema of each must have.
_LOGICAL: Final[Mapping[str, tuple[SchemaType, type]]] = {
    DECIMAL: (SchemaType.BYTES, Decimal),
    DATE: (SchemaType.INT32, date),
    TIME: (SchemaType.INT32, time),
    TIMESTAMP: (SchemaType.INT64, datetime),
}
# To scale decimals by: Python's own context rounds to 28 digits, PostgreSQL's longest numbers have 147,455.
ALL_DIGITS: Final = Context(prec=1_000_000)
LOGICAL_NAMES: Final = frozenset(_LOGICAL)


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One field of a struct; its index is its place in the schema's `fields`."""

    name: str
    schema: "ConnectSchema"


@dataclass(frozen=True, slots=True)
class ConnectSchema:
    """What a key, a value or a header is (Connect's `Schema`). It can be a key of a mapping.

    `name`: of a struct, or of a logical type. `default`: None where there is none. `fields`: of a struct; `key_schema`:
    of a map; `value_schema`: of a map or an array. `parameters`: further ones of the schema, texts.
    """

    type: SchemaType
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    default: Any = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[SchemaField, ...] = ()
    key_schema: "ConnectSchema | None" = None
    value_schema: "ConnectSchema | None" = None

    def __hash__(self) -> int:
        return hash((self.type, self.optional, self.name, self.version, tuple(one.name for one in self.fields)))

    def field_named(self, name: str) -> "SchemaField | None":
        """The struct's field of that name."""
        return next((one for one in self.fields if one.name == name), None)

    def as_optional(self) -> "ConnectSchema":
        """The same schema, optional."""
        return replace(self, optional=True)

    def with_fields(self, fields: Iterable[SchemaField]) -> "ConnectSchema":
        """The same struct with other fields."""
        return replace(self, fields=tuple(fields))


# --- the schemas that most fields have -----------------------------------------------------------------------

INT8: Final = ConnectSchema(SchemaType.INT8)
INT16: Final = ConnectSchema(SchemaType.INT16)
INT32: Final = ConnectSchema(SchemaType.INT32)
INT64: Final = ConnectSchema(SchemaType.INT64)
FLOAT32: Final = ConnectSchema(SchemaType.FLOAT32)
FLOAT64: Final = ConnectSchema(SchemaType.FLOAT64)
BOOLEAN: Final = ConnectSchema(SchemaType.BOOLEAN)
STRING: Final = ConnectSchema(SchemaType.STRING)
BYTES: Final = ConnectSchema(SchemaType.BYTES)


def array_of(value: ConnectSchema, **others: Any) -> ConnectSchema:
    """An array. `others`: as of `ConnectSchema`, optional and name among them; also below."""
    return ConnectSchema(SchemaType.ARRAY, value_schema=value, **others)


def map_of(key: ConnectSchema, value: ConnectSchema, **others: Any) -> ConnectSchema:
    """A map."""
    return ConnectSchema(SchemaType.MAP, key_schema=key, value_schema=value, **others)


def struct_of(fields: Mapping[str, ConnectSchema], **others: Any) -> ConnectSchema:
    """A struct with these fields, in order."""
    named = tuple(SchemaField(name, schema) for name, schema in fields.items())
    return ConnectSchema(SchemaType.STRUCT, fields=named, **others)


def decimal_schema(scale: int, **others: Any) -> ConnectSchema:
    """Decimals of a fixed scale (`Decimal`): unscaled two's complement, big endian, where they are bytes."""
    parameters = {SCALE: str(scale), **others.pop("parameters", {})}
    return ConnectSchema(SchemaType.BYTES, name=DECIMAL, version=1, parameters=parameters, **others)


def date_schema(**others: Any) -> ConnectSchema:
    """Dates (`Date`): days since 1970-01-01 where they are numbers."""
    return ConnectSchema(SchemaType.INT32, name=DATE, version=1, **others)


def time_schema(**others: Any) -> ConnectSchema:
    """Times of a day (`Time`): milliseconds after midnight where they are numbers."""
    return ConnectSchema(SchemaType.INT32, name=TIME, version=1, **others)


def timestamp_schema(**others: Any) -> ConnectSchema:
    """Instants (`Timestamp`): milliseconds since 1970-01-01 UTC where they are numbers."""
    return ConnectSchema(SchemaType.INT64, name=TIMESTAMP, version=1, **others)


def check_value(schema: ConnectSchema, value: Any, name: str = "") -> None:
    """Raise `DataError` unless a value is one of a schema (Connect's `ConnectSchema.validateValue`).

    `name`: of the field, for the message. A struct's dict may lack fields that are optional or have a default, and has
    no others.
    """
    where = f' for field: "{name}"' if name else ""
    if value is None:
        if not schema.optional:
            raise DataError(f'Invalid value: null used for required field: "{name}", schema type: {schema.type.name}')
        return
    if schema.name in _LOGICAL:
        _check_logical(schema, value, where)
        return
    if schema.type in _BITS:
        half = 1 << (_BITS[schema.type] - 1)
        if isinstance(value, bool) or not isinstance(value, int) or not -half <= value < half:
            raise _mismatch(schema, value, where)
        return
    classes: Any = _CLASSES[schema.type]
    wrong_bool = isinstance(value, bool) and schema.type is not SchemaType.BOOLEAN
    if wrong_bool or not isinstance(value, classes):
        raise _mismatch(schema, value, where)
    if schema.type is SchemaType.STRUCT:
        _check_struct(schema, value, name)
    elif schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        for element in value:
            check_value(schema.value_schema, element, name)
    elif schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
        for key, map_value in value.items():
            check_value(schema.key_schema, key, name)
            check_value(schema.value_schema, map_value, name)


def _check_logical(schema: ConnectSchema, value: Any, where: str) -> None:
    """A logical type's value; a datetime is no date, though Python's class is one."""
    _, wanted = _LOGICAL[schema.name or ""]
    if not isinstance(value, wanted) or (wanted is date and isinstance(value, datetime)):
        raise _mismatch(schema, value, where)


def _check_struct(schema: ConnectSchema, value: Mapping[str, Any], name: str) -> None:
    """A struct's fields, each under its path."""
    fields = {one.name: one.schema for one in schema.fields}
    for unknown in value.keys() - fields.keys():
        raise DataError(f'"{unknown}" is not a valid field name of the struct {schema.name or name or "without name"}.')
    for field_name, field_schema in fields.items():
        path = f"{name}.{field_name}" if name else field_name
        found = value.get(field_name)
        if found is not None or field_schema.default is None:
            check_value(field_schema, found, path)


def _mismatch(schema: ConnectSchema, value: Any, where: str) -> DataError:
    kind = f"{schema.type.name} ({schema.name})" if schema.name else schema.type.name
    return DataError(f"Invalid Python object for schema type {kind}: {type(value).__name__}{where}")
