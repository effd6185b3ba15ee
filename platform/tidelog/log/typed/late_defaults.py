"""Defaults of the newest schema for rows whose writer lacked a field (Avro's reader defaults), as a table is read.

The table holds null there: a default may change, and a row is never rewritten for that.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.typed.placing import lacks, type_at, with_defaults
from tidelog.log.typed.value_typing import Typing
from tidelog.schemas.base.value_schemas import FieldPath


@dataclass(frozen=True, slots=True)
class LateDefault:
    """A field, its default, as Arrow takes it, and the ids of the schemas that have what is around it, and lack it."""

    path: FieldPath
    value: Any
    lacking: tuple[int, ...]


def late_defaults(typing: Typing) -> tuple[LateDefault, ...]:
    """What readers fill in; nothing where no writer lacks a field that has a default other than null."""
    newest = None if typing.newest is None else typing.writers.get(typing.newest)
    if newest is None or typing.columns is None or newest.schema.columns is None:
        return ()
    defaults = []
    others = [one for one in typing.writers.values() if one.schema.columns is not None and one is not newest]
    for path, value in newest.schema.defaults.items():
        kind = type_at(newest.schema.columns, path)
        if value is None or kind is None or type_at(typing.columns, path) != kind:
            continue
        lacking = [
            one.id for one in others if lacks(one.schema.columns, path) and not _is_left_out(path, one.schema.left_out)
        ]
        if lacking:
            defaults.append(LateDefault(path, value, tuple(sorted(lacking))))
    return tuple(defaults)


def filled(columns: pa.StructArray, value_schema: pa.Array, defaults: Iterable[LateDefault]) -> pa.StructArray:
    """Rows of the table's columns with these defaults. `value_schema`: the id of each row's schema, or null."""
    lacking = [(one, pc.is_in(value_schema, pa.array(one.lacking, pa.int32()))) for one in defaults]
    there = [
        (one.path, one.value, rows.to_numpy(zero_copy_only=False))
        for one, rows in lacking
        if pc.any(rows).as_py() and type_at(columns.type, one.path) is not None
    ]
    return with_defaults(columns, there) if there else columns


def _is_left_out(path: FieldPath, left_out: Mapping[str, str]) -> bool:
    """Whether a writer has a field, or one around it, and it is no column: no default may hide what the bytes say."""
    return any(".".join(path[:count]) in left_out for count in range(1, len(path) + 1))
