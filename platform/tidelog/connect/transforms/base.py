"""What transformations share: the sides of a record, structs and maps taken apart, and paths of fields (KIP-821).

Version 1 of a path takes the whole text as the name of one field. Version 2 separates the steps by dots; backticks wrap
a step whose name has dots.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectRecord
from tidelog.connect.data.schema import ConnectSchema, SchemaField, SchemaType

R = TypeVar("R", bound=ConnectRecord)
V1: Final = "V1"
V2: Final = "V2"


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


def path_steps(path: str, version: str = V1) -> tuple[str, ...]:
    r"""Return the names of the fields from the outermost in.

    A backtick inside a wrapped step is escaped by a backslash where a dot follows it. Raises `ValueError` for a wrapped
    step that never ends.
    """
    return (path,) if version.upper() == V1 else tuple(_steps(path))


def _steps(path: str) -> Sequence[str]:
    steps: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _wrapped(path, at)
        else:
            end = path.find(".", at)
            step, at = (path[at:], len(path)) if end < 0 else (path[at:end], end + 1)
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return steps


def _wrapped(path: str, backtick: int) -> tuple[str, int]:
    """The step that begins with the backtick at that position, and the position behind its dot."""
    step, start = "", backtick + 1
    end = path.find("`", start)
    while end >= 0:
        escaped = path[end - 1] == "\\"
        last = end == len(path) - 1
        if last and not escaped:
            return step + path[start:end], len(path)
        if not last and path[end + 1] == ".":
            if not escaped:
                return step + path[start:end], end + 2
            step += path[start : end - 1] + "`"
            start = end + 1
        end = path.find("`", end + 1)
    raise ValueError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position "
        f"{backtick} to escape it"
    )
