"""Columns of one struct as columns of another: fields by their names, null where one lacks them."""

import pyarrow as pa

from tidelog.log.delta.schema import plain_type


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
