"""How a value says which schema it has, as Confluent's serializers write it.

A prefix: byte 0, the schema's id (4 bytes, big-endian), the payload. Or a header, `__value_schema_id`: byte 1, the
schema's guid (16 bytes); the value is the payload then.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

PREFIX_BYTES: Final = 5
HEADER: Final = "__value_schema_id"
_GUID: Final = 1
_GUID_BYTES: Final = 17


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
    found = np.zeros(len(at), np.int64)
    for place in range(1, PREFIX_BYTES):
        found = found << 8 | data[at + place]
    found[(data[at] != 0) | (found >= 1 << 31)] = 0
    ids[long_enough] = found
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


def between(
    values: pa.BinaryArray,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
) -> pa.BinaryArray:
    """Values cut to what lies from `starts` to `ends` of their bytes; null where they are. Positions only grow."""
    edges = np.empty(2 * len(starts) + 1, np.int32)
    edges[0:-1:2], edges[1::2] = starts, ends
    edges[-1] = edges[-2] if len(starts) else 0
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(starts), [None, pa.py_buffer(edges), pa.py_buffer(data)])
    cut = pieces.take(pa.array(np.arange(0, 2 * len(starts), 2)))
    if not values.null_count:
        return cut
    return pc.if_else(values.is_valid(), cut, pa.scalar(None, pa.binary()))


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
    return {
        row: NamedGuid(one[1:_GUID_BYTES], one[_GUID_BYTES:])
        for row, one in dict(zip(rows, given, strict=True)).items()
        if one and len(one) >= _GUID_BYTES and one[0] == _GUID
    }
