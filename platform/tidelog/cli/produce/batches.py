"""`produce` at work: records gathered into bounded batches, each appended as one entry."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from tidelog.cli.produce.options import ProduceOptions
from tidelog.cli.records.escapes import to_bytes
from tidelog.cli.records.from_input import Headers, Record, RecordInput, Splitter
from tidelog.log.appends.appender import Appender
from tidelog.log.base.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    OutcomeUnknownError,
    RecordTooLargeError,
    RequestForgottenError,
    TidelogError,
    UnknownPartitionError,
)
from tidelog.log.delta import schema
from tidelog.log.lake import Lake
from tidelog.log.records import partitioners
from tidelog.log.records.checks import to_records
from tidelog.log.rules.topics import require_partition
from tidelog.log.topic import Topic
from tidelog.server.process.stopping import Stop

BATCH_BYTES = 16 << 20
# With acks=0 no caller waits for an append, so this many wait in memory at most.
UNACKNOWLEDGED_BATCHES = 4
# JSON needs up to 6 bytes for one; what is longer than this many times the largest record holds no record.
_LONGEST_TEXT = 8

_REFUSALS = (InvalidRecordError, InvalidTimestampError, RecordTooLargeError, UnknownPartitionError)

Parse = Callable[[bytes], Record]


@dataclass(slots=True)
class Batch:
    """Records that wait for their append, and where each came from."""

    records: list[Record] = field(default_factory=list)
    size: int = 0
    # (row, input's name, line): from this row on, lines of that input in order
    origins: list[tuple[int, str, int]] = field(default_factory=list)

    def add(self, record: Record, name: str, line: int) -> None:
        """Add a record that was line `line` (from 1) of the input `name`."""
        if not self.origins or self.origins[-1][1] != name:
            self.origins.append((len(self.records), name, line))
        self.records.append(record)
        self.size += len(record.key or b"") + len(record.value or b"")

    def origin(self, row: int) -> str:
        """Where the record in row `row` came from: "orders.txt, line 7"."""
        first, name, line = self.origins[bisect_right(self.origins, row, key=lambda o: o[0]) - 1]
        return f"{name}, line {line + row - first}"

    def to_table(self) -> pa.Table:
        """The columns that `Topic.append` takes; those that no record has are left out."""
        keys, values, headers, stamps, numbers = zip(*self.records, strict=True)
        columns = {"value": pa.array(values, pa.binary())}
        if any(key is not None for key in keys):
            columns["key"] = pa.array(keys, pa.binary())
        if any(pairs is not None for pairs in headers):
            columns["headers"] = pa.array(
                [None if pairs is None else [{"key": k, "value": v} for k, v in pairs] for pairs in headers],
                schema.HEADERS,
            )
        if any(stamp is not None for stamp in stamps):
            columns["timestamp"] = pa.array(stamps, pa.int64()).cast(schema.TIMESTAMP)
        if any(number is not None for number in numbers):
            columns["partition"] = pa.array(numbers, pa.int32())
        return pa.table(columns)


@dataclass(slots=True)
class Produced:
    """What one partition got: how many records, the first's offset, and the end after the last."""

    records: int
    first: int
    end: int


