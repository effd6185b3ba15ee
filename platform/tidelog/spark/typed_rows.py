"""A typed topic's rows in native reads: values that are derived of their columns, and columns with their defaults."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from tidelog.log.base.errors import TopicChangedError
from tidelog.log.delta import schema
from tidelog.log.typed.late_defaults import LateDefault, late_defaults
from tidelog.log.typed.value_typing import VALUE_LENGTH, VALUE_SCHEMA, Typing
from tidelog.schemas.base.value_schemas import FieldPath
from tidelog.spark.fitting import fitted

_MADE_BEFORE = (
    "The topic has values that are derived of their columns (value.bytes=derive) since this query, or its view, was"
    " made, and it does not read those columns. Make it again; a stream goes on from its checkpoint."
)


def typed_rows(rows: DataFrame, typing: Typing, *, columns: bool) -> DataFrame:
    """Rows of a topic's table with `value` as it was sent, and `columns`, where asked for, with their defaults.

    Spark leaves out what a query does not name: values are made where `value` is, and fields are read that are. `rows`
    may be of an earlier state of the table, which lacks columns. A view or a stream outlives the state that it was made
    by: where none had a derived value then, a query that meets one fails, as its null would be taken for a tombstone.
    """
    if VALUE_LENGTH not in rows.columns:
        return rows
    made: dict[str, Column] = {}
    if typing.may_derive and schema.COLUMNS in rows.columns:
        made["value"] = F.coalesce(F.col("value"), _derived(typing))
    else:
        refused = F.raise_error(F.lit(_MADE_BEFORE)).cast(BinaryType())
        made["value"] = F.when(F.col(VALUE_LENGTH).isNull(), F.col("value")).otherwise(refused)
    if columns:
        filled = _filled(rows.schema[schema.COLUMNS].dataType, typing)
        if filled is not None:
            made[schema.COLUMNS] = filled
    return rows.withColumns(made) if made else rows


def _derived(typing: Typing) -> Column:
    """The values that are derived, null for the others, of which nothing goes to Python."""
    kind = typing.columns
    if kind is None:
        raise ValueError("a table without columns has no values to derive")

    def derive(ids: pa.Array, lengths: pa.Array, columns: pa.Array) -> pa.Array:
        unknown = sorted({one for one in ids.unique().to_pylist() if one is not None} - {*typing.writers})
        if unknown:
            raise TopicChangedError(
                f"The topic's columns have grown by schema {unknown[0]} since this query, or its view, was made, and"
                " its values can't be derived of the columns that it reads. Make it again; a stream goes on from its"
                " checkpoint."
            )
        stored = pa.nulls(len(ids), pa.binary())
        return typing.bytes_of(stored, ids, lengths, fitted(columns, kind, {}))

    is_derived = F.col(VALUE_LENGTH).isNotNull()
    struct = F.when(is_derived, F.col(schema.COLUMNS))
    schema_id = F.when(is_derived, F.col(VALUE_SCHEMA))
    return on_arrow(derive, BinaryType(), schema_id, F.col(VALUE_LENGTH), struct)


def on_arrow(work: Callable[..., pa.Array], gives: DataType, *arguments: Column) -> Column:
    """What a function of Arrow arrays gives; its annotations tell Spark that it is one."""
    return arrow_udf(work, gives)(*arguments)  # type: ignore[call-overload, no-any-return]


def _filled(struct: DataType, typing: Typing) -> Column | None:
    """The struct with the newest schema's defaults; None where it is right as it is.

    Only fields that a writer lacked are computed: the others stay Parquet's, and filters on them are pushed down.
    """
    late = [one for one in late_defaults(typing) if _has(struct, one.path)]
    return _with_defaults(F.col(schema.COLUMNS), struct, [(one.path, one) for one in late]) if late else None


def _has(kind: DataType, path: FieldPath) -> bool:
    for step in path:
        if isinstance(kind, StructType) and step in kind.names:
            kind = kind[step].dataType
        elif isinstance(kind, ArrayType):
            kind = kind.elementType
        elif isinstance(kind, MapType):
            kind = kind.valueType
        else:
            return False
    return True


def _with_defaults(given: Column, kind: Any, late: Sequence[tuple[FieldPath, LateDefault]]) -> Column:
    """A field with defaults at paths below it, of rows whose writer lacked what is there."""
    if not late[0][0]:
        default = late[0][1]
        return F.when(F.col(VALUE_SCHEMA).isin(*default.lacking), _literal(default.value, kind)).otherwise(given)
    inside = [(path[1:], one) for path, one in late]
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.transform(given, lambda one: _with_defaults(one, element, inside))
    if isinstance(kind, MapType):
        value = kind.valueType
        return F.transform_values(given, lambda _, one: _with_defaults(one, value, inside))
    column = given
    for name in dict.fromkeys(path[0] for path, _ in late):
        below = [(path[1:], one) for path, one in late if path[0] == name]
        field = given[name]
        # The rows of those around a field and of those within it have other writers.
        for part in [one for one in below if one[0]], [one for one in below if not one[0]]:
            field = _with_defaults(field, kind[name].dataType, part) if part else field
        column = column.withField(f"`{name}`", field)
    return column


def _literal(value: Any, kind: DataType) -> Column:
    """A value, as Arrow takes it, of a type."""
    if value is None:
        return F.lit(None).cast(kind)
    if isinstance(kind, ArrayType):
        return F.array(*(_literal(one, kind.elementType) for one in value)).cast(kind)
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, Mapping) else value
        listed = [
            _literal(part, of) for pair in pairs for part, of in zip(pair, (kind.keyType, kind.valueType), strict=True)
        ]
        return F.create_map(*listed).cast(kind)
    if isinstance(kind, StructType):
        return F.struct(*(_literal(value.get(one.name), one.dataType).alias(one.name) for one in kind)).cast(kind)
    return F.lit(value).cast(kind)
