"""Debezium's `ExtractNewRecordState`: the row of a change's envelope in place of the envelope.

Source: Debezium's documentation, "New Record State Extraction" (event flattening).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader
from tidelog.connect.data.schema import STRING, ConnectSchema, SchemaField, SchemaType
from tidelog.connect.transforms.base import R, RecordSide, basics_of, require_struct
from tidelog.connect.transforms.fields import InsertField, ReplaceField

_ENVELOPE: Final = "Envelope"
_DELETED: Final = "__deleted"
_PURPOSE: Final = "extraction of a row's new state"
_DELETE: Final = "d"
_OP: Final = (None, "op")
# The envelope's own fields, and those of its block `transaction`; all others are looked for in `source`.
_OF_ENVELOPE: Final = frozenset({"op", "ts_ms", "ts_us", "ts_ns"})
_OF_TRANSACTION: Final = frozenset({"id", "total_order", "data_collection_order"})


class DeleteMode(StrEnum):
    """What becomes of deletes and of the tombstones behind them (`delete.tombstone.handling.mode`).

    The last two are what the older `drop.tombstones` and `delete.handling.mode` say beyond these.
    """

    DROP = "drop"
    TOMBSTONE = "tombstone"
    REWRITE = "rewrite"
    REWRITE_WITH_TOMBSTONE = "rewrite-with-tombstone"
    DELETE_TO_TOMBSTONE = "delete-to-tombstone"
    DROP_WITH_TOMBSTONE = "drop, and keep tombstones"
    BOTH_TOMBSTONES = "none, and keep tombstones"


MODES: Final = tuple(str(one) for one in DeleteMode if " " not in one)
_REWRITING: Final = (DeleteMode.REWRITE, DeleteMode.REWRITE_WITH_TOMBSTONE)
_KEEPING: Final = (DeleteMode.REWRITE_WITH_TOMBSTONE, DeleteMode.DROP_WITH_TOMBSTONE, DeleteMode.BOTH_TOMBSTONES)
# By `delete.handling.mode`, and whether tombstones are dropped.
OLDER_MODES: Final = {
    ("drop", True): DeleteMode.DROP,
    ("drop", False): DeleteMode.DROP_WITH_TOMBSTONE,
    ("rewrite", True): DeleteMode.REWRITE,
    ("rewrite", False): DeleteMode.REWRITE_WITH_TOMBSTONE,
    ("none", True): DeleteMode.TOMBSTONE,
    ("none", False): DeleteMode.BOTH_TOMBSTONES,
}


@dataclass(frozen=True, slots=True)
class EnvelopeField:
    """A field of the envelope that is kept: `block` None for one of the envelope itself; `name`: what it becomes."""

    block: str | None
    field: str
    name: str

    @classmethod
    def parsed(cls, text: str, prefix: str) -> "EnvelopeField":
        """Of `field`, `block.field`, or either with `:name`.

        >>> EnvelopeField.parsed("lsn", "__"), EnvelopeField.parsed("source.ts_ms:at", "__").name
        (EnvelopeField(block='source', field='lsn', name='__lsn'), '__at')
        """
        path, _, name = (part.strip() for part in text.partition(":"))
        block, _, field = path.rpartition(".")
        if not field or "." in block:
            raise ValueError(f"{text!r} is no field, block.field, or one of these with :name")
        if block:
            return cls(block, field, prefix + (name or f"{block}_{field}"))
        if field in _OF_ENVELOPE:
            return cls(None, field, prefix + (name or field))
        return cls("transaction" if field in _OF_TRANSACTION else "source", field, prefix + (name or field))

    def schema_in(self, envelope: ConnectSchema) -> ConnectSchema | None:
        """Its schema; None where the envelope has no such block. Raises `DataError` for a block without the field."""
        within: ConnectSchema | None = envelope
        optional = False
        if self.block is not None:
            block = envelope.field_named(self.block)
            if block is None:
                return None
            within, optional = block.schema, block.schema.optional
        field = within.field_named(self.field) if within is not None else None
        if field is None:
            where = self.block or "the envelope"
            raise DataError(
                f"Unexpected field name: {self.field}: {where} has none. Correct add.fields and add.headers."
            )
        return field.schema.as_optional() if optional else field.schema

    def value_in(self, envelope: Any) -> Any:
        """Its value; None where its block is null."""
        within = envelope if self.block is None else envelope.get(self.block)
        return None if within is None else within.get(self.field)


@dataclass(frozen=True, kw_only=True)
class NewRecordState:
    """The row after a change, or of a delete what `deletes` says; what is no envelope passes as it is.

    `fields`, `headers`: what is kept of the envelope. `route_by`: the row's field that names the topic. `drop_header`:
    the header that lists fields to leave out of the row, and with `drop_from_key` of the key; only optional ones with
    `drop_compatibly`. `replace_null`: as of `InsertField`.
    """

    deletes: DeleteMode = DeleteMode.TOMBSTONE
    fields: Sequence[EnvelopeField] = ()
    headers: Sequence[EnvelopeField] = ()
    route_by: str | None = None
    drop_header: str | None = None
    drop_from_key: bool = False
    drop_compatibly: bool = True
    replace_null: bool = True

    def apply(self, record: R, /) -> R | None:
        """Take the row out. Raises `DataError` for fields that are not there."""
        if record.value is None:
            return self._tombstone(record)
        schema = record.value_schema
        if schema is None or schema.type is not SchemaType.STRUCT or not (schema.name or "").endswith(_ENVELOPE):
            return record
        envelope = require_struct(schema, record.value, _PURPOSE)
        before, after = (schema.field_named(name) for name in ("before", "after"))
        if before is None or after is None:
            return record
        if envelope.get("after") is None and envelope.get("before") is None:
            return None  # a truncation is no row's
        found = record.but(headers=(*record.headers, *self._headers(schema, envelope)))
        row = found.but(value_schema=after.schema, value=envelope["after"])
        if envelope.get("after") is not None:
            row = self._enriched(self._routed(row, envelope["after"]), schema, envelope)
            return self._marked(self._without_dropped(row), deleted=False)
        if self.deletes in (DeleteMode.DROP, DeleteMode.DROP_WITH_TOMBSTONE):
            return None
        row = self._routed(row, envelope["before"])
        if self.deletes is DeleteMode.DELETE_TO_TOMBSTONE:
            return row.but(value_schema=None, value=None)
        if self.deletes not in _REWRITING:
            return row
        row = row.but(value_schema=before.schema, value=envelope["before"])
        return self._marked(self._without_dropped(self._enriched(row, schema, envelope)), deleted=True)

    def _tombstone(self, record: R) -> R | None:
        if self.deletes not in _KEEPING:
            return None
        added = [ConnectHeader(one.name, _DELETE, STRING) for one in self.headers if (one.block, one.field) == _OP]
        return record.but(headers=(*record.headers, *added)) if added else record

    def _headers(self, schema: ConnectSchema, envelope: Any) -> list[ConnectHeader]:
        pairs = ((one, one.schema_in(schema)) for one in self.headers)
        return [ConnectHeader(one.name, one.value_in(envelope), kind) for one, kind in pairs if kind is not None]

    def _routed(self, record: R, row: Any) -> R:
        if self.route_by is None:
            return record
        topic = row.get(self.route_by)
        if not isinstance(topic, str) or not topic:
            raise DataError(
                f"Field {self.route_by} of a row of {record.topic} names no topic: it is {topic!r:.100}. Correct"
                " route.by.field, which takes a column of texts that is never null."
            )
        return record.but(topic=topic)

    def _enriched(self, record: R, schema: ConnectSchema, envelope: Any) -> R:
        added = [(one, kind) for one in self.fields if (kind := one.schema_in(schema)) is not None]
        if not added:
            return record
        row = record.value_schema
        assert row is not None  # it is the envelope's
        wanted = (*row.fields, *(SchemaField(one.name, kind) for one, kind in added))
        values = {**record.value, **{one.name: one.value_in(envelope) for one, _ in added}}
        return record.but(value_schema=basics_of(row, wanted), value=values)

    def _marked(self, record: R | None, *, deleted: bool) -> R | None:
        if record is None or self.deletes not in _REWRITING:
            return record
        said = "true" if deleted else "false"
        return InsertField(RecordSide.VALUE, {"static": _DELETED}, said, replace_null=self.replace_null).apply(record)

    def _without_dropped(self, record: R) -> R | None:
        if self.drop_header is None:
            return record
        names = next((one.value for one in reversed(record.headers) if one.key == self.drop_header), None)
        if not isinstance(names, (list, tuple)):
            return record
        sides = (RecordSide.KEY, RecordSide.VALUE) if self.drop_from_key else (RecordSide.VALUE,)
        transformed: R | None = record
        for side in sides:
            schema, value = side.of(record)
            if transformed is None or value is None or schema is None or schema.type is not SchemaType.STRUCT:
                continue
            leave = [
                one.name
                for one in schema.fields
                if one.name in names and (one.schema.optional or not self.drop_compatibly)
            ]
            if leave:
                transformed = ReplaceField(side, leave, replace_null=False).apply(transformed)
        return transformed
