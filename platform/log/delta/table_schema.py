"""Whether a table's schema is the one that tidelog gave it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from tidelog.log.delta.schema import DELTA_SCHEMA, PARTITION_COLUMNS


@dataclass(frozen=True)
class TableShape:
    """What a table's columns must be: Delta's JSON of the schema, and the partition columns."""

    schema: str
    partition_columns: tuple[str, ...]

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """Delta's JSON of each column."""
        return _fields(self.schema)


TOPIC = TableShape(DELTA_SCHEMA, PARTITION_COLUMNS)


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
    for name in dict.fromkeys([*shape.fields, *fields]):
        if name not in fields:
            yield f"column '{name}' is gone"
        elif name not in shape.fields:
            yield f"column '{name}' is not known"
        elif fields[name] != shape.fields[name]:
            yield f"column '{name}' is {orjson.dumps(fields[name]).decode()}"


def _fields(schema: str) -> dict[str, Any]:
    return {f["name"]: f for f in orjson.loads(schema)["fields"]}
