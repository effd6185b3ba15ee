"""What a typed topic's table knows of its values: the schemas, the columns, and how it comes to know more.

Pure. What a schema's columns are is for the codecs to say, which remember it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.disk_format import FORMAT_VERSION, TYPED_FORMAT_VERSION
from tidelog.log.delta.schema import columns_of, typed_schema
from tidelog.log.delta.written_schemas import WrittenSchema, parse_written_schemas, written_schemas_text
from tidelog.log.state.topic_state import FORMAT, VALUE_DERIVED, VALUE_SCHEMAS
from tidelog.log.typed.growth import grown
from tidelog.schemas.compile import compile_schema

# Of one topic: each entry that changes its configuration, and each checkpoint, holds them all.
MOST_SCHEMAS: Final = 1_000
MOST_SCHEMA_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class TypedTable:
    """What a typed topic's metaData says of its values: the schemas by id, and the columns, None as long as none is.

    `derives`: whether values may be derived of their columns; it stays so when new ones no longer are.
    """

    schemas: tuple[WrittenSchema, ...] = ()
    columns: pa.StructType | None = None
    derives: bool = False

    @classmethod
    def of(cls, metadata: Metadata | None) -> "TypedTable | None":
        """By a metaData that was verified; None for a topic that never was typed."""
        if metadata is None or metadata.configuration.get(FORMAT) != str(TYPED_FORMAT_VERSION):
            return None
        own = metadata.configuration
        schemas = parse_written_schemas(own.get(VALUE_SCHEMAS, "[]"))
        return cls(schemas, columns_of(metadata.schema), own.get(VALUE_DERIVED) == "true")

    def with_schemas(self, given: Iterable[WrittenSchema]) -> "TypedTable":
        """The table that knows these schemas, too. One that it knows stays as it is, but for where it was found.

        Raises `SchemaError` for a schema that no codec takes.
        """
        by_id, columns = {one.id: one for one in self.schemas}, self.columns
        for schema in given:
            earlier = by_id.get(schema.id)
            if earlier is None and self._is_full(by_id.values(), schema):
                continue
            if earlier is None:
                columns = grown(columns, compile_schema(*schema.meaning).columns).columns
            if earlier is None or (earlier.meaning == schema.meaning and schema.subject is not None):
                by_id[schema.id] = schema
        return replace(self, schemas=tuple(sorted(by_id.values(), key=lambda one: one.id)), columns=columns)

    def with_inline(self, kind: str, text: str) -> "TypedTable":
        """The table that knows the schema of its configuration: under the id that it had, or the next one below."""
        if any(one.id < 0 and (one.kind, one.text) == (kind, text) for one in self.schemas):
            return self
        lowest = min((one.id for one in self.schemas), default=0)
        after = self.with_schemas([WrittenSchema(min(lowest, 0) - 1, kind, text)])
        if after == self:
            raise InvalidConfigError(
                f"The topic has {len(self.schemas)} schemas, and takes no more: it holds at most {MOST_SCHEMAS:,}, of"
                f" {MOST_SCHEMA_BYTES >> 20} MiB in all. Produce to a new topic."
            )
        return after

    @staticmethod
    def _is_full(known: Iterable[WrittenSchema], more: WrittenSchema) -> bool:
        sizes = [_size(one) for one in (*known, more)]
        return len(sizes) > MOST_SCHEMAS or sum(sizes) > MOST_SCHEMA_BYTES

    @property
    def properties(self) -> dict[str, str]:
        """The facts, as table properties."""
        derives = {VALUE_DERIVED: "true"} if self.derives else {}
        return {FORMAT: str(TYPED_FORMAT_VERSION), VALUE_SCHEMAS: written_schemas_text(self.schemas), **derives}

    @property
    def schema(self) -> str:
        """The table's columns, as Delta has them."""
        return typed_schema(self.columns)


def _size(one: WrittenSchema) -> int:
    return len(one.text.encode()) + sum(len(name.encode()) + len(text.encode()) for name, text in one.references)


def configured(
    table: TypedTable | None, overrides: Mapping[str, str], schemas: Sequence[WrittenSchema] = ()
) -> TypedTable | None:
    """The table of a topic with these configuration keys, which goes on from `table`; None for one without types.

    `schemas`: those of the subject that the configuration names, of whichever kind. Raises `SchemaError`, and
    `InvalidConfigError` for a subject of another kind.
    """
    kind = overrides.get("value.columns", "none")
    if kind == "none":
        return table
    table = table or TypedTable()
    if overrides.get("value.bytes") == "derive":
        table = replace(table, derives=True)
    text = overrides.get("value.schema", "")
    if text:
        return table.with_inline(kind, text)
    others = sorted({one.kind for one in schemas} - {kind})
    if others:
        raise InvalidConfigError(
            f"Subject '{overrides.get('value.schema.subject')}' has schemas of the type {others[0].upper()}, and"
            f" value.columns is {kind}. Set value.columns={others[0]}, or name a subject of {kind.upper()} schemas."
        )
    return table.with_schemas(schemas)


def table_facts(table: TypedTable | None) -> dict[str, str]:
    """The table properties that say what values are."""
    return {FORMAT: str(FORMAT_VERSION)} if table is None else table.properties
