"""Record batches read and written by native code, and by aiokafka's classes what that leaves to them."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tidelog.broker.records import native
from tidelog.broker.records.aiokafka_records import SHARED_BYTES, AiokafkaRecords, Decoding, ruled
from tidelog.broker.records.batches import CODEC_BITS, HEADER, NONE, header_of
from tidelog.broker.records.columns import COLUMNS, Columns, EncodedBatch, RecordRules
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import repacked
from tidelog.log.base.errors import InvalidRecordError
from tidelog.log.delta import schema

# Bytes that are read together.
_BYTES_TOGETHER: Final = 16 * 1024 * 1024
# Where a batch has the lower byte of its attributes.
_ATTRIBUTES_AT: Final = 22
_STORED: Final = (schema.RECORDS_WITH_HEADERS, schema.RECORDS)


class NativeRecords:
    """The port `RecordCodec` by native code, with the results and the refusals of `AiokafkaRecords`.

    `shared_bytes`: see there.
    """

    def __init__(self, shared_bytes: int = SHARED_BYTES) -> None:
        self._shared_bytes = shared_bytes
        self._others = AiokafkaRecords(shared_bytes)

    def columns(self, batches: Sequence[bytes | memoryview], rules: RecordRules | None = None) -> Columns:
        """See `RecordCodec.columns`."""
        decoding = _NativeDecoding(len(batches), self._shared_bytes)
        for index, batch in enumerate(batches):
            decoding.add(index, memoryview(batch))
        columns = decoding.done()
        return columns if rules is None or decoding.keeps(rules) else ruled(columns, rules)

    def noted(self, batches: Sequence[bytes | memoryview], rules: RecordRules, most_bytes: int) -> "NativeNotes | None":
        """See `RecordCodec.noted`."""
        decoding = _NativeDecoding(len(batches), self._shared_bytes)
        views = [memoryview(batch) for batch in batches]
        bodies: list[bytes | memoryview | None] = []
        for batch in views:
            body = None
            if batch[_ATTRIBUTES_AT] & CODEC_BITS:
                if not native.is_good(batch, most_bytes):
                    return None
                try:
                    body = decoding.unpacked(batch)
                except (CorruptBatchError, InvalidRecordError):
                    return None
            bodies.append(body)
        notes = native.read(views, bodies, most_bytes)
        if notes is None or min(notes.counts, default=0) <= 0:
            return None
        decoding.keep_facts(notes)
        return NativeNotes(notes) if decoding.keeps(rules) else None

    def batches(
        self, records: pa.RecordBatch, leader_epoch: int, codec: int, most_bytes: int
    ) -> Sequence[EncodedBatch]:
        """See `RecordCodec.batches`."""
        made = None
        if records.num_rows and records.schema in _STORED:
            made = native.batches(records._export_to_c, leader_epoch, most_bytes, codec == NONE)
        if made is None:
            return self._others.batches(records, leader_epoch, codec, most_bytes)
        return _packed(made, codec)

    def rows(self) -> "NativeRows":
        """See `RecordCodec.rows`."""
        return NativeRows()


class NativeNotes:
    """The port `BatchNotes`."""

    def __init__(self, notes: native.Notes) -> None:
        self._notes = notes
        self.counts: Sequence[int] = notes.counts
        self.records, self.timeless, self.keyless = notes.records, notes.timeless, notes.keyless
        self.earliest_ms, self.latest_ms = notes.earliest_ms, notes.latest_ms
        self.has_headers = notes.has_headers
        self.part = notes.part
        self.keys = notes.keys

    def table(self, first: int, end: int) -> pa.Table:
        """See `Notes.table`."""
        part = self._notes.columns(pa.RecordBatch._import_from_c, COLUMNS, first, end)
        return pa.Table.from_batches([part])


class NativeRows:
    """The port `StoredRows`."""

    def __init__(self) -> None:
        self._rows = native.Rows()
        self.add = self._rows.add
        self.thrift = native.thrift

    @property
    def size(self) -> int:
        """See `StoredRows.size`."""
        return self._rows.size

    @property
    def next_offset(self) -> int:
        """See `StoredRows.next_offset`."""
        return self._rows.next_offset

    def batches(
        self, leader_epoch: int, codec: int, most_bytes: int, most_in_all: int, stop: int
    ) -> Sequence[EncodedBatch] | None:
        """See `StoredRows.batches`."""
        made = self._rows.batches(leader_epoch, most_bytes, most_in_all, stop, codec == NONE)
        return None if made is None else _packed(made, codec)


def _packed(made: Sequence[tuple[bytes, int, int]], codec: int) -> Sequence[EncodedBatch]:
    if codec == NONE:
        return [EncodedBatch(*batch) for batch in made]
    return [EncodedBatch(bytes(repacked(data, codec)), first, last) for data, first, last in made]


class _NativeDecoding(Decoding):
    """Batches on their way into columns: all wait to be read together, and the others are read one by one then."""

    def __init__(self, batches: int, shared_bytes: int) -> None:
        super().__init__(batches, shared_bytes)
        self._waiting: list[int] = []
        self._batches: list[memoryview] = []
        # What a batch was unpacked to, None for one that is not packed.
        self._bodies: list[bytes | memoryview | None] = []
        self._bytes = 0
        # Of what was read natively; of others nothing is known.
        self._has_others = False
        self._earliest_ms, self._latest_ms, self._most_bytes, self._null_keys = 2**63 - 1, -1, 0, 0

    def add(self, index: int, batch: memoryview) -> None:
        """Take a batch, or keep why that can't be done."""
        body = None
        if batch[_ATTRIBUTES_AT] & CODEC_BITS:
            try:
                body = self.unpacked(batch)
            except (CorruptBatchError, InvalidRecordError) as e:
                self._refuse(index, e)
                return
        self._waiting.append(index)
        self._batches.append(batch)
        self._bodies.append(body)
        self._bytes += len(batch if body is None else body)
        if self._bytes >= _BYTES_TOGETHER:
            self._read_together()

    def unpacked(self, batch: memoryview) -> bytes | memoryview:
        """The records of a batch, unpacked. Raises `CorruptBatchError`, `InvalidRecordError`."""
        return self._unpacked(header_of(batch), batch[HEADER.size :])

    def keep_facts(self, notes: native.Notes) -> None:
        """Keep what notes say of all their records."""
        self._earliest_ms = min(self._earliest_ms, notes.earliest_ms)
        self._latest_ms = max(self._latest_ms, notes.latest_ms)
        self._most_bytes = max(self._most_bytes, notes.most_bytes)
        self._null_keys += notes.keyless

    def keeps(self, rules: RecordRules) -> bool:
        """Whether all records are known to keep the rules."""
        return (
            not self._has_others
            and self._most_bytes <= rules.most_bytes
            and not (rules.compacted and self._null_keys)
            and not (rules.create_time and (self._earliest_ms < rules.earliest_ms or self._latest_ms > rules.latest_ms))
        )

    def _read_together(self) -> None:
        waiting, batches, bodies = self._waiting, self._batches, self._bodies
        if not waiting:
            return
        self._waiting, self._batches, self._bodies, self._bytes = [], [], [], 0
        notes = native.read(batches, bodies, -1)
        if notes is None:
            part, counts = None, [0] * len(waiting)
        else:
            part, counts = notes.columns(pa.RecordBatch._import_from_c, COLUMNS, 0, len(batches)), notes.counts
            self.keep_facts(notes)
        row = start = 0
        for place, count in enumerate(counts):
            if count:
                self._counts[waiting[place]] = count
                row += count
                continue
            if part is not None:
                self._take(part, start, row)
            start = row
            self._read_other(waiting[place], batches[place], bodies[place])
        if part is not None:
            self._take(part, start, row)

    def _take(self, part: pa.RecordBatch, start: int, end: int) -> None:
        """Take rows of what was read natively."""
        if end > start:
            self._flush()
            self._parts.append(part if end - start == part.num_rows else part.slice(start, end - start))

    def _read_other(self, index: int, batch: memoryview, body: bytes | memoryview | None) -> None:
        self._has_others = True
        header = header_of(batch)
        if body is None:
            try:
                body = self._unpacked(header, batch[HEADER.size :])
            except InvalidRecordError as e:
                self._refuse(index, e)
                return
        self._read_alone(index, header, body)
