"""Columns of one struct as columns of another: fields by their names, null where one lacks them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.delta.schema import plain_type
from tidelog.schemas.base.value_schemas import FieldPath

Rows = npt.NDArray[np.bool_]


def placed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """What `array` holds, as `kind`: fields of structs by name, in lists and maps, too.

    Null for a field that `array` lacks, or has of another type; what `kind` lacks is left out.
    """
    if array.type == kind:
        return array
    if plain_type(array.type) == kind:
        return array.cast(kind)
    if not alike_in_shape(array.type, kind):
        return pa.nulls(len(array), kind)
    if pa.types.is_struct(kind):
        mask = array.is_null() if array.null_count else None
        if not kind.num_fields:
            return pa.nulls(len(array), kind) if mask is not None else pa.array([{}] * len(array), kind)
        return pa.StructArray.from_arrays([_field(array, field) for field in kind], fields=list(kind), mask=mask)
    if pa.types.is_map(kind):
        items = placed(array.items, kind.item_type)
        entries = pa.StructArray.from_arrays([array.keys, items], fields=[kind.key_field, kind.item_field])
        return _of_children(array, kind, entries)
    return _of_children(array, kind, placed(array.values, kind.value_type))


def alike_in_shape(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether both are structs, lists, or maps with keys of one type, or else the same type."""
    if pa.types.is_map(kind):
        return bool(pa.types.is_map(given) and given.key_type == kind.key_type)
    if pa.types.is_struct(kind):
        return bool(pa.types.is_struct(given))
    if pa.types.is_list(kind):
        return bool(pa.types.is_list(given))
    return bool(given == kind)


# --- defaults of fields that are not there ----------------------------------------------------------------------


def type_at(kind: pa.DataType, path: FieldPath) -> pa.DataType | None:
    """The type of a field, None where there is none."""
    for step in path:
        if pa.types.is_struct(kind):
            at = kind.get_field_index(step)
            if at < 0:
                return None
            kind = kind.field(at).type
        elif pa.types.is_map(kind):
            kind = kind.item_type
        elif pa.types.is_list(kind):
            kind = kind.value_type
        else:
            return None
    return kind


def lacks(kind: pa.DataType, path: FieldPath) -> bool:
    """Whether a type has the struct that a field is in, and not the field."""
    around = type_at(kind, path[:-1])
    return around is not None and pa.types.is_struct(around) and around.get_field_index(path[-1]) < 0


def with_lacking(array: pa.Array, given: pa.DataType, defaults: Mapping[FieldPath, Any]) -> pa.Array:
    """Columns made of those of type `given`: with the defaults of fields that this one lacks."""
    every = np.ones(len(array), np.bool_)
    lacking = [(path, value) for path, value in defaults.items() if value is not None and lacks(given, path)]
    return with_defaults(array, [(path, value, every) for path, value in lacking])


def with_defaults(array: pa.Array, defaults: Sequence[tuple[FieldPath, Any, Rows]]) -> pa.Array:
    """Columns with fields set to a value in some rows, wherever there is a struct that holds the field.

    `defaults`: (path of a field that is there, value as Arrow takes it, n booleans).
    """
    kind = array.type
    for path, value, rows in defaults:
        if not path:
            default = pa.array([value], kind).take(pa.array(np.zeros(len(array), np.int32)))
            array = default if rows.all() else pc.if_else(pa.array(rows), default, array)
    below = [one for one in defaults if one[0]]
    if not below:
        return array
    if pa.types.is_struct(kind):
        made = [array.field(number) for number in range(kind.num_fields)]
        for at in {kind.get_field_index(path[0]) for path, _, _ in below}:
            name = kind.field(at).name
            inner = [(path[1:], value, rows) for path, value, rows in below if path[0] == name]
            made[at] = with_defaults(made[at], inner)
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(made, fields=list(kind), mask=mask)
    values = array.items if pa.types.is_map(kind) else array.values
    values = with_defaults(
        values, [(path[1:], value, _of_elements(array, values, rows)) for path, value, rows in below]
    )
    if pa.types.is_map(kind):
        values = pa.StructArray.from_arrays([array.keys, values], fields=[kind.key_field, kind.item_field])
    return _of_children(array, kind, values)


def _of_elements(array: pa.Array, values: pa.Array, rows: Rows) -> Rows:
    """Which elements of lists or maps are of some rows."""
    offsets, found = array.offsets.to_numpy(), np.zeros(len(values), np.bool_)
    found[offsets[0] : offsets[-1]] = np.repeat(rows, np.diff(offsets))
    return found


def _field(array: pa.Array, field: pa.Field) -> pa.Array:
    at = array.type.get_field_index(field.name)
    return pa.nulls(len(array), field.type) if at < 0 else placed(array.field(at), field.type)


def _of_children(array: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or a map with the rows of `array`, and other values in them."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[child])


def widened(records: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Records with the columns of a later schema of their table: null where they lack one.

    Raises ValueError for records that have what `wanted` lacks.
    """
    if records.schema.equals(wanted):
        return records
    columns = []
    for field in wanted:
        at = records.schema.get_field_index(field.name)
        if at < 0:
            columns.append(pa.chunked_array([pa.nulls(records.num_rows, field.type)]))
            continue
        column = records.column(at)
        if not is_within(column.type, field.type):
            raise ValueError(f"column '{field.name}' is {column.type}, which is more than {field.type}")
        columns.append(
            column
            if column.type == field.type
            else pa.chunked_array([placed(chunk, field.type) for chunk in column.chunks], field.type)
        )
    others = [name for name in records.schema.names if wanted.get_field_index(name) < 0]
    if others:
        raise ValueError(f"column '{others[0]}' is not one of the table")
    return pa.Table.from_arrays(columns, schema=wanted)


def is_within(given: pa.DataType, kind: pa.DataType) -> bool:
    """Whether all that a column of one type holds has its place in the other."""
    if given == kind or not alike_in_shape(given, kind):
        return bool(given == kind)
    if pa.types.is_struct(kind):
        return all(
            kind.get_field_index(one.name) >= 0 and is_within(one.type, kind.field(one.name).type) for one in given
        )
    if pa.types.is_map(kind):
        return is_within(given.item_type, kind.item_type)
    return is_within(given.value_type, kind.value_type)