class Producing:
    """One run of `produce`: `run`, then read `records` and `partitions`, also after an error.

    `headers` are added to each record.
    """

    def __init__(self, lake: Lake, asked: ProduceOptions, headers: Headers, stop: Stop) -> None:
        self._lake = lake
        self._asked = asked
        self._key = None if asked.key is None else to_bytes(asked.key)
        self._headers = headers
        self._stop = stop
        lake.ensure_topic(asked.topic)
        self._topic: Topic = lake.topic(asked.topic)
        self._appender = Appender(asked.topic, lambda: self._topic, lake.clock, lake.ids)
        if asked.partition is not None:
            require_partition(self._topic.state(), asked.topic, asked.partition)
        self._topic.config().codec(asked.codec)
        self._batch = Batch()
        self._since_s = 0.0
        self._unacknowledged = 0
        self.records = 0
        self.unfinished = 0
        self.in_doubt = 0
        self.partitions: dict[int, Produced] = {}

    def run(self, sources: Iterable[RecordInput], delimiter: bytes, parse: Parse) -> None:
        """Produce all records of the inputs, until they end or a stop is asked.

        Raises the topic's refusal of a record, naming its input and line; all records before it are produced.
        """
        for source in sources:
            if not self._stop.asked:
                self._run(source, delimiter, parse)
        self._flush()

    def _run(self, source: RecordInput, delimiter: bytes, parse: Parse) -> None:
        limit = _LONGEST_TEXT * self._topic.config().max_message_bytes + (1 << 16)
        splitter, line = Splitter(delimiter, limit), 1
        while not self._stop.asked:
            chunk = source.read(self._patience_s())
            if chunk is not None:
                try:
                    lines = splitter.feed(chunk) if chunk else splitter.finish()
                except RecordTooLargeError as e:
                    self._flush()
                    raise RecordTooLargeError(f"{source.name}, line {line}: {e}") from None
                self._take(source.name, line, lines, parse)
                line += len(lines)
                if not chunk:
                    return
            elif self._patience_s() == 0:
                # Only when no more input is there: a fast input fills its batches, however busy the machine is.
                self._flush()
        self.unfinished = splitter.waiting

    def _patience_s(self) -> float | None:
        """How long to wait for more input; None: for ever, because nothing waits to be appended."""
        if not self._batch.records:
            return None
        return max(0.0, self._since_s + self._asked.linger_ms / 1000 - self._lake.clock.elapsed_s())

    def _take(self, name: str, first: int, lines: list[bytes], parse: Parse) -> None:
        for number, text in enumerate(lines, first):
            try:
                record = parse(text)
            except ValueError as e:
                self._flush()
                raise InvalidRecordError(f"{name}, line {number}: {e}. Correct it, and go on from there.") from None
            if not self._batch.records:
                self._since_s = self._lake.clock.elapsed_s()
            self._batch.add(self._complete(record), name, number)
            if len(self._batch.records) >= self._asked.batch_records or self._batch.size >= BATCH_BYTES:
                self._flush()

    def _complete(self, record: Record) -> Record:
        asked = self._asked
        headers = [*(record.headers or ()), *self._headers] if self._headers else record.headers
        partition = asked.partition if asked.partition is not None or asked.repartition else record.partition
        key = self._key if record.key is None else record.key
        return Record(key, record.value, headers, record.timestamp_us, partition)

    def _flush(self) -> None:
        if not self._batch.records:
            return
        batch, self._batch = self._batch, Batch()
        table = batch.to_table()
        try:
            self._append(table)
        except _REFUSALS as e:
            row, refusal = self._first_refused(table)
            if refusal is None:
                raise
            if row:
                self._append(table.slice(0, row))
            # An error of a typed topic's values is made of their rows, not of a sentence.
            kind = InvalidRecordError if isinstance(e, InvalidRecordError) else type(e)
            raise kind(f"{batch.origin(row)}: {_about_one(str(refusal))}") from e

    def _append(self, table: pa.Table) -> None:
        asked = self._asked
        try:
            append = self._topic.append if asked.acks == "0" else self._appender.append
            ranges = append(table, acks=asked.acks, partitioner=asked.partitioner, compression=asked.codec)
        except (OutcomeUnknownError, RequestForgottenError, KeyboardInterrupt):
            self.in_doubt += table.num_rows
            raise
        self.records += table.num_rows
        for partition, (first, end) in ranges.items():
            so_far = self.partitions.setdefault(partition, Produced(0, first, end))
            so_far.records += end - first
            so_far.end = end
        if not ranges:
            self._bound_unacknowledged()

    def _bound_unacknowledged(self) -> None:
        self._unacknowledged += 1
        if self._unacknowledged >= UNACKNOWLEDGED_BATCHES:
            # The lake appends these one after another, so this returns when all before it are done.
            self._lake.background.submit(int).result()
            self._unacknowledged = 0

    def _first_refused(self, table: pa.Table) -> tuple[int, TidelogError | None]:
        """The first record that the topic does not take, and why; None when it takes each by itself."""
        low, high = 0, table.num_rows
        if self._refusal(table) is None:
            return high, None
        while high - low > 1:
            middle = (low + high) // 2
            if self._refusal(table.slice(low, middle - low)) is None:
                low = middle
            else:
                high = middle
        return low, self._refusal(table.slice(low, 1))

    def _refusal(self, table: pa.Table) -> TidelogError | None:
        topic = self._topic
        try:
            records = to_records(table, topic.name, topic.config(), topic.now_ms(), typing=topic.typing())
            if "partition" in table.schema.names:
                count = topic.state().partitions
                partitioners.assign(records.column("key"), table.column("partition"), count, sticky=0)
        except _REFUSALS as e:
            return e
        return None


def _about_one(message: str) -> str:
    """A message about a record in a table of one, without its row's number."""
    return (
        message.replace("Record 0 for", "The record for")
        .replace(" (row 0 has none)", "")
        .replace(" in row 0", "")
        .replace("and row 0 is refused", "and the record is refused")
    )
