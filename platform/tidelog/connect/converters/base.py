"""What a converter is, and the schemas of values that come without one."""

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.packed import Parts, StructLayout
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    array_of,
    map_of,
)

# A schema, None where the data has none, and a value.
SchemaAndValue = tuple[ConnectSchema | None, Any]
NOTHING: Final[SchemaAndValue] = (None, None)


class Converter(Protocol):
    """Converts keys, or values, or headers. Any thread may call it; `close` is the last call."""

    def from_connect(self, topic: str, schema: ConnectSchema | None, value: Any) -> bytes | None:
        """The bytes of a record of `topic`, None for a null. Raises `DataError`."""

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """What the bytes of a record of `topic` say. Raises `DataError`."""

    def close(self) -> None:
        """End: release what it holds open."""


@runtime_checkable
class PackedConverter(Protocol):
    """A converter that writes structs without their being put together: the bytes are those of `from_connect`."""

    def from_packed(self, topic: str, layout: StructLayout, parts: Parts) -> bytes:
        """The bytes of the struct of these parts. Raises `DataError`."""


def whole_number_schema(value: int) -> ConnectSchema:
    """The smallest of Connect's whole numbers that holds a value, INT64 for any larger one."""
    for schema, bits in ((INT8, 8), (INT16, 16), (INT32, 32)):
        if -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            return schema
    return INT64


def schema_of(value: Any) -> ConnectSchema | None:
    """The schema of a value that came without one (Connect's `Values.inferSchema`); None where there is none."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INT64
    for kind, schema in ((float, FLOAT64), (str, STRING), (bytes, BYTES)):
        if isinstance(value, kind):
            return schema
    if isinstance(value, list) and (inner := _common(value)) is not None:
        return array_of(inner)
    if isinstance(value, Mapping):
        inner = _common(list(value.values()))
        if inner is not None and all(isinstance(key, str) for key in value):
            return map_of(STRING, inner)
    return None


def _common(values: list[Any]) -> ConnectSchema | None:
    found = {schema_of(one) for one in values}
    return found.pop() if len(found) == 1 else None


def required_schema(value: Any) -> ConnectSchema:
    """As `schema_of`. Raises `DataError` where there is none."""
    schema = schema_of(value)
    if schema is None:
        raise DataError("The value has no schema, and none can be seen from it. Use a source with schemas.")
    return schema
