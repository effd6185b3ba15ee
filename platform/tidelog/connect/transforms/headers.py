"""Transformations of headers: HeaderFrom, InsertHeader and DropHeaders."""

from collections.abc import Collection, Sequence
from typing import Any

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader
from tidelog.connect.data.schema import ConnectSchema
from tidelog.connect.transforms.base import R, RecordSide, basics_of, cached, field_of, require_map, require_struct


class HeaderFrom:
    """Copy fields into headers, or move them. `headers`: a name for each of the fields, in order."""

    def __init__(
        self,
        side: RecordSide,
        fields: Sequence[str],
        headers: Sequence[str],
        *,
        move: bool,
        replace_null: bool = True,
    ) -> None:
        self._side, self._named, self._move, self._replace_null = (
            side,
            [*zip(fields, headers, strict=True)],
            move,
            replace_null,
        )
        self._fields = frozenset(fields)
        self._schema = cached(
            lambda schema: basics_of(schema, tuple(one for one in schema.fields if one.name not in self._fields))
        )

    def apply(self, record: R, /) -> R | None:
        """Append the headers. Raises `DataError` for a field that the schema lacks."""
        schema, value = self._side.of(record)
        purpose = f"header {'move' if self._move else 'copy'}"
        if schema is None:
            found = dict(require_map(value, purpose))
            added = [ConnectHeader(header, found.get(name)) for name, header in self._named]
        else:
            struct = require_struct(schema, value, purpose)
            found = {one.name: field_of(struct, one, with_default=self._replace_null) for one in schema.fields}
            added = [self._header(schema, name, header, found) for name, header in self._named]
        if self._move:
            kept = {name: one for name, one in found.items() if name not in self._fields}
            record = self._side.put(record, None if schema is None else self._schema(schema), kept)
        return record.but(headers=(*record.headers, *added))

    def _header(self, schema: ConnectSchema, name: str, header: str, found: dict[str, Any]) -> ConnectHeader:
        field = schema.field_named(name)
        if field is None:
            raise DataError(f"Field does not exist: {name}. Correct `fields`, or insert the field before.")
        return ConnectHeader(header, found[name], field.schema)


class InsertHeader:
    """Append a header with a fixed value."""

    def __init__(self, name: str, value: Any, schema: ConnectSchema | None) -> None:
        self._header = ConnectHeader(name, value, schema)

    def apply(self, record: R, /) -> R | None:
        """Append the header, also behind one of the same name."""
        return record.but(headers=(*record.headers, self._header))


class DropHeaders:
    """Remove all headers of some names."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)

    def apply(self, record: R, /) -> R | None:
        """Remove the headers."""
        return record.but(headers=tuple(one for one in record.headers if one.key not in self._names))
