"""How a value says which schema it has, as Confluent's serializers write it.

A prefix: byte 0, the schema's id (4 bytes, big-endian), the payload. Or a header, `__value_schema_id`: byte 1, the
schema's guid (16 bytes); the value is the payload then. Behind either, a Protobuf value has its message indexes.
"""

import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

PREFIX: Final = struct.Struct(">BI")
PREFIX_BYTES: Final = PREFIX.size
HEADER: Final = "__value_schema_id"
# The magic byte before an id, and the one before a guid.
ID: Final = 0
GUID: Final = 1
GUID_BYTES: Final = 17
# Messages inside of messages, the outermost among them; more are no place of a type.
_MOST_INDEXES: Final = 64
# Pieces of 8 bytes or fewer on average are copied sooner byte by byte than piece by piece.
_SHORT: Final = 8
_MOST_EVENS: Final = 1 << 14
_TAKE: Final = pc.get_function("array_take")
_UNCHECKED: Final = pc.TakeOptions(boundscheck=False)

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


def id_of(value: bytes) -> int | None:
    """The id in a value's prefix (32 bits); None where it has none."""
    number: int | None = PREFIX.unpack_from(value)[1] if len(value) >= PREFIX_BYTES and value[0] == ID else None
    return number


def split(values: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], pa.BinaryArray]:
    """The schema ids of n values, 0 where a value is null or has no prefix, and the payloads: without prefixes.

    Ids are 1 to 2^31 - 1; a value whose prefix names another one has no prefix.
    """
    ids, edges = _named(values)
    if not ids.any():
        return ids, values
    starts, ends, data = edges
    return ids, between(values, starts + np.where(ids > 0, PREFIX_BYTES, 0), ends, data)


def ids_of(values: pa.BinaryArray) -> npt.NDArray[np.int32]:
    """The schema ids alone, as `split` gives them."""
    return _named(values)[0]


def _named(values: pa.BinaryArray) -> tuple[npt.NDArray[np.int32], tuple[Any, Any, Any]]:
    starts, ends, data = bounds(values)
    ids = np.zeros(len(values), np.int32)
    long_enough = np.flatnonzero(ends - starts >= PREFIX_BYTES)
    at = starts[long_enough]
    numbers = np.zeros(len(at), np.int64)
    for place in range(1, PREFIX_BYTES):
        numbers = numbers << 8 | data[at + place]
    numbers[(data[at] != ID) | (numbers >= 1 << 31)] = 0
    ids[long_enough] = numbers
    return ids, (starts, ends, data)


def framed(payloads: pa.BinaryArray, ids: npt.NDArray[np.integer]) -> pa.BinaryArray:
    """The values of payloads: each behind its prefix where its id is 1 or more, as it is where the id is 0."""
    count = len(payloads)
    numbers = np.asarray(ids, np.int64)
    heads = np.zeros((count, PREFIX_BYTES), np.uint8)
    heads[:, 1:] = numbers.astype(">u4").view(np.uint8).reshape(count, 4)
    written = numbers > 0
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.where(written, PREFIX_BYTES, 0), out=offsets[1:])
    prefixes = pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(heads[written].tobytes())]
    )
    return pc.binary_join_element_wise(prefixes, payloads, pa.scalar(b"", pa.binary()))


def bounds(
    values: pa.BinaryArray,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each of n values begins and ends in the bytes behind them, and these bytes; a null value is empty."""
    count = len(values)
    _, offsets_buffer, data = values.buffers()
    if count == 0 or offsets_buffer is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    offsets = np.frombuffer(offsets_buffer, kind)[values.offset : values.offset + count + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    if values.null_count:
        ends = np.where(values.is_valid().to_numpy(zero_copy_only=False), ends, starts)
    return starts, ends, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def between(values: pa.BinaryArray, starts: Places, ends: Places, data: Bytes) -> pa.BinaryArray:
    """Values cut to what lies from `starts` to `ends` of their bytes; null where they are. Positions only grow."""
    pieces = cut(data, pa.binary(), starts, ends)
    if not values.null_count:
        return pieces
    return pc.if_else(values.is_valid(), pieces, pa.scalar(None, pa.binary()))


def cut(data: Bytes, kind: pa.DataType, starts: Places, ends: Places) -> pa.Array:
    """What lies from `starts` to `ends`, as an array of `kind` (binary or string, unchecked). Places only grow."""
    count = len(starts)
    sizes = ends - starts
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] <= _SHORT * count:
        index = np.repeat(starts - offsets[:-1], sizes)
        index += np.arange(len(index))
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(data[index])])
    edges = np.empty(2 * count + 1, np.int32)
    edges[0:-1:2], edges[1::2] = starts, ends
    edges[-1] = edges[-2]
    whole = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(data)])
    even = _evens().slice(0, count) if count <= _MOST_EVENS else pa.array(np.arange(0, 2 * count, 2))
    return _TAKE.call([whole, even], _UNCHECKED)


@cache
def _evens() -> pa.Array:
    return pa.array(np.arange(0, 2 * _MOST_EVENS, 2))


class NamedGuid(NamedTuple):
    """A schema that a header names: its guid (16 bytes), and what follows it, Protobuf's message indexes."""

    guid: bytes
    indexes: bytes


def guids_of(headers: pa.Array) -> dict[int, NamedGuid]:
    """{row: what its header names} of the records whose headers name a schema; the last such header counts."""
    if headers.null_count == len(headers):
        return {}
    flat = headers.flatten()
    named = pc.equal(pc.struct_field(flat, "key"), HEADER)
    if not pc.any(named).as_py():
        return {}
    rows = pc.list_parent_indices(headers).filter(named).to_pylist()
    given = pc.struct_field(flat, "value").filter(named).to_pylist()
    last = dict(zip(rows, given, strict=True))
    return {row: found for row, one in last.items() if (found := named_guid(one)) is not None}


def named_guid(header: bytes | None) -> NamedGuid | None:
    """What a header's value names; None for one that names no schema."""
    if not header or len(header) < GUID_BYTES or header[0] != GUID:
        return None
    return NamedGuid(header[1:GUID_BYTES], header[GUID_BYTES:])


# --- message indexes of Protobuf --------------------------------------------------------------------------------


def encoded_indexes(place: Sequence[int]) -> bytes:
    """A type's place in Confluent's form: how many numbers and the numbers, as zigzag varints; 0 for the first type."""
    return b"\0" if [*place] == [0] else b"".join(_varint(2 * number) for number in (len(place), *place))


def read_indexes(payload: bytes, at: int = 0) -> tuple[tuple[int, ...], int]:
    """The message indexes that a payload has at a place, and where the message begins behind them; (), 0 for none.

    They are the message's place in its file, or in each message that it is inside of, outermost first: how many and
    the numbers, as zigzag varints; one 0 stands for the first message.
    """
    if payload[at : at + 1] == b"\0":
        return (0,), at + 1
    count, at = _zigzag(payload, at)
    if not 0 < count <= _MOST_INDEXES:
        return (), 0
    indexes = []
    for _ in range(count):
        number, at = _zigzag(payload, at)
        if number < 0:
            return (), 0
        indexes.append(number)
    return tuple(indexes), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """The number that a varint of at most 35 bits is, and where it ends; -1 where there is none."""
    number = shift = 0
    while 0 <= at < len(data) and shift < 35:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at
    return -1, -1


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)
