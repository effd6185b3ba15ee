"""Defaults of the newest schema for rows whose writer lacked a field (Avro's reader defaults), as a table is read.

The table holds null there: a default may change, and a row is never rewritten for that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.typed.value_typing import Typing


@dataclass(frozen=True, slots=True)
class LateDefault:
    """A field of the first level, its default, as Arrow takes it, and the ids of the schemas that lack the field."""

    name: str
    value: Any
    lacking: tuple[int, ...]


def late_defaults(typing: Typing) -> tuple[LateDefault, ...]:
    """What readers fill in; nothing where no writer lacks a field that has a default other than null."""
    newest = None if typing.newest is None else typing.writers.get(typing.newest)
    if newest is None or typing.columns is None or newest.schema.columns is None:
        return ()
    found = []
    others = [one for one in typing.writers.values() if one.schema.columns is not None and one is not newest]
    for name, value in newest.schema.defaults.items():
        at = newest.schema.columns.get_field_index(name)
        if value is None or at < 0 or not _holds(typing.columns, name, newest.schema.columns.field(at).type):
            continue
        lacking = [
            one.id
            for one in others
            if one.schema.columns is not None
            and one.schema.columns.get_field_index(name) < 0
            and name not in one.schema.left_out
        ]
        if lacking:
            found.append(LateDefault(name, value, tuple(sorted(lacking))))
    return tuple(found)


def filled(columns: pa.StructArray, value_schema: pa.Array, defaults: Iterable[LateDefault]) -> pa.StructArray:
    """Rows of the table's columns with these defaults. `value_schema`: the id of each row's schema, or null."""
    made = {field.name: columns.field(at) for at, field in enumerate(columns.type)}
    for one in defaults:
        lacks = pc.is_in(value_schema, pa.array(one.lacking, pa.int32()))
        if one.name in made and pc.any(lacks).as_py():
            kind = made[one.name].type
            default = pa.array([one.value], kind).take(pa.array(np.zeros(len(columns), np.int32)))
            made[one.name] = pc.if_else(lacks, default, made[one.name])
    mask = columns.is_null() if columns.null_count else None
    return pa.StructArray.from_arrays(list(made.values()), fields=list(columns.type), mask=mask)


def _holds(columns: pa.StructType, name: str, kind: pa.DataType) -> bool:
    at = columns.get_field_index(name)
    return at >= 0 and bool(columns.field(at).type.equals(kind))
