"""Messages as columns: each is read by Protobuf's own parser, and written again for a reader of columns.

The parser judges, and what it writes is one form alone: known fields, each once, of one member of a oneof. The
reader of columns sees nothing else, least of all a stranger's bytes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError, EncodeError
from ptars import HandlerPool

from tidelog.schemas.base.cells import ListCells, cells_of
from tidelog.schemas.protobuf.columns import ProtoColumn, ProtoShape

Bools: TypeAlias = npt.NDArray[np.bool_]

_MICROS: Final = 1_000_000
_NANOS: Final = 1_000_000_000
# 0001-01-01 and 9999-12-31T23:59:59, the range of Protobuf's timestamps, in seconds.
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799
_INT64_MOST: Final = 2**63 - 1


class ProtoReader:
    """Reads messages of one type. `message`: its class; `derived`: that of its columns alone; both by upb.

    `once`: whether what `message` writes holds nothing but columns already, all of valid text.
    """

    def __init__(self, message: Any, derived: Any, column: ProtoColumn, *, once: bool, has_maps: bool) -> None:
        self._column = column
        self._rewrites = [_rewriter(one, has_maps) for one in ([message] if once else [message, derived])]
        self._derived = derived
        self._list_cells = _list_cells(column)
        self._handler = HandlerPool([derived.DESCRIPTOR.file]).get_for_message(derived.DESCRIPTOR)

    def columns(self, payloads: Sequence[bytes | None]) -> pa.StructArray:
        """The columns of messages; null rows for None, for what is no such message, and for values without a column.

        These are unsigned integers beyond 63 bits, timestamps outside of the years 1 to 9999, and lists of many
        empty elements, whose columns would take far more than their bytes.
        """
        bodies = payloads
        for rewrite in self._rewrites:
            bodies = _rewritten(rewrite, bodies)
        if self._list_cells is not None:
            bodies = [None if one is None or self._is_too_much(one) else one for one in bodies]
        absent = np.fromiter((one is None for one in bodies), np.bool_, len(bodies))
        found = self._handler.array_to_record_batch(pa.array([one or b"" for one in bodies], pa.binary()))
        columns, bad = _struct(found.to_struct_array(), self._column)
        mask = absent if bad is None else absent | bad
        if not mask.any():
            return columns
        return pa.StructArray.from_arrays(columns.flatten(), fields=[*self._column.type], mask=pa.array(mask))

    def _is_too_much(self, body: bytes) -> bool:
        cells, size = self._list_cells, len(body)
        if cells is None or not cells.may_be_too_much(size):
            return False
        return cells.is_too_much(size, self._derived.FromString(body), getattr)


def _list_cells(column: ProtoColumn) -> ListCells | None:
    """Where lists and maps grow within a message of the derived file."""
    if column.shape is ProtoShape.MESSAGE:
        found = {f"f{one.number}": _list_cells(one.column) for one in column.fields}
        fields = {name: one for name, one in found.items() if one is not None}
        return ListCells(fields) if fields else None
    if column.shape not in (ProtoShape.LIST, ProtoShape.MAP):
        return None
    inner = column.inner[-1]
    return ListCells({}, cells_of(inner.type), _list_cells(inner), is_map=column.shape is ProtoShape.MAP)


def _rewriter(message: Any, has_maps: bool) -> Callable[[Sequence[bytes | None]], list[bytes | None]]:
    """What makes of messages' bytes those that their known fields are written with; raises for what is no message."""
    read, forget, write = message.FromString, message.DiscardUnknownFields, message.SerializeToString

    def rewrite(payloads: Sequence[bytes | None]) -> list[bytes | None]:
        made: list[bytes | None] = []
        for payload in payloads:
            found = read(payload)
            forget(found)
            made.append(write(found, deterministic=True) if has_maps else write(found))
        return made

    return rewrite


