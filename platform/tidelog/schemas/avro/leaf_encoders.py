"""Values of Avro's types without inner ones, written at many places at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.schemas.avro.columns import Column
from tidelog.schemas.avro.payload_bytes import Mask, Words, zigzag
from tidelog.schemas.avro.payload_output import PayloadOutput, bytes_of, values_of
from tidelog.schemas.base.errors import EncodingError
from tidelog.schemas.base.framing import Places

_MICROS: Final = 1000  # in a millisecond
_LONGEST_NUMBER: Final = 10
_WIDE: Final = 16  # bytes of a decimal128


@dataclass(frozen=True, slots=True)
class ValueWriter:
    """Values to write. `room`: bytes that they take at most, of each or of all; `write`: (out, at) -> places behind."""

    room: "Places | np.int64 | int"
    write: Callable[[PayloadOutput, Places], Places]


def refuse(rows: Places, wrong: Mask, path: str, why: str) -> None:
    """Raise `EncodingError` with the first row where something is wrong, if any."""
    if wrong.any():
        raise EncodingError(f"Row {rows[int(np.argmax(wrong))]}: the field '{path}' {why}.")


def number_part(values: Places, null: Mask | None = None) -> ValueWriter:
    """Whole numbers; nothing where `null`."""
    words = zigzag(values)
    if null is None:
        return ValueWriter(_LONGEST_NUMBER, lambda out, at: out.numbers(at, words))
    words = np.where(null, np.uint64(0), words)
    return ValueWriter(_LONGEST_NUMBER, lambda out, at: np.where(null, at, out.numbers(at, words)))


def _number(column: Column, values: pa.Array, rows: Places, null: Mask | None, path: str) -> ValueWriter:
    kind = np.int32 if column.node.kind == "int" else np.int64
    numbers = values_of(values, kind).astype(np.int64)
    if column.logical == "timestamp-millis":
        numbers, rest = np.divmod(numbers, _MICROS)
        wrong = rest != 0 if null is None else (rest != 0) & ~null
        refuse(rows, wrong, path, "has microseconds, and its schema milliseconds")
    return number_part(numbers, null)


def _stay(width: int, null: Mask | None, write: Callable[[PayloadOutput, Places], None]) -> ValueWriter:
    step = width if null is None else np.where(null, 0, width)

    def written(out: PayloadOutput, at: Places) -> Places:
        write(out, at)
        return at + step

    return ValueWriter(width, written)


def _boolean(_: Column, values: pa.Array, __: Places, null: Mask | None, ___: str) -> ValueWriter:
    bits = values_of(pc.cast(values, pa.uint8()), np.uint8)

    def write(out: PayloadOutput, at: Places) -> None:
        out.bytes[at] = bits

    return _stay(1, null, write)


def _floating(column: Column, values: pa.Array, _: Places, null: Mask | None, __: str) -> ValueWriter:
    wide = column.node.kind == "double"
    words = values_of(values, np.uint64 if wide else np.uint32)

    def write(out: PayloadOutput, at: Places) -> None:
        out.words[at] = words

    return _stay(8 if wide else 4, null, write)


def _enum(column: Column, values: pa.Array, rows: Places, null: Mask | None, path: str) -> ValueWriter:
    index = pc.index_in(values, value_set=pa.array(column.node.symbols, pa.string()))
    unknown = ~index.is_valid().to_numpy(zero_copy_only=False)
    if null is not None:
        unknown &= ~null
    refuse(rows, unknown, path, f"is none of the symbols {', '.join(column.node.symbols)}")
    return number_part(values_of(index.fill_null(0), np.int32).astype(np.int64), null)


def _binary(column: Column, values: pa.Array, rows: Places, null: Mask | None, path: str) -> ValueWriter:
    if column.logical == "decimal":
        return _decimal(column, values, rows, null, path)
    data, starts, sizes = bytes_of(values, null)
    if column.node.kind == "fixed":
        wrong = sizes != column.node.size if null is None else (sizes != column.node.size) & ~null
        refuse(rows, wrong, path, f"does not have the {column.node.size} bytes of its schema")
        return ValueWriter(sizes, lambda out, at: out.copy(at, data, starts, sizes))
    count = number_part(sizes, null)
    return ValueWriter(count.room + sizes, lambda out, at: out.copy(count.write(out, at), data, starts, sizes))


def _decimal(column: Column, values: pa.Array, rows: Places, null: Mask | None, path: str) -> ValueWriter:
    buffer = values.buffers()[1]
    halves = np.zeros((len(values), 2), np.uint64)
    if buffer is not None and len(values):
        halves = np.frombuffer(buffer, np.uint64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = halves[:, 0], halves[:, 1].view(np.int64)
    least = _least_bytes(high, low)
    fixed = column.node.kind == "fixed"
    if fixed:
        wrong = least > column.node.size if null is None else (least > column.node.size) & ~null
        refuse(rows, wrong, path, f"does not fit the {column.node.size} bytes of its schema")
        least = np.full(len(values), min(_WIDE, column.node.size))
    sizes = least if null is None else np.where(null, 0, least)
    count = number_part(sizes, null)
    signs = max(0, column.node.size - _WIDE) if fixed else 0
    first, second = _big_endian(high, low, least)

    def write(out: PayloadOutput, at: Places) -> Places:
        if not fixed:
            at = count.write(out, at)
        for number in range(signs):
            out.bytes[at + number] = np.where(high < 0, 0xFF, 0)
        at = at + (signs if null is None else np.where(null, 0, signs))
        out.words[at] = first
        out.words[at + 8] = second
        return at + sizes

    return ValueWriter(_LONGEST_NUMBER + _WIDE + signs, write)


def _least_bytes(high: npt.NDArray[np.int64], low: Words) -> Places:
    """The fewest bytes of numbers in two's complement."""
    sign = high >> 63
    top, rest = (high ^ sign).view(np.uint64), low ^ sign.view(np.uint64)
    size = np.ones(len(high), np.int64)
    for count in range(1, 8 + 1):
        size += (top > 0) | (rest >= np.uint64(1 << (8 * count - 1)))
    for count in range(9, _WIDE):
        size += top >= np.uint64(1 << (8 * count - 65))
    return size


def _big_endian(high: npt.NDArray[np.int64], low: Words, sizes: Places) -> tuple[Words, Words]:
    """The last `sizes` bytes of numbers, the first of them first, as two words to write."""
    top = high.view(np.uint64)
    bits = (8 * sizes).astype(np.uint64)
    few = sizes <= 8
    narrow = low << np.where(few, np.uint64(64) - np.minimum(bits, np.uint64(64)), np.uint64(0))
    by = np.where(few, np.uint64(0), np.uint64(128) - bits)
    wide = (top << by) | np.where(by > 0, low >> np.minimum(np.uint64(64) - by, np.uint64(63)), np.uint64(0))
    return np.where(few, narrow, wide).byteswap(), (low << by).byteswap()


_Encoder = Callable[[Column, pa.Array, Places, "Mask | None", str], ValueWriter]
ENCODERS: Final[Mapping[str, _Encoder]] = {
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _floating,
    "double": _floating,
    "bytes": _binary,
    "fixed": _binary,
    "string": _binary,
    "enum": _enum,
}
