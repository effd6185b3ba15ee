"""Whether a table's schema is still one that a topic can live with, whatever another engine did to it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tidelog.log.schema import DELTA_SCHEMA, PARTITION_COLUMNS

_OWN: Mapping[str, Any] = {f["name"]: f["type"] for f in orjson.loads(DELTA_SCHEMA)["fields"]}


def schema_problems(schema: str, partition_columns: Sequence[str]) -> Iterator[str]:
    """What is wrong with a table's schema (Delta's JSON), one phrase each.

    A topic's own columns stay what they are. Columns that others add may stand beside them when they take null,
    which is what the topic's own segments have there.
    """
    if tuple(partition_columns) != PARTITION_COLUMNS:
        yield f"it is partitioned by ({', '.join(partition_columns)}), not by ({', '.join(PARTITION_COLUMNS)})"
    try:
        fields: Mapping[str, Mapping[str, Any]] = {f["name"]: f for f in orjson.loads(schema)["fields"]}
    except (ValueError, KeyError, TypeError) as e:
        yield f"it can't be read ({e!r})"
        return
    for name, kind in _OWN.items():
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
