"""How the columns of a typed topic's values grow: the union of its schemas' fields by name, recursively.

A field is added or left out, never changed and never taken away, so that every earlier row stays what it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from tidelog.log.delta.schema import DELTA_TYPES, MOST_DIGITS, plain_type
from tidelog.schemas.base.value_schemas import FORBIDDEN_IN_NAMES

# Fields at all levels that one table has at most, and how deep they lie: engines plan with each of them.
MOST_FIELDS: Final = 2_000
MOST_LEVELS: Final = 32


@dataclass(frozen=True, slots=True)
class Grown:
    """The columns after a schema, None where there are none, and of its fields those that are none of them.

    `left_out`: {path of a field, as Delta writes it ("a.element.b"): why}.
    """

    columns: pa.StructType | None
    left_out: Mapping[str, str]


def grown(columns: pa.StructType | None, schema: pa.StructType | None) -> Grown:
    """The table's columns with those of a schema; a schema without any (None) adds none."""
    union = _Union(_size(columns))
    found = columns if schema is None else union.struct(columns, schema, "", 1)
    return Grown(found, union.left_out)


@dataclass(slots=True)
class _Union:
    fields: int
    left_out: dict[str, str] = field(default_factory=dict)

    def struct(self, old: pa.StructType | None, new: pa.StructType, path: str, level: int) -> pa.StructType | None:
        """The struct that has the fields of both, old ones first; None where there are none."""
        fields = {} if old is None else {one.name: one for one in old}
        spelt = {name.casefold(): name for name in fields}
        seen: set[str] = set()
        for new_field in new:
            at = f"{path}.{new_field.name}" if path else new_field.name
            why = "the schema has the name twice" if new_field.name in seen else _name_problem(new_field.name, spelt)
            seen.add(new_field.name)
            old_field = fields.get(new_field.name)
            if why is None and old_field is None and self.fields >= MOST_FIELDS:
                why = f"the table has {MOST_FIELDS:,} fields already"
            if why is not None:
                self.left_out[at] = why
                continue
            self.fields += old_field is None
            kind = self.kind(None if old_field is None else old_field.type, new_field.type, at, level)
            if kind is not None:
                fields[new_field.name] = pa.field(new_field.name, kind)
                spelt[new_field.name.casefold()] = new_field.name
            else:
                self.fields -= old_field is None
        return pa.struct(list(fields.values())) if fields else None

    def kind(self, old: pa.DataType | None, new: pa.DataType, path: str, level: int) -> pa.DataType | None:
        """The type that holds both; None where there is none, which is noted."""
        data_type: pa.DataType | None = None
        why = f"it lies deeper than {MOST_LEVELS} levels" if level > MOST_LEVELS else _type_problem(new)
        if why is None and old is not None and not _alike(old, new):
            why = f"its type is {_named(new)}, and {_named(old)} in an earlier schema"
        if why is not None:
            self.left_out[path] = why
        elif pa.types.is_struct(new):
            data_type = self.struct(old, new, path, level + 1)
        elif _is_list(new):
            element = self.kind(None if old is None else old.value_type, new.value_type, f"{path}.element", level + 1)
            data_type = None if element is None else pa.list_(pa.field("element", element))
        elif pa.types.is_map(new):
            value = self.kind(None if old is None else old.item_type, new.item_type, f"{path}.value", level + 1)
            data_type = None if value is None else pa.map_(pa.string(), value)
        else:
            data_type = plain_type(new)
        return data_type


def _size(columns: pa.DataType | None) -> int:
    """How many fields structs have, at all levels."""
    if columns is None:
        return 0
    inner = sum(_size(columns.field(i).type) for i in range(columns.num_fields))
    return inner + (columns.num_fields if pa.types.is_struct(columns) else 0)


def _name_problem(name: str, spelt: Mapping[str, str]) -> str | None:
    if not name or not FORBIDDEN_IN_NAMES.isdisjoint(name):
        return "Delta forbids the name: none is empty or holds a blank, a tab, a line's end, or one of ,;{}()="
    other = spelt.get(name.casefold(), name)
    return None if other == name else f"its name differs from {other!r} only by case"


def _type_problem(kind: pa.DataType) -> str | None:
    if pa.types.is_struct(kind):
        return None if kind.num_fields else "it has no fields"
    if pa.types.is_map(kind):
        return None if plain_type(kind.key_type) == pa.string() else f"its keys are {_named(kind.key_type)}, not string"
    if _is_list(kind) or plain_type(kind) in DELTA_TYPES:
        return None
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= MOST_DIGITS:
        return None
    return f"Delta has no type for {kind}"


def _alike(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether a table's type may hold values of the other one, in which fields may be missing."""
    if pa.types.is_struct(old) or pa.types.is_map(old) or _is_list(old):
        return _named(old) == _named(new)
    return bool(old == plain_type(new))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _named(kind: pa.DataType) -> str:
    for name, is_kind in (("a struct", pa.types.is_struct), ("a list", _is_list), ("a map", pa.types.is_map)):
        if is_kind(kind):
            return name
    return str(plain_type(kind))
