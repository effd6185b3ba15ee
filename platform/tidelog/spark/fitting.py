"""A writer's columns as a reader's schema has them: Avro's schema resolution over Arrow arrays. Pure.

Source: Avro's specification, "Schema Resolution". JSON Schema and Protobuf have no defaults of their own there: a field
that a writer lacks is null.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from tidelog.log.typed.placing import with_lacking
from tidelog.schemas.base.value_schemas import FieldPath, ValueSchema

# Which types a reader may have for a writer's, beside the same one.
_PROMOTIONS: Final[Mapping[pa.DataType, tuple[pa.DataType, ...]]] = {
    pa.int8(): (pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float32(), pa.float64()),
    pa.int64(): (pa.float32(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.string(): (pa.binary(),),
    pa.binary(): (pa.string(),),
}


def why_unreadable(writer: ValueSchema, reader: ValueSchema) -> str | None:
    """Why none of a writer's records can be read by a reader's schema; None: they can."""
    if writer.kind != reader.kind:
        return f"it is {writer.kind}, and the reader's schema is {reader.kind}"
    if writer.columns is None or reader.columns is None:
        return "it has no field that can be a column"
    for field in reader.columns:
        why = _why_apart(writer.columns, field, field.name, writer.left_out)
        if why is not None:
            return why
    missing = next(_undefaulted(writer.columns, reader.columns, (), reader), None)
    if missing is None:
        return None
    return f"it has no field '{missing}', and the reader's schema has no default for that"


def _undefaulted(given: pa.DataType, wanted: pa.DataType, path: FieldPath, schema: ValueSchema) -> Iterator[str]:
    """The paths of fields that an Avro schema wants, has no default for, and that a type lacks."""
    if schema.kind != "avro":
        return
    if kinds.is_struct(wanted):
        for field in wanted:
            at, here = given.get_field_index(field.name), (*path, field.name)
            if at >= 0:
                yield from _undefaulted(given.field(at).type, field.type, here, schema)
            elif here not in schema.defaults:
                yield ".".join(here)
    elif kinds.is_list(wanted):
        yield from _undefaulted(given.value_type, wanted.value_type, (*path, "element"), schema)
    elif kinds.is_map(wanted):
        yield from _undefaulted(given.item_type, wanted.item_type, (*path, "value"), schema)


def _why_apart(struct: pa.StructType, wanted: pa.Field, path: str, left_out: Mapping[str, str]) -> str | None:
    if path in left_out:
        return f"its field '{path}' can't be a column: {left_out[path]}"
    at = struct.get_field_index(wanted.name)
    return None if at < 0 else _why_unlike(struct.field(at).type, wanted.type, path, left_out)


def _why_unlike(given: pa.DataType, wanted: pa.DataType, path: str, left_out: Mapping[str, str]) -> str | None:
    if given.equals(wanted) or wanted in _PROMOTIONS.get(given, ()):
        return None
    if kinds.is_struct(given) and kinds.is_struct(wanted):
        inner = (_why_apart(given, field, f"{path}.{field.name}", left_out) for field in wanted)
        return next((why for why in inner if why is not None), None)
    if kinds.is_list(given) and kinds.is_list(wanted):
        return _why_unlike(given.value_type, wanted.value_type, path, left_out)
    if kinds.is_map(given) and kinds.is_map(wanted):
        return _why_unlike(given.item_type, wanted.item_type, path, left_out)
    if kinds.is_decimal(given) and kinds.is_decimal(wanted) and given.scale == wanted.scale:
        return None if given.precision <= wanted.precision else f"its field '{path}' has more digits"
    return f"its field '{path}' is {given}, and {wanted} in the reader's schema"


def why_unwritable(given: pa.StructType, schema: ValueSchema) -> str | None:
    """Why rows of a struct can't be written under a schema; None: they can, as far as types tell."""
    if schema.columns is None:
        return "the schema has no field that can be a column"
    if schema.kind == "avro" and schema.left_out:
        path, reason = next(iter(schema.left_out.items()))
        return f"the schema's field '{path}' can't be a column: {reason}"
    for field in schema.columns:
        why = _why_apart(given, field, field.name, {})
        if why is not None:
            return why
    missing = next(_undefaulted(given, schema.columns, (), schema), None)
    if missing is not None:
        return f"the column has no field '{missing}', and the schema has no default for that"
    extra = next(_unknown(given, schema.columns, ""), None)
    return None if extra is None else f"the schema has no field '{extra}'"


def _unknown(given: pa.DataType, target: pa.DataType, path: str) -> Iterator[str]:
    """The paths of fields that are in a type and not in the known one."""
    if kinds.is_struct(given):
        for field in given:
            at = target.get_field_index(field.name)
            if at < 0:
                yield f"{path}{field.name}"
            else:
                yield from _unknown(field.type, target.field(at).type, f"{path}{field.name}.")
    elif kinds.is_list(given):
        yield from _unknown(given.value_type, target.value_type, path)
    elif kinds.is_map(given):
        yield from _unknown(given.item_type, target.item_type, path)


def fitted(columns: pa.StructArray, wanted: pa.StructType, defaults: Mapping[FieldPath, Any]) -> pa.StructArray:
    """The columns with exactly these fields, in this order; null rows stay null.

    What `columns` lacks has its default, null without one. Types differ as `why_unreadable` lets them. Raises
    `pa.ArrowInvalid` where bytes that are to be text are no UTF-8.
    """
    if columns.type.equals(wanted):
        return columns
    made = [
        pa.nulls(len(columns), field.type)
        if (at := columns.type.get_field_index(field.name)) < 0
        else _as(columns.field(at), field.type)
        for field in wanted
    ]
    found = pa.StructArray.from_arrays(made, fields=list(wanted), mask=columns.is_null())
    return with_lacking(found, columns.type, defaults)


def _as(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.equals(wanted):
        return array
    if kinds.is_struct(wanted):
        return fitted(array, wanted, {})
    if kinds.is_list(wanted):
        return _of_children(array, wanted, _as(array.values, wanted.value_type))
    if kinds.is_map(wanted):
        fields = [wanted.key_field, wanted.item_field]
        entries = pa.StructArray.from_arrays([array.keys, _as(array.items, wanted.item_type)], fields=fields)
        return _of_children(array, wanted, entries)
    return pc.cast(array, wanted, safe=kinds.is_binary(array.type) or kinds.is_decimal(wanted))


def _of_children(array: pa.Array, kind: pa.DataType, child: pa.Array) -> pa.Array:
    """A list or a map with the rows of `array`, and other values in them."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], offset=array.offset, children=[child])
