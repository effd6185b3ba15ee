"""Payloads of Avro to columns: each field is read for all payloads at once, each payload with its own cursor."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tidelog.schemas.avro.columns import KEY, Column, leaf_column, least_bytes
from tidelog.schemas.avro.leaves import LEAVES, read_leaf
from tidelog.schemas.avro.model import AvroType
from tidelog.schemas.avro.payload_bytes import Mask, PayloadBytes
from tidelog.schemas.avro.payload_reader import BadPayloadError, PayloadReader
from tidelog.schemas.base.framing import Bytes, Places, bounds
from tidelog.schemas.base.value_schemas import Decoded

# Fewer payloads are read one by one where items or levels follow each other: a round costs more than they do.
FEW: Final = 96
_FREE_ROUNDS: Final = 4
# Batches of fewer payloads and fewer bytes are read one by one as a whole.
FEW_ROWS: Final = 48
FEW_BYTES: Final = 8192
_MAX_DEPTH: Final = 60

# What is read at once: one more batch costs a millisecond, and joining the batches more than that.
_BATCH_ROWS: Final = 1 << 17
_BATCH_BYTES: Final = 1 << 24

_Read = Callable[[Places, Places, Places], tuple[list[pa.Array], Places]]


def decode(column: Column, read: PayloadReader, payloads: pa.BinaryArray) -> Decoded:
    """The columns of payloads; null rows where a payload is null or is not of the schema.

    `read`: what reads one payload of the same schema.
    """
    kind = pa.struct([]) if column.type is None else column.type
    starts, ends, data = bounds(payloads)
    if len(payloads) < FEW_ROWS and int((ends - starts).sum()) < FEW_BYTES:
        rows, ok = _one_by_one(read, payloads.to_pylist())
        return Decoded(pa.array(rows, kind), ok)
    present = np.arange(len(payloads))
    if payloads.null_count:
        present = np.flatnonzero(payloads.is_valid().to_numpy(zero_copy_only=False))
    places = np.full(len(payloads), -1)  # of each row in `arrays`
    arrays: list[pa.Array] = []
    count = 0
    for batch in _batches(present, starts, ends):
        columns, good, uneven = _read_batch(column, starts[batch], ends[batch], data)
        places[batch[good]] = count + good
        arrays.append(columns)
        count += len(columns)
        if len(uneven):
            single = batch[uneven]
            rows, ok = _one_by_one(read, [data[starts[row] : ends[row]].tobytes() for row in single])
            places[single[ok]] = count + np.flatnonzero(ok)
            arrays.append(pa.array(rows, kind))
            count += len(rows)
    columns = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays or [pa.array([], kind)])
    if not np.array_equal(places, np.arange(len(columns))):
        columns = columns.take(pa.array(places, mask=places < 0))
    return Decoded(columns, places >= 0)


def _one_by_one(read: PayloadReader, payloads: list[bytes | None]) -> tuple[list[Any], Mask]:
    ok = np.zeros(len(payloads), np.bool_)
    rows: list[Any] = []
    for number, payload in enumerate(payloads):
        row = None
        if payload is not None:
            try:
                row = read(payload)
                ok[number] = True
            except BadPayloadError:
                pass
        rows.append(row)
    return rows, ok


def _batches(present: Places, starts: Places, ends: Places) -> Iterator[Places]:
    """Rows in runs that are read at once."""
    if len(present) == 0:
        return
    total = int(ends[present[-1]] - starts[present[0]])
    rows = max(1, min(_BATCH_ROWS, len(present) * _BATCH_BYTES // max(1, total)))
    for first in range(0, len(present), rows):
        yield present[first : first + rows]


def _read_batch(column: Column, starts: Places, ends: Places, data: Bytes) -> tuple[pa.Array, Places, Places]:
    """The columns of payloads; which of them are read whole, and which are to be read one by one."""
    source = PayloadBytes(data[starts[0] : ends[-1]])
    shift = source.first - starts[0]
    at, end, rows = starts + shift, ends + shift, np.arange(len(starts))
    reader = ColumnReader(source)
    if column.type is None:
        at = reader.skip(column.node, at, end, rows, 0)
        columns = pa.nulls(len(at), pa.struct([]))
    else:
        columns, at = reader.value(column, at, end, rows)
    uneven = np.unique(np.concatenate(reader.uneven)) if reader.uneven else np.zeros(0, np.int64)
    return columns, np.flatnonzero(at == end), uneven


class ColumnReader:
    """Reads the columns of a batch. `uneven`: numbers of the payloads that are to be read one by one instead.

    Places, ends and rows go together: where the cursor of a payload is, where the payload ends, which one it is.
    """

    def __init__(self, source: PayloadBytes) -> None:
        self._source = source
        self.uneven: list[Places] = []

    def value(self, column: Column, at: Places, end: Places, rows: Places) -> tuple[pa.Array, Places]:
        """The values of a type at places, and the places behind them."""
        kind = column.node.kind
        if kind in LEAVES:
            return read_leaf(self._source, column, at, end, None)
        if kind == "record":
            return self._record(column, at, end, rows)
        if kind == "union":
            return self._union(column, at, end, rows)
        return self._many(column, at, end, rows)

    def _record(self, column: Column, at: Places, end: Places, rows: Places) -> tuple[pa.Array, Places]:
        arrays = []
        for field, inner in zip(column.node.fields, column.inner, strict=True):
            if inner.type is None:
                at = self.skip(field.type, at, end, rows, 0)
            else:
                values, at = self.value(inner, at, end, rows)
                arrays.append(values)
        return pa.StructArray.from_arrays(arrays, fields=list(column.type or ())), at

    def _union(self, column: Column, at: Places, end: Places, rows: Places) -> tuple[pa.Array, Places]:
        null, at = self._nulls(column, at)
        inner = column.inner[0]
        if not np.count_nonzero(null):
            return self.value(inner, at, end, rows)
        if inner.node.kind in LEAVES:
            return read_leaf(self._source, inner, at, end, null)
        live = np.flatnonzero(~null)
        if len(live) == 0:
            return pa.nulls(len(at), inner.type), at
        values, at[live] = self.value(inner, at[live], end[live], rows[live])
        return values.take(pa.array(np.cumsum(~null) - 1, mask=null)), at

    def _nulls(self, column: Column, at: Places) -> tuple[Mask, Places]:
        """Where a union has null, or no branch of its own, and the places behind its index."""
        value = 1 if column.null_at == 0 else 0
        first = self._source.bytes[at]
        null: Mask = first != 2 * value
        if column.null_at < 0 or np.count_nonzero(null & (first != 2 * column.null_at)):
            index, at = self._index(at, len(column.node.inner))
            return index != value, at
        return null, self._source.within(at + 1)

    def _index(self, at: Places, count: int) -> tuple[Places, Places]:
        """The branches of a union: -1 for what is none, at `nowhere` then."""
        numbers, at = self._source.numbers(at)
        index = numbers.astype(np.int64, copy=False)
        wrong = (index < 0) | (index >= count)
        if np.count_nonzero(wrong):
            index[wrong], at[wrong] = -1, self._source.nowhere
        return index, at

    def _many(self, column: Column, at: Places, end: Places, rows: Places) -> tuple[pa.Array, Places]:
        inner = column.inner[0]

        def items(at: Places, end: Places, rows: Places) -> tuple[list[pa.Array], Places]:
            values, at = self.value(inner, at, end, rows)
            return [values], at

        def entries(at: Places, end: Places, rows: Places) -> tuple[list[pa.Array], Places]:
            keys, at = read_leaf(self._source, KEY, at, end, None)
            values, at = self.value(inner, at, end, rows)
            return [keys, values], at

        if column.node.kind == "array":
            blocks = _Blocks(self, at, end, rows, items, inner.node, least_bytes(inner.node))
            offsets, arrays = blocks.read([inner.type])
            return pa.ListArray.from_arrays(offsets, arrays[0], type=column.type), blocks.at
        blocks = _Blocks(self, at, end, rows, entries, None, 1)
        offsets, arrays = blocks.read([KEY.type, inner.type])
        return pa.MapArray.from_arrays(offsets, arrays[0], arrays[1], type=column.type), blocks.at

    def skip(self, node: AvroType, at: Places, end: Places, rows: Places, depth: int) -> Places:
        """The places behind values that become no columns; they are checked all the same."""
        if node.kind == "null" or bool((at >= self._source.nowhere).all()):
            return at
        if node.kind in LEAVES:
            return read_leaf(self._source, leaf_column(node), at, end, None)[1]
        if depth > _MAX_DEPTH or (depth > _FREE_ROUNDS and len(at) < FEW):
            return self.give_up(at, rows)
        if node.kind == "record":
            for field in node.fields:
                at = self.skip(field.type, at, end, rows, depth + 1)
            return at
        if node.kind == "union":
            index, at = self._index(at, len(node.inner))
            for number in np.unique(index[index >= 0]):
                live = np.flatnonzero(index == number)
                at[live] = self.skip(node.inner[number], at[live], end[live], rows[live], depth + 1)
            return at

        def item(at: Places, end: Places, rows: Places) -> tuple[list[pa.Array], Places]:
            if node.kind == "map":
                _, at = read_leaf(self._source, KEY, at, end, None)
            return [], self.skip(node.inner[0], at, end, rows, depth + 1)

        blocks = _Blocks(self, at, end, rows, item, None, 1 if node.kind == "map" else least_bytes(node.inner[0]))
        blocks.read([])
        return blocks.at

    def give_up(self, at: Places, rows: Places) -> Places:
        """Leave payloads to be read one by one."""
        self.uneven.append(rows)
        return np.full_like(at, self._source.nowhere)

    @property
    def source(self) -> PayloadBytes:
        """The bytes that are read."""
        return self._source


class _Blocks:
    """The blocks of arrays or maps, one array for each row. `at`: the cursors, behind the arrays after `read`.

    `read`: reads one item at each of some places. `even`: the items' type if all items of a block can be found without
    reading one after the other. `least`: the fewest bytes of an item.
    """

    def __init__(
        self,
        reader: ColumnReader,
        at: Places,
        end: Places,
        rows: Places,
        read: _Read,
        even: AvroType | None,
        least: int,
    ) -> None:
        self._reader, self._source = reader, reader.source
        self.at, self._end, self._rows = at.copy(), end, rows
        self._item, self._even, self._least = read, even, least
        self._found: list[list[pa.Array]] = []
        self._owners: list[Places] = []

    def read(self, kinds: list[pa.DataType]) -> tuple[pa.Array, list[pa.Array]]:
        """The offsets of each row's items, and the items by what `read` gives of each."""
        live = np.arange(len(self.at))
        for number in range(1 << 62):
            if len(live) and number > _FREE_ROUNDS and len(live) < FEW:
                self.at[live] = self._reader.give_up(self.at[live], self._rows[live])
                break
            live = self._block(live)
            if len(live) == 0:
                break
        owners = np.concatenate([np.zeros(0, np.int64), *self._owners])
        offsets = np.zeros(len(self.at) + 1, np.int32)
        np.cumsum(np.bincount(owners, minlength=len(self.at)), out=offsets[1:])
        if not self._found:
            return pa.array(offsets), [pa.array([], kind) for kind in kinds]
        columns = [pa.concat_arrays(arrays) for arrays in zip(*self._found, strict=True)]
        if len(self._found) > 1:
            order = pa.array(np.argsort(owners, kind="stable"))
            columns = [one.take(order) for one in columns]
        return pa.array(offsets), columns

    def _block(self, live: Places) -> Places:
        """Read the next block of rows; the rows that had one."""
        nowhere = self._source.nowhere
        numbers, at = self._source.numbers(self.at[live])
        count = numbers.astype(np.int64, copy=False)
        sized = count < 0
        size = np.zeros(0, np.int64)
        if np.count_nonzero(sized):
            size, after = self._source.numbers(at)
            at, count = np.where(sized, after, at), np.where(sized, -count, count)
        end = self._end[live]
        wrong = (count < 0) | (at > end)
        if self._least:
            wrong |= count > (end - at) // self._least
        if np.count_nonzero(wrong):
            at[wrong], count[wrong] = nowhere, 0
        self.at[live] = at
        some = count > 0
        open_, count = live[some], count[some]
        if len(open_) == 0:
            return open_
        before = at[some]
        if self._least:
            self._read_items(open_, count)
        if len(size):
            short = sized[some] & (self.at[open_] - before != size[some])
            self.at[open_[short]] = nowhere
        return open_[self.at[open_] < nowhere]

    def _read_items(self, live: Places, count: Places) -> None:
        kind = self._even.kind if self._even is not None else ""
        if kind in ("int", "long", "enum"):
            self._read_numbers(live, count)
        elif kind in ("boolean", "float", "double", "fixed"):
            starts = np.repeat(self.at[live], count) + self._least * _within_runs(count)
            self._keep(live, count, starts, self.at[live] + self._least * count)
        else:
            self._read_rounds(live, count)

    def _read_numbers(self, live: Places, count: Places) -> None:
        """Items that are numbers: each ends at the next byte without its top bit."""
        last = self._source.last_bytes
        first = np.searchsorted(last, self.at[live])
        final = last[np.minimum(first + count - 1, len(last) - 1)]
        wrong = final >= self._end[live]
        if np.count_nonzero(wrong):
            self.at[live[wrong]] = self._source.nowhere
            live, count, first, final = live[~wrong], count[~wrong], first[~wrong], final[~wrong]
        within = _within_runs(count)
        starts = last[np.repeat(first, count) + within - 1] + 1
        heads = within == 0
        starts[heads] = self.at[live]
        self._keep(live, count, starts, final + 1)

    def _keep(self, live: Places, count: Places, starts: Places, after: Places) -> None:
        """Read all items of blocks at once."""
        owners = np.repeat(live, count)
        values, places = self._item(starts, self._end[owners], self._rows[owners])
        self.at[live] = after
        self.at[owners[places >= self._source.nowhere]] = self._source.nowhere
        self._found.append(values)
        self._owners.append(owners)

    def _read_rounds(self, live: Places, count: Places) -> None:
        """Read the first item of all rows, then the second of those that have it, and so on."""
        number = 0
        while len(live):
            if len(live) < FEW:
                self.at[live] = self._reader.give_up(self.at[live], self._rows[live])
                return
            values, at = self._item(self.at[live], self._end[live], self._rows[live])
            self.at[live] = at
            if values:
                self._found.append(values)
                self._owners.append(live)
            number += 1
            on = (count > number) & (at <= self._end[live])
            live, count = live[on], count[on]


def _within_runs(count: Places) -> Places:
    """0, 1, … for each run of some length, one behind the other."""
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) - np.repeat(before, count)
