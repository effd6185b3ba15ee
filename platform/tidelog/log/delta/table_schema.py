"""Whether a table's schema is the one that tidelog gave it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson
import pyarrow as pa

from tidelog.log.delta.disk_format import TYPED_FORMAT_VERSION
from tidelog.log.delta.schema import COLUMNS, DELTA_SCHEMA, PARTITION_COLUMNS, columns_of, typed_schema


@dataclass(frozen=True)
class TableShape:
    """What a table's columns must be: Delta's JSON of the schema, and the partition columns.

    `typed`: whether it may have a struct `columns` besides, of values' columns. `later`: columns that a table may lack.
    """

    schema: str
    partition_columns: tuple[str, ...]
    typed: bool = False
    later: frozenset[str] = frozenset()

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """Delta's JSON of each column."""
        return _fields(self.schema)


TOPIC = TableShape(DELTA_SCHEMA, PARTITION_COLUMNS)
TYPED_TOPIC = TableShape(typed_schema(None), PARTITION_COLUMNS, typed=True)


def topic_shape(format_version: str) -> TableShape:
    """What the columns of a topic's table of that format version must be."""
    return TYPED_TOPIC if format_version == str(TYPED_FORMAT_VERSION) else TOPIC


def schema_problems(schema: str, partition_columns: Sequence[str], shape: TableShape = TOPIC) -> Iterator[str]:
    """What is wrong with a table's schema (Delta's JSON), one phrase each."""
    if tuple(partition_columns) != shape.partition_columns:
        yield f"it is partitioned by ({', '.join(partition_columns)}), not by ({', '.join(shape.partition_columns)})"
    if schema == shape.schema:
        return
    try:
        fields = _fields(schema)
    except (ValueError, KeyError, TypeError) as e:
        yield f"it can't be read ({e!r})"
        return
    if shape.typed and COLUMNS in fields:
        yield from _columns_problems(schema, fields.pop(COLUMNS))
    for name in dict.fromkeys([*shape.fields, *fields]):
        if name not in fields:
            if name not in shape.later:
                yield f"column '{name}' is gone"
        elif name not in shape.fields:
            yield f"column '{name}' is not known"
        elif fields[name] != shape.fields[name]:
            yield f"column '{name}' is {orjson.dumps(fields[name]).decode()}"


def _columns_problems(schema: str, field: Mapping[str, Any]) -> Iterator[str]:
    try:
        columns = columns_of(schema)
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        yield f"column '{COLUMNS}' has what no value's column has ({e})"
        return
    if columns is None or {**field, "type": None} != {"name": COLUMNS, "type": None, "nullable": True, "metadata": {}}:
        yield f"column '{COLUMNS}' is {orjson.dumps(field).decode()}"


def growth_problems(old: str, new: str) -> Iterator[str]:
    """What columns of values a table's schema loses or changes by another one, one phrase each.

    A schema that can't be read says nothing: it is judged at the head of the log.
    """
    try:
        before, after = columns_of(old), columns_of(new)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    if before is not None:
        yield from _lost(before, after, COLUMNS)


def _lost(old: pa.DataType, new: pa.DataType | None, path: str) -> Iterator[str]:
    if new is None:
        yield f"it takes the column {path} away"
    elif pa.types.is_struct(old) and pa.types.is_struct(new):
        kinds = {field.name: field.type for field in new}
        for field in old:
            yield from _lost(field.type, kinds.get(field.name), f"{path}.{field.name}")
    elif pa.types.is_list(old) and pa.types.is_list(new):
        yield from _lost(old.value_type, new.value_type, f"{path}.element")
    elif pa.types.is_map(old) and pa.types.is_map(new):
        yield from _lost(old.item_type, new.item_type, f"{path}.value")
    elif old != new:
        yield f"it makes the column {path}, which is {old}, {new}"


def _fields(schema: str) -> dict[str, Any]:
    return {f["name"]: f for f in orjson.loads(schema)["fields"]}
