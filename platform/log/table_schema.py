"""Whether a table's schema is still one that a topic can live with, whatever another engine did to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from tidelog.log.schema import DELTA_SCHEMA, PARTITION_COLUMNS


@dataclass(frozen=True)
class TableShape:
    """What a table's columns must be: Delta's JSON of the schema, and the partition columns."""

    schema: str
    partition_columns: tuple[str, ...]

    @cached_property
    def types(self) -> Mapping[str, Any]:
        """Delta's type of each column."""
        return {f["name"]: f["type"] for f in orjson.loads(self.schema)["fields"]}


TOPIC = TableShape(DELTA_SCHEMA, PARTITION_COLUMNS)


def schema_problems(schema: str, partition_columns: Sequence[str], shape: TableShape = TOPIC) -> Iterator[str]:
    """What is wrong with a table's schema (Delta's JSON), one phrase each.

    A table's own columns stay what they are. Columns that others add may stand beside them when they take null,
    which is what its own segments have there.
    """
    if tuple(partition_columns) != shape.partition_columns:
        yield f"it is partitioned by ({', '.join(partition_columns)}), not by ({', '.join(shape.partition_columns)})"
    try:
        fields: Mapping[str, Mapping[str, Any]] = {f["name"]: f for f in orjson.loads(schema)["fields"]}
    except (ValueError, KeyError, TypeError) as e:
        yield f"it can't be read ({e!r})"
        return
    for name, kind in shape.types.items():
        if name not in fields:
            yield f"column '{name}' is gone"
        elif fields[name].get("type") != kind:
            yield f"column '{name}' has type {_text(fields[name].get('type'))}, not {_text(kind)}"
    for name, field in fields.items():
        if not field.get("nullable", True):
            yield f"column '{name}' takes no null"
        rules = sorted(k for k in field.get("metadata") or {} if k.startswith("delta."))
        if rules:
            yield f"column '{name}' has rules that are not implemented: {', '.join(rules)}"


def _text(kind: object) -> str:
    return kind if isinstance(kind, str) else orjson.dumps(kind).decode()
