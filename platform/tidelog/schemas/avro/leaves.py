"""Values of Avro's types without inner ones, read at many places at once."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.schemas.avro.columns import Column
from tidelog.schemas.avro.payload_bytes import Mask, PayloadBytes, Words
from tidelog.schemas.base.framing import Places

_MICROS: Final = 1000  # in a millisecond
_MOST_MILLIS: Final = (1 << 63) // _MICROS - 1
_WIDE: Final = 16  # bytes of a decimal128


def read_leaf(
    source: PayloadBytes, column: Column, at: Places, end: Places, null: Mask | None
) -> tuple[pa.Array, Places]:
    """The values at places, and the places behind them, `nowhere` for what is no such value.

    `null`: where no value is, so that the place stays as it is.
    """
    return LEAVES[column.node.kind](source, column, at, end, null)


def validity(null: Mask | None) -> pa.Buffer | None:
    """Arrow's bitmap of what is not null."""
    return None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))


def _array(kind: pa.DataType, values: npt.NDArray[np.generic], null: Mask | None) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [validity(null), pa.py_buffer(values)])


def _stay(at: Places, after: Places, null: Mask | None) -> Places:
    if null is not None:
        rows = np.flatnonzero(null)
        after[rows] = at[rows]
    return after


def _bad(source: PayloadBytes, after: Places, wrong: Mask, null: Mask | None) -> Places:
    if null is not None:
        wrong = wrong & ~null
    if np.count_nonzero(wrong):
        after[wrong] = source.nowhere
    return after


def _number(source: PayloadBytes, column: Column, at: Places, _: Places, null: Mask | None) -> tuple[pa.Array, Places]:
    values, after = source.numbers(at)
    after = _stay(at, after, null)
    if column.node.kind == "int":
        short = values.astype(np.int32)
        if values.itemsize > short.itemsize:
            after = _bad(source, after, values != short, null)
        return _array(column.type, short, null), after
    values = values.astype(np.int64, copy=False)
    if column.logical == "timestamp-millis":
        after = _bad(source, after, (values > _MOST_MILLIS) | (values < -_MOST_MILLIS), null)
        values = values * _MICROS
    return _array(column.type, values, null), after


