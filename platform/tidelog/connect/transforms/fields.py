"""Transformations that add, leave out, rename, take out and flatten fields."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.data.schema import (
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    SchemaField,
    SchemaType,
    struct_of,
    timestamp_schema,
)
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct
from tidelog.connect.transforms.date_patterns import moment_of

_FIELD_SCHEMAS = {
    "topic": STRING, "partition": INT32, "offset": INT64, "timestamp": timestamp_schema(), "static": STRING,
}  # fmt: skip


class InsertField:
    """Insert a record's topic, partition, offset, timestamp or a fixed text as fields.

    `fields`: names of fields by what is inserted ("topic", "partition", "offset", "timestamp", "static"). A name that
    ends with `!` is of a required field, one with `?` or neither of an optional field. Records whose side is null pass.
    """

    def __init__(
        self, side: RecordSide, fields: Mapping[str, str], static_value: str | None, *, replace_null: bool = True
    ) -> None:
        self._side, self._static_value, self._replace_null = side, static_value, replace_null
        self._names = {kind: name.removesuffix("!") if name.endswith("!") else name.removesuffix("?")
                       for kind, name in fields.items()}  # fmt: skip
        self._inserted = tuple(
            SchemaField(self._names[kind], schema if fields[kind].endswith("!") else schema.as_optional())
            for kind, schema in _FIELD_SCHEMAS.items()
            if kind in fields
        )
        self._schema = cached(lambda schema: basics_of(schema, schema.fields + self._inserted))

    def apply(self, record: R, /) -> R | None:
        """Insert the fields. Raises `DataError` for an offset in a source's record, which has none."""
        schema, value = self._side.of(record)
        if value is None:
            return record
        if schema is None:
            fields = dict(require_map(value, "field insertion"))
        else:
            struct = require_struct(schema, value, "field insertion")
            fields = {one.name: field_of(struct, one, with_default=self._replace_null) for one in schema.fields}
        timestamp: Any = record.timestamp_ms
        if schema is not None and timestamp is not None:
            timestamp = moment_of(timestamp)
        values: dict[str, Any] = {
            "topic": record.topic, "partition": record.partition, "timestamp": timestamp, "static": self._static_value,
        }  # fmt: skip
        if "offset" in self._names:
            if not isinstance(record, SinkRecord):
                raise DataError("Only SinkRecord supported for [field insertion] of offset.field: a source has none.")
            values["offset"] = record.offset
        fields |= {self._names[kind]: one for kind, one in values.items() if kind in self._names and one is not None}
        return self._side.put(record, None if schema is None else self._schema(schema), fields)


class ReplaceField:
    """Leave out fields and rename them.

    `exclude`: fields to leave out; `include`: the only ones to keep, all when empty; `renames`: new names by old ones.
    """

    def __init__(
        self,
        side: RecordSide,
        exclude: Sequence[str] = (),
        include: Sequence[str] = (),
        renames: Mapping[str, str] | None = None,
        *,
        replace_null: bool = True,
    ) -> None:
        self._side, self._replace_null = side, replace_null
        self._exclude, self._include, self._renames = frozenset(exclude), frozenset(include), dict(renames or {})
        self._schema = cached(
            lambda schema: basics_of(
                schema,
                tuple(
                    SchemaField(self._renamed(one.name), one.schema) for one in schema.fields if self._kept(one.name)
                ),
            )
        )

    def _kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _renamed(self, name: str) -> str:
        return self._renames.get(name, name)

    def apply(self, record: R, /) -> R | None:
        """Keep and rename fields; records whose side is null pass."""
        schema, value = self._side.of(record)
        if value is None:
            return record
        if schema is None:
            fields = require_map(value, "field replacement")
            kept = {self._renamed(name): one for name, one in fields.items() if self._kept(name)}
            return self._side.put(record, None, kept)
        struct = require_struct(schema, value, "field replacement")
        kept = {
            self._renamed(one.name): field_of(struct, one, with_default=self._replace_null)
            for one in schema.fields
            if self._kept(one.name)
        }
        return self._side.put(record, self._schema(schema), kept)


