"""Columns to payloads of Avro: each field is written for all rows at once."""

from typing import Final

import numpy as np
import pyarrow as pa

from tidelog.schemas.avro.columns import KEY, Column
from tidelog.schemas.avro.leaf_encoders import ENCODERS, ValueWriter, number_part, refuse
from tidelog.schemas.avro.model import AvroType
from tidelog.schemas.avro.payload_bytes import Mask
from tidelog.schemas.avro.payload_output import SPILL, PayloadOutput
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.base.framing import Places

BATCH_ROWS: Final = 16384
_BATCH_BYTES: Final = 1 << 22


def encode(column: Column, columns: pa.StructArray) -> pa.BinaryArray:
    """The payloads of rows, null for null rows. Raises `EncodingError`, naming a row that can't be written."""
    present = np.arange(len(columns))
    live = columns
    if columns.null_count:
        present = np.flatnonzero(columns.is_valid().to_numpy(zero_copy_only=False))
        live = columns.take(pa.array(present))
    parts = [pa.array([], pa.binary())]
    size = max(1, min(BATCH_ROWS, len(live) * _BATCH_BYTES // max(1, live.nbytes)))
    for first in range(0, len(live), size):
        part = _prepare(column, live.slice(first, size), present[first : first + size], "")
        parts.append(_written(part, len(present[first : first + size])))
    payloads = pa.concat_arrays(parts)
    if not columns.null_count:
        return payloads
    places = np.full(len(columns), -1)
    places[present] = np.arange(len(present))
    return payloads.take(pa.array(places, mask=places < 0))


def _written(part: ValueWriter, count: int) -> pa.BinaryArray:
    room = np.broadcast_to(np.asarray(part.room, np.int64), (count,)) + SPILL
    edges = np.zeros(count + 1, np.int64)
    np.cumsum(room, out=edges[1:])
    if edges[-1] >= 1 << 31:
        raise EncodingError("The rows make more than 2 GiB of payloads: encode fewer at once.")
    out = PayloadOutput(int(edges[-1]))
    return out.payloads(edges[:-1], part.write(out, edges[:-1]))


def _prepare(column: Column, values: pa.Array, rows: Places, path: str) -> ValueWriter:
    """How values are written. `rows`: the number of the row that each value is in."""
    kind = column.node.kind
    if kind == "union":
        return _union(column, values, rows, path)
    if column.type is None:
        return _absent(column.node, rows, path)
    if values.null_count:
        refuse(rows, ~_valid(values), path, "is null, which its schema does not allow")
    if kind in ENCODERS:
        return ENCODERS[kind](column, _cast(column, values, rows, path), rows, None, path)
    if kind == "record":
        return _record(column, values, rows, path)
    return _many(column, values, rows, path)


def _valid(values: pa.Array) -> Mask:
    valid: Mask = values.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _cast(column: Column, values: pa.Array, rows: Places, path: str) -> pa.Array:
    if values.type == column.type:
        return values
    try:
        return values.cast(column.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        row = rows[_first_wrong(values, column.type)]
        raise EncodingError(
            f"Row {row}: the field '{path}' is of the type {values.type}, and its schema needs {column.type}: {error}"
        ) from error


def _first_wrong(values: pa.Array, kind: pa.DataType) -> int:
    """The first value that can't be cast."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            values.slice(low, middle - low).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
        else:
            low = middle
    return low


def _absent(node: AvroType, rows: Places, path: str) -> ValueWriter:
    """A field that is no column: null where it may be."""
    if node.kind == "null":
        return ValueWriter(0, lambda _, at: at)
    branches = [branch.kind for branch in node.inner] if node.kind == "union" else []
    if "null" not in branches:
        refuse(rows, np.ones(len(rows), np.bool_), path, "is no column, so that its bytes are not known")
    return number_part(np.full(len(rows), branches.index("null") if branches else 0))


def _union(column: Column, values: pa.Array, rows: Places, path: str) -> ValueWriter:
    if column.type is None:
        return _absent(column.node, rows, path)
    inner = column.inner[0]
    branch = 2 if column.null_at == 0 else 0  # zigzag
    if not values.null_count or column.null_at < 0:
        part = _prepare(inner, values, rows, path)
        return ValueWriter(part.room + 1, lambda out, at: part.write(out, out.byte(at, branch)))
    null = ~_valid(values)
    branches = np.where(null, 2 * column.null_at, branch).astype(np.uint8)
    if inner.node.kind in ENCODERS:
        part = ENCODERS[inner.node.kind](inner, _cast(inner, values, rows, path), rows, null, path)
        return ValueWriter(part.room + 1, lambda out, at: part.write(out, out.byte(at, branches)))
    live = np.flatnonzero(~null)
    some = _prepare(inner, values.take(pa.array(live)), rows[live], path)
    room = np.ones(len(values), np.int64)
    room[live] += some.room

    def write(out: PayloadOutput, at: Places) -> Places:
        at = out.byte(at, branches)
        at[live] = some.write(out, at[live])
        return at

    return ValueWriter(room, write)


def _record(column: Column, values: pa.Array, rows: Places, path: str) -> ValueWriter:
    if not pa.types.is_struct(values.type):
        raise EncodingError(f"The field '{path}' is of the type {values.type}, and its schema needs {column.type}.")
    names = {field.name: place for place, field in enumerate(values.type)}
    parts = []
    for field, inner in zip(column.node.fields, column.inner, strict=True):
        place = names.pop(field.name, None) if inner.type is not None else None
        given = pa.nulls(len(values), inner.type or pa.null()) if place is None else values.field(place)
        parts.append(_prepare(inner, given, rows, f"{path}.{field.name}" if path else field.name))
    for name, place in names.items():
        if values.field(place).null_count < len(values):
            here = f"{path}.{name}" if path else name
            refuse(rows, _valid(values.field(place)), here, "has a value, and the schema no such column")
    return _sequence(parts)


def _sequence(parts: list[ValueWriter]) -> ValueWriter:
    def write(out: PayloadOutput, at: Places) -> Places:
        for part in parts:
            at = part.write(out, at)
        return at

    return ValueWriter(sum((part.room for part in parts), np.int64(0)), write)


def _many(column: Column, values: pa.Array, rows: Places, path: str) -> ValueWriter:
    """An array or a map as one block: the number of items, the items, 0."""
    inner = column.inner[0]
    is_map = column.node.kind == "map"
    if not (pa.types.is_map(values.type) if is_map else pa.types.is_list(values.type)):
        raise EncodingError(f"The field '{path}' is of the type {values.type}, and its schema needs {column.type}.")
    offsets = np.zeros(len(values) + 1, np.int64)
    if len(values):
        offsets[:] = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    first, total = int(offsets[0]), int(offsets[-1] - offsets[0])
    count = np.diff(offsets)
    owners = np.repeat(rows, count)
    if is_map:
        key = _prepare(KEY, values.keys.slice(first, total), owners, f"{path}.key")
        value = _prepare(inner, values.items.slice(first, total), owners, f"{path}.value")
        items = _sequence([key, value])
    else:
        items = _prepare(inner, values.values.slice(first, total), owners, f"{path}.element")
    written = _written(items, total)
    edges = np.zeros(total + 1, np.int64)
    if total:
        edges[:] = np.frombuffer(written.buffers()[1], np.int32)[: total + 1]
    data = np.zeros(int(edges[-1]) + 8, np.uint8)
    if edges[-1]:
        data[:-8] = np.frombuffer(written.buffers()[2], np.uint8, int(edges[-1]))
    starts = edges[offsets[:-1] - first]
    sizes = edges[offsets[1:] - first] - starts
    counts = number_part(count, count == 0)

    def write(out: PayloadOutput, at: Places) -> Places:
        return out.byte(out.copy(counts.write(out, at), data, starts, sizes), 0)

    return ValueWriter(counts.room + sizes + 1, write)
