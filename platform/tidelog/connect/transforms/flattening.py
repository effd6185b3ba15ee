"""Flatten: nested structs and maps as one level of fields with joined names."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import ConnectSchema, SchemaField, SchemaType
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct


class Flatten:
    """Make one level of nested structs (with schema) or maps (without). Lists stay as they are."""

    def __init__(self, side: RecordSide, delimiter: str = ".") -> None:
        self._side, self._delimiter = side, delimiter
        self._schema = cached(self._flat_schema)

    def apply(self, record: R, /) -> R | None:
        """Flatten; records whose side is null pass. Raises `DataError` for a map in a struct."""
        schema, value = self._side.of(record)
        if value is None:
            return record
        flat: dict[str, Any] = {}
        if schema is None:
            self._flatten_map(require_map(value, "flattening"), "", flat)
            return self._side.put(record, None, flat)
        updated = self._schema(schema)
        self._flatten_struct(schema, require_struct(schema, value, "flattening"), "", flat)
        return self._side.put(record, updated, {one.name: flat.get(one.name) for one in updated.fields})

    def _flatten_map(self, fields: Mapping[str, Any], prefix: str, flat: dict[str, Any]) -> None:
        for name, value in fields.items():
            if isinstance(value, Mapping):
                self._flatten_map(value, self._name(prefix, name), flat)
            elif value is None or isinstance(value, bool | int | float | str | bytes | bytearray | memoryview | list):
                flat[self._name(prefix, name)] = value
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type {type(value).__name__} in the field "
                    f"{self._name(prefix, name)} which is not supported by Connect's data API. Convert it before."
                )

    def _flatten_struct(
        self, schema: ConnectSchema, struct: Mapping[str, Any], prefix: str, flat: dict[str, Any]
    ) -> None:
        for field in schema.fields:
            found = field_of(struct, field, with_default=True)
            if field.schema.type is not SchemaType.STRUCT:
                flat[self._name(prefix, field.name)] = found
            elif found is not None:
                self._flatten_struct(field.schema, found, self._name(prefix, field.name), flat)

    def _flat_schema(self, schema: ConnectSchema) -> ConnectSchema:
        fields: list[SchemaField] = []
        self._collect(schema, "", fields, optional=schema.optional, default=schema.default)
        return basics_of(schema, tuple(fields))

    def _collect(
        self,
        schema: ConnectSchema,
        prefix: str,
        fields: list[SchemaField],
        *,
        optional: bool,
        default: Mapping[str, Any] | None,
    ) -> None:
        """Add a struct's fields. `default`: of the struct, where it has one or its parents give one."""
        for field in schema.fields:
            name = self._name(prefix, field.name)
            optional_too = optional or field.schema.optional
            default_too = field.schema.default
            if default_too is None and default is not None:
                default_too = field_of(default, field, with_default=True)
            if field.schema.type is SchemaType.STRUCT:
                self._collect(field.schema, name, fields, optional=optional_too, default=default_too)
            elif field.schema.type is SchemaType.MAP:
                raise DataError(
                    f"Flatten transformation does not support map for record with schemas (for field {name}). "
                    "Leave the field out with ReplaceField before."
                )
            else:
                fields.append(SchemaField(name, replace(field.schema, optional=optional_too, default=default_too)))

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name