class ExtractField:
    """Replace a side by one of its fields. `steps`: the field's path."""

    def __init__(self, side: RecordSide, path: str, steps: Sequence[str], *, replace_null: bool = True) -> None:
        self._side, self._path, self._steps, self._replace_null = side, path, steps, replace_null

    def apply(self, record: R, /) -> R | None:
        """Take the field out. Raises `DataError` for a field that a schema does not have; without schema it is null."""
        schema, value = self._side.of(record)
        if schema is None:
            return self._side.put(record, None, value_at(value, self._steps))
        field = field_at(schema, self._steps)
        if field is None:
            raise DataError(f"Unknown field: {self._path}. Correct `field`, or field.syntax.version for nested fields.")
        if value is None:
            return self._side.put(record, field.schema, None)
        require_struct(schema, value, "field extraction")
        within = value_at(value, self._steps[:-1], schema)
        found = None if within is None else field_of(within, field, with_default=self._replace_null)
        return self._side.put(record, field.schema, found)


def field_at(schema: ConnectSchema | None, steps: Sequence[str]) -> SchemaField | None:
    """The field at the end of a path of names; None where a step is not there."""
    field = None
    for step in steps:
        field = None if schema is None or schema.type is not SchemaType.STRUCT else schema.field_named(step)
        if field is None:
            return None
        schema = field.schema
    return field


def value_at(value: Any, steps: Sequence[str], schema: ConnectSchema | None = None) -> Any:
    """The value at the end of a path; None where a step is not there. With a schema, nulls on the way are defaults."""
    for index, step in enumerate(steps):
        if value is None:
            return None
        fields = require_map(value, "nested field access" if index else "field extraction")
        field = None if schema is None else schema.field_named(step)
        value = fields.get(step) if field is None else field_of(fields, field, with_default=True)
        schema = None if field is None else field.schema
    return value


class HoistField:
    """Wrap a side into a struct, or without schema into a map, with one field of that name."""

    def __init__(self, side: RecordSide, name: str) -> None:
        self._side, self._name = side, name
        self._schema = cached(lambda schema: struct_of({name: schema}))

    def apply(self, record: R, /) -> R | None:
        """Wrap the side."""
        schema, value = self._side.of(record)
        return self._side.put(record, None if schema is None else self._schema(schema), {self._name: value})


class ValueToKey:
    """Replace the key by fields of the value."""

    def __init__(self, fields: Sequence[str], *, replace_null: bool = True) -> None:
        self._fields, self._replace_null = fields, replace_null
        self._schema = cached(self._key_schema)

    def _key_schema(self, schema: ConnectSchema) -> ConnectSchema:
        fields = {name: schema.field_named(name) for name in self._fields}
        missing = [name for name, field in fields.items() if field is None]
        if missing:
            raise DataError(f"Field does not exist: {missing[0]}. Correct `fields`, or insert the field before.")
        return struct_of({name: field.schema for name, field in fields.items() if field is not None})

    def apply(self, record: R, /) -> R | None:
        """Make the key. Raises `DataError` for a value that is null or lacks one of the fields."""
        schema, value = record.value_schema, record.value
        if schema is None:
            fields = require_map(value, "copying fields from value to key")
            return record.but(key_schema=None, key={name: fields.get(name) for name in self._fields})
        struct = require_struct(schema, value, "copying fields from value to key")
        key_schema = self._schema(schema)
        key = {one.name: field_of(struct, one, with_default=self._replace_null) for one in key_schema.fields}
        return record.but(key_schema=key_schema, key=key)


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
            field_value = field_of(struct, field, with_default=True)
            if field.schema.type is not SchemaType.STRUCT:
                flat[self._name(prefix, field.name)] = field_value
            elif field_value is not None:
                self._flatten_struct(field.schema, field_value, self._name(prefix, field.name), flat)

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
