"""What was read ahead: Arrow batches by partition, taken as messages or as tables, and errors between them."""

import gc
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import pyarrow as pa

from tidelog.clients.consumer.assignment import PartitionState, TopicPartitionKey
from tidelog.clients.values.errors import KafkaError
from tidelog.clients.values.message import TIMESTAMP_NOT_AVAILABLE, Headers, Message
from tidelog.log.delta.schema import RECORDS, RECORDS_WITH_HEADERS
from tidelog.log.follow.cursor import Cursor, Held
from tidelog.log.segments.fetch import as_batch
from tidelog.log.segments.few_records import FewRecords

# Records of a batch that become messages at a time: enough to make each cheap, few enough to wait for.
_AT_ONCE = 4096
# Fewer values than this are worked out sooner one by one.
_FEW = 16


@dataclass(eq=False, slots=True)
class Records:
    """Records of one partition, as of a `version` of its topic, of which the first `taken` are gone.

    `messages` of the next few are made already.
    """

    owned: PartitionState
    cursor: Cursor
    batch: Held
    nbytes: int
    version: int
    taken: int = 0
    messages: list[Message] | None = None
    messages_at: int = 0


@dataclass(eq=False, slots=True)
class Notice:
    """An error of a partition, or that its end is reached, in its place among the records. None: of no partition."""

    owned: PartitionState | None
    cursor: Cursor | None
    message: Message


Entry: TypeAlias = Records | Notice


class Buffer:
    """Read-ahead in the order it came in. What belongs to a partition that was moved or dropped since is passed over.

    `store`: each offset that is handed out is stored. The caller holds the consumer's lock.
    """

    def __init__(self, *, store: bool) -> None:
        self._entries: deque[Entry] = deque()
        self.stores = store
        self.bytes = 0
        self.records = 0

    def add(self, owned: PartitionState, cursor: Cursor, batch: Held, nbytes: int, version: int) -> None:
        """Append records, of about `nbytes`, as of a version of their topic."""
        self._entries.append(Records(owned, cursor, batch, nbytes, version))
        self.bytes += nbytes
        self.records += batch.num_rows

    def notice(self, owned: PartitionState | None, error: KafkaError, offset: int | None = None) -> None:
        """Append an error, unless the same one of the partition waits already."""
        cursor = None if owned is None else owned.cursor
        for waiting in self._entries:
            if isinstance(waiting, Notice) and waiting.cursor is cursor and _is_same(waiting.message, error, offset):
                return
        topic, partition = (None, None) if owned is None else owned.place
        self._entries.append(Notice(owned, cursor, Message(topic, partition, offset, error=error)))

    def by_partition(self) -> dict[TopicPartitionKey, tuple[int, int]]:
        """What waits, {place: (records, bytes)}."""
        by_place: dict[TopicPartitionKey, tuple[int, int]] = {}
        for entry in self._entries:
            if isinstance(entry, Records) and entry.cursor is entry.owned.cursor:
                records, size = by_place.get(entry.owned.place, (0, 0))
                left = entry.batch.num_rows - entry.taken
                by_place[entry.owned.place] = records + left, size + entry.nbytes * left // entry.batch.num_rows
        return by_place

    def rewritten(self) -> dict[PartitionState, int]:
        """The partitions of which records that wait were rewritten since; {partition: the offset of the first one}."""
        offsets: dict[PartitionState, int] = {}
        firsts: dict[PartitionState, int] = {}
        for entry in self._entries:
            if not isinstance(entry, Records) or entry.cursor is not entry.owned.cursor:
                continue
            state, owned = entry.cursor.log.state, entry.owned
            first, last = _offset(entry.batch, entry.taken), _offset(entry.batch, entry.batch.num_rows - 1)
            firsts.setdefault(owned, first)
            if state is not None and state.rewrites.touch(owned.partition, first, last + 1, entry.version):
                offsets.setdefault(owned, firsts[owned])
        return offsets

    def purge(self) -> None:
        """Forget what counts no more."""
        kept = [e for e in self._entries if e.owned is None or e.owned.cursor is e.cursor]
        self._entries = deque(kept)
        self.bytes = sum(e.nbytes for e in kept if isinstance(e, Records))
        self.records = sum(e.batch.num_rows - e.taken for e in kept if isinstance(e, Records))

    def take(self) -> Message | None:
        """The next message."""
        entry = self._head()
        if entry is None:
            return None
        if isinstance(entry, Notice):
            self._entries.popleft()
            return entry.message
        at = entry.taken - entry.messages_at
        messages = entry.messages
        if messages is None or at >= len(messages):
            messages = entry.messages = to_messages(entry.batch.slice(entry.taken, _AT_ONCE), entry.owned)
            entry.messages_at, at = entry.taken, 0
        message = messages[at]
        self._took(entry, 1, message._offset)
        return message

    def take_many(self, count: int) -> list[Message]:
        """The next messages of one partition, at most `count`; none when there is nothing."""
        entry = self._head()
        if entry is None or not count:
            return []
        if isinstance(entry, Notice):
            self._entries.popleft()
            return [entry.message]
        messages = to_messages(entry.batch.slice(entry.taken, count), entry.owned)
        self._took(entry, len(messages), messages[-1]._offset)
        return messages

    def take_batch(self, count: int) -> pa.RecordBatch | Message | None:
        """The next records of one partition, at most `count`, or an error; None when there is nothing."""
        entry = self._head()
        if entry is None:
            return None
        if isinstance(entry, Notice):
            self._entries.popleft()
            return entry.message
        batch = as_batch(entry.batch.slice(entry.taken, count), *entry.owned.place)
        self._took(entry, batch.num_rows, batch.column("offset")[-1].as_py())
        return batch

    def put_back(self, message: Message) -> None:
        """Have an error come first again."""
        self._entries.appendleft(Notice(None, None, message))

    def _head(self) -> Entry | None:
        while self._entries:
            entry = self._entries[0]
            if entry.owned is None or entry.cursor is entry.owned.cursor:
                return entry
            self._entries.popleft()
            if isinstance(entry, Records):
                self.bytes -= entry.nbytes
                self.records -= entry.batch.num_rows - entry.taken
        return None

    def _took(self, entry: Records, count: int, last: int | None) -> None:
        owned = entry.owned
        owned.position = (last or 0) + 1
        if self.stores:
            owned.stored, owned.stored_metadata = owned.position, ""
        entry.taken += count
        self.records -= count
        if entry.taken >= entry.batch.num_rows:
            self._entries.popleft()
            self.bytes -= entry.nbytes