def _boolean(source: PayloadBytes, column: Column, at: Places, _: Places, null: Mask | None) -> tuple[pa.Array, Places]:
    values = source.bytes[at]
    after = _bad(source, _stay(at, source.within(at + 1), null), values > 1, null)
    bits = pa.py_buffer(np.packbits(values == 1, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(values), [validity(null), bits]), after


def _floating(
    source: PayloadBytes, column: Column, at: Places, _: Places, null: Mask | None
) -> tuple[pa.Array, Places]:
    words = source.words[at]
    if column.node.kind == "double":
        return _array(column.type, words, null), _stay(at, source.within(at + 8), null)
    return _array(column.type, words.astype(np.uint32), null), _stay(at, source.within(at + 4), null)


def _enum(source: PayloadBytes, column: Column, at: Places, _: Places, null: Mask | None) -> tuple[pa.Array, Places]:
    values, after = source.numbers(at)
    wrong = (values < 0) | (values >= len(column.node.symbols))
    after = _bad(source, _stay(at, after, null), wrong, null)
    absent = wrong if null is None else wrong | null
    return pa.array(column.node.symbols, pa.string()).take(pa.array(values, mask=absent)), after


def _span(
    source: PayloadBytes, column: Column, at: Places, end: Places, null: Mask | None
) -> tuple[Places, Places, Places]:
    """Where the bytes of values begin, how many they are, and the places behind them."""
    if column.node.kind == "fixed":
        starts, sizes = at, np.full(len(at), column.node.size, np.int64)
    else:
        numbers, starts = source.numbers(at)
        sizes = numbers.astype(np.int64, copy=False)
    if null is not None:
        sizes, starts = np.where(null, 0, sizes), np.where(null, at, starts)
    wrong = (sizes < 0) | (sizes > end - starts)
    if not np.count_nonzero(wrong):
        return starts, sizes, starts + sizes
    sizes = np.where(wrong, 0, sizes)
    return np.minimum(starts, end), sizes, np.where(wrong, source.nowhere, starts + sizes)


def _binary(
    source: PayloadBytes, column: Column, at: Places, end: Places, null: Mask | None
) -> tuple[pa.Array, Places]:
    starts, sizes, after = _span(source, column, at, end, null)
    if column.logical == "decimal":
        return _decimal(source, column, starts, sizes, after, null)
    return _with_nulls(source.pieces(pa.binary(), starts, sizes), column.type, null), after


def _string(
    source: PayloadBytes, column: Column, at: Places, end: Places, null: Mask | None
) -> tuple[pa.Array, Places]:
    starts, sizes, after = _span(source, column, at, end, null)
    values = source.pieces(pa.string(), starts, sizes)
    try:
        if not _is_ascii(values):
            values.validate(full=True)
    except pa.ArrowInvalid:
        wrong = np.array([not _is_text(value) for value in values.cast(pa.binary()).to_pylist()])
        after[wrong] = source.nowhere
        values = source.pieces(pa.string(), starts, np.where(wrong, 0, sizes))
    return _with_nulls(values, column.type, null), after


def _is_ascii(values: pa.Array) -> bool:
    found = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    return len(found) == 0 or bool(found.max() < 0x80)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _with_nulls(values: pa.Array, kind: pa.DataType, null: Mask | None) -> pa.Array:
    if null is None:
        return values
    _, offsets, data = values.buffers()
    return pa.Array.from_buffers(kind, len(values), [validity(null), offsets, data])


def _decimal(
    source: PayloadBytes, column: Column, starts: Places, sizes: Places, after: Places, null: Mask | None
) -> tuple[pa.Array, Places]:
    """Big-endian numbers of any size: the last 16 bytes, and those before only repeat the sign."""
    behind = starts + sizes
    low = source.words[behind - 8].byteswap()
    high = source.words[behind - 16].byteswap()
    high, low = _signed(high, low, sizes)
    wrong = _beyond(high, low, column.precision)
    for row in np.flatnonzero(sizes > _WIDE):
        data = source.bytes[starts[row] : behind[row] - _WIDE]
        wrong[row] |= bool((data != (0xFF if high[row] < 0 else 0)).any())
    values = np.empty((len(starts), 2), np.uint64)
    values[:, 0], values[:, 1] = low, high.view(np.uint64)
    if np.count_nonzero(wrong):
        values[wrong] = 0
    buffers = [validity(null), pa.py_buffer(values)]
    return pa.Array.from_buffers(column.type, len(starts), buffers), _bad(source, after, wrong, null)


def _signed(high: Words, low: Words, sizes: Places) -> tuple[npt.NDArray[np.int64], Words]:
    """The two halves of numbers of which only the last `sizes` bytes count."""
    bits = np.clip(sizes, 0, _WIDE) * 8
    narrow = np.clip(64 - bits, 0, 63)
    short = low.view(np.int64) << narrow >> narrow
    short[bits == 0] = 0
    wide = np.clip(128 - bits, 0, 63)
    long = high.view(np.int64) << wide >> wide
    few = bits <= 64
    return np.where(few, short >> 63, long), np.where(few, short.view(np.uint64), low)


def _beyond(high: npt.NDArray[np.int64], low: Words, precision: int) -> Mask:
    """Where a number has more digits than `precision`."""
    most = 10**precision - 1
    top, rest = np.int64(most >> 64), np.uint64(most & (1 << 64) - 1)
    least_top, least_rest = np.int64(-most >> 64), np.uint64(-most & (1 << 64) - 1)
    over: Mask = (high > top) | ((high == top) & (low > rest))
    under: Mask = (high < least_top) | ((high == least_top) & (low < least_rest))
    return over | under


_Leaf = Callable[[PayloadBytes, Column, Places, Places, "Mask | None"], "tuple[pa.Array, Places]"]
LEAVES: Final[Mapping[str, _Leaf]] = {
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _floating,
    "double": _floating,
    "bytes": _binary,
    "fixed": _binary,
    "string": _string,
    "enum": _enum,
}