def _rewritten(
    rewrite: Callable[[Sequence[bytes | None]], list[bytes | None]], payloads: Sequence[bytes | None]
) -> list[bytes | None]:
    """The bytes of messages' known fields; None for None and for what is no message."""
    try:
        return rewrite(payloads)
    except (DecodeError, EncodeError, TypeError):  # one of them, or a None
        pass
    made: list[bytes | None] = []
    for payload in payloads:
        try:
            made += [None] if payload is None else rewrite([payload])
        except (DecodeError, EncodeError):
            made.append(None)
    return made


# --- what the reader of columns gives ----------------------------------------------------------------------
# Each function gives an array of the column's type, and which of its elements have no value there (None: all have).


def _struct(array: pa.StructArray, column: ProtoColumn) -> tuple[pa.StructArray, Bools | None]:
    made, wrong = [], None
    for one in column.fields:  # the reader has them by their numbers
        inner, bad = _column(array.field(f"f{one.number}"), one.column)
        made.append(inner)
        wrong = _either(wrong, bad)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(made, fields=[*column.type], mask=mask), wrong


def _column(array: pa.Array, column: ProtoColumn) -> tuple[pa.Array, Bools | None]:
    shape = column.shape
    if shape is ProtoShape.MESSAGE:
        return _struct(array, column)
    if shape is ProtoShape.ENUM:
        return _names(array, column), None
    if shape is ProtoShape.TIMESTAMP:
        return _timestamps(array)
    if shape is ProtoShape.WRAPPER:
        inner, bad = _plain(array.field(0), column.inner[0])
        return (pc.if_else(array.is_valid(), inner, pa.scalar(None, inner.type)) if array.null_count else inner), bad
    if shape is ProtoShape.LIST:
        inner, bad = _column(array.values, column.inner[0])
        made = pa.ListArray.from_arrays(array.offsets, inner, type=column.type)
        return made, _of_parents(array.offsets, bad)
    if shape is ProtoShape.MAP:
        keys, _ = _plain(array.keys, column.inner[0])
        items, bad = _column(array.items, column.inner[1])
        made = pa.MapArray.from_arrays(array.offsets, keys.cast(pa.string()), items, type=column.type)
        return made, _of_parents(array.offsets, bad)
    return _plain(array, column)


def _plain(array: pa.Array, column: ProtoColumn) -> tuple[pa.Array, Bools | None]:
    if array.type != pa.uint64():
        return array.cast(column.type), None
    bad = pc.greater(array, pa.scalar(_INT64_MOST, pa.uint64())).fill_null(False).to_numpy(zero_copy_only=False)
    return array.cast(pa.int64(), safe=False), bad if bad.any() else None


def _names(array: pa.Array, column: ProtoColumn) -> pa.Array:
    """Numbers as an enum's names; an unknown one as its digits, which no name begins with."""
    found = array.dictionary_encode()
    names = [column.names.get(number, str(number)) for number in found.dictionary.to_pylist()]
    return pa.array(names, pa.string()).take(found.indices)


def _timestamps(array: pa.StructArray) -> tuple[pa.Array, Bools | None]:
    seconds = array.field(0).to_numpy(zero_copy_only=False)
    nanos = array.field(1).to_numpy(zero_copy_only=False)
    bad = (seconds < FIRST_SECOND) | (seconds > LAST_SECOND) | (nanos < 0) | (nanos >= _NANOS)
    micros = np.where(bad, 0, seconds) * _MICROS + nanos // 1_000
    made = pa.array(micros, mask=array.is_null().to_numpy(zero_copy_only=False)).cast(pa.timestamp("us", "UTC"))
    return made, bad if bad.any() else None


def _of_parents(offsets: pa.Array, bad: Bools | None) -> Bools | None:
    """Which lists hold an element without a value."""
    if bad is None:
        return None
    edges = offsets.to_numpy(zero_copy_only=False)
    before = np.concatenate(([0], np.cumsum(bad)))
    found: Bools = before[edges[1:]] > before[edges[:-1]]
    return found


def _either(one: Bools | None, other: Bools | None) -> Bools | None:
    return other if one is None else one if other is None else one | other
