"""What a typed topic's values are, for people and programs that look at topics."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidelog.log.base.errors import MissingPackageError
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.schema import delta_type
from tidelog.log.delta.written_schemas import WrittenSchema
from tidelog.log.typed.facts import typing_of
from tidelog.log.typed.growth import grown
from tidelog.log.typed.tables import TypedTable
from tidelog.schemas.base.errors import SchemaError
from tidelog.schemas.compile import compile_schema


@dataclass(frozen=True, slots=True)
class SchemaDescription:
    """A schema that values were written with.

    `derives`: whether bytes may be made of the columns. `left_out`: the path of a field -> why it is no column; "" is
    the schema itself.
    """

    id: int
    kind: str
    subject: str | None
    version: int | None
    derives: bool
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ValuesDescription:
    """A typed topic's values: `kind` of their schemas now, None for none; the columns as (path, Delta's type).

    `newest`: the schema that the configuration names.
    """

    kind: str | None
    newest: int | None
    columns: tuple[tuple[str, str], ...]
    schemas: tuple[SchemaDescription, ...]


def describe_values(metadata: Metadata | None) -> ValuesDescription | None:
    """A topic's values by its metaData; None for a topic whose values were never columns."""
    typing, table = typing_of(metadata), TypedTable.of(metadata)
    if typing is None or table is None:
        return None
    columns = () if table.columns is None else tuple(leaves(table.columns, ""))
    schemas = tuple(_described(one, table.columns) for one in table.schemas)
    return ValuesDescription(typing.kind, typing.newest, columns, schemas)


def leaves(kind: pa.DataType, path: str) -> Iterator[tuple[str, str]]:
    """(path, type) of what has no fields itself, in the table's order."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaves(field.type, f"{path}.{field.name}" if path else field.name)
    elif pa.types.is_list(kind):
        yield from leaves(kind.value_type, f"{path}.element")
    elif pa.types.is_map(kind):
        yield from leaves(kind.item_type, f"{path}.value")
    else:
        yield path, str(delta_type(kind))


def _described(written: WrittenSchema, columns: pa.StructType | None) -> SchemaDescription:
    try:
        schema = compile_schema(*written.meaning)
    except (SchemaError, MissingPackageError) as e:
        left_out: Mapping[str, str] = {"": str(e)}
        return SchemaDescription(written.id, written.kind, written.subject, written.version, False, left_out)
    fitted = grown(columns, schema.columns)
    left_out = {**schema.left_out, **fitted.left_out}
    derives = schema.exact and schema.columns is not None and not left_out
    return SchemaDescription(written.id, written.kind, written.subject, written.version, derives, left_out)