def _offset(batch: Held, row: int) -> int:
    found = batch.positions[row] if isinstance(batch, FewRecords) else batch.column("offset")[row].as_py()
    return int(found)


def _is_same(before: Message, error: KafkaError, offset: int | None) -> bool:
    error_before = before.error()
    return error_before is not None and error_before.str() == error.str() and before.offset() == offset


@contextmanager
def _no_collections() -> Iterator[None]:
    """No garbage collections meanwhile: thousands of objects made at once set them off by the dozen, and they find
    nothing and take longer than making the objects does."""
    pause = gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


def to_messages(batch: Held, owned: PartitionState) -> list[Message]:
    """The records of one partition as messages."""
    with _no_collections():
        return _messages(batch, owned)


def _messages(batch: Held, owned: PartitionState) -> list[Message]:
    columns: tuple[Any, ...]
    if isinstance(batch, FewRecords):
        keys, values, times, kinds, headers = batch.columns.values()
        columns = batch.positions, keys, values, headers, repeat(None), map(_timestamp, kinds, times)
    else:
        key, value, _, _, offset, timestamp, timestamp_type, column = batch.columns
        columns = (
            offset.to_pylist(),
            key.to_pylist(),
            value.to_pylist(),
            _headers(column),
            repeat(None),
            _timestamps(timestamp, timestamp_type),
        )
    return list(map(Message, repeat(owned.topic), repeat(owned.partition), *columns))


def _timestamps(timestamp: pa.Array, timestamp_type: pa.Array) -> Iterable[tuple[int, int]]:
    times, kinds = timestamp.view(pa.int64()), timestamp_type
    if len(times) < _FEW or times.null_count or kinds.null_count:
        return [_timestamp(*one) for one in zip(kinds.to_pylist(), times.to_pylist(), strict=True)]
    return zip((kinds.to_numpy() + 1).tolist(), (times.to_numpy() // 1000).tolist(), strict=True)


def _timestamp(kind: int | None, time_us: int | None) -> tuple[int, int]:
    """As messages have it: confluent-kafka counts types from TIMESTAMP_NOT_AVAILABLE = 0."""
    return (TIMESTAMP_NOT_AVAILABLE, -1) if kind is None or time_us is None else (kind + 1, time_us // 1000)


def _headers(column: pa.Array) -> Any:
    if column.null_count == len(column):
        return repeat(None)
    return [_header_list(row) for row in column.to_pylist()]


def _header_list(row: list[dict[str, Any]] | None) -> Headers | None:
    return [(header["key"], header["value"]) for header in row] if row else None


def as_table(batches: list[pa.RecordBatch], *, include_headers: bool) -> pa.Table:
    """Batches as one table, with headers or without."""
    table = pa.Table.from_batches(batches, RECORDS_WITH_HEADERS)
    return table if include_headers else table.select(RECORDS.names)
