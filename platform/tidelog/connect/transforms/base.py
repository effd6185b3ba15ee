"""What transformations share: which side of a record they change, and how they take structs and maps apart."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectRecord
from tidelog.connect.data.schema import ConnectSchema, SchemaField, SchemaType

R = TypeVar("R", bound=ConnectRecord)


class Transformation(Protocol):
    """A function from records to records; a record that becomes None is left out."""

    def apply(self, record: R, /) -> R | None:
        """Transform a record. Raises `DataError` for a record that the transformation can't take."""


class RecordSide(Enum):
    """The side that a transformation changes: what Connect's `$Key` and `$Value` say."""

    KEY = "Key"
    VALUE = "Value"

    def of(self, record: ConnectRecord) -> tuple[ConnectSchema | None, Any]:
        """The schema of the side and its value."""
        if self is RecordSide.KEY:
            return record.key_schema, record.key
        return record.value_schema, record.value

    def put(self, record: R, schema: ConnectSchema | None, value: Any) -> R:
        """The same record with another schema and value on this side."""
        if self is RecordSide.KEY:
            return record.but(key_schema=schema, key=value)
        return record.but(value_schema=schema, value=value)


def require_map(value: Any, purpose: str) -> Mapping[str, Any]:
    """The value as a map. Raises `DataError` for every other value."""
    if isinstance(value, Mapping):
        return value
    raise DataError(
        f"Only Map objects supported in absence of schema for [{purpose}], found: {type(value).__name__}. "
        "Use a converter with schemas, or leave the transformation out for such records."
    )


def require_struct(schema: ConnectSchema, value: Any, purpose: str) -> Mapping[str, Any]:
    """The value as a struct's fields. Raises `DataError` unless the schema is a struct's and the value has fields."""
    if schema.type is SchemaType.STRUCT and isinstance(value, Mapping):
        return value
    found = type(value).__name__ if schema.type is SchemaType.STRUCT else schema.type.value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {found}. Leave such records out.")


def field_of(value: Mapping[str, Any], field: SchemaField, *, with_default: bool) -> Any:
    """A field's value; the default of its schema in place of None when asked for (`replace.null.with.default`)."""
    found = value.get(field.name)
    return field.schema.default if found is None and with_default else found


def basics_of(schema: ConnectSchema, fields: tuple[SchemaField, ...]) -> ConnectSchema:
    """A required struct without default, with the name, version, doc and parameters of another one."""
    return ConnectSchema(
        SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=fields,
    )


def cached(update: Callable[[ConnectSchema], ConnectSchema]) -> Callable[[ConnectSchema], ConnectSchema]:
    """The same function with its last 16 answers kept, as Kafka's transformations keep them."""
    return lru_cache(maxsize=16)(update)
