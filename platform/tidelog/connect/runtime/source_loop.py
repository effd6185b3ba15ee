"""The loop of a source's task: poll, transform, convert, write with the offsets, and report back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.runtime.conversion import Conversion, RawRecord
from tidelog.connect.runtime.offsets import canonical, offset_record
from tidelog.connect.runtime.source_writers import SourceWriter, WriteBatch
from tidelog.connect.runtime.task_figures import RetryNotes, TaskFigure
from tidelog.connect.runtime.task_spans import NO_SPANS, TaskSpans
from tidelog.connect.runtime.tolerance import RecordFailedError, ToleranceOperator, is_retriable
from tidelog.connect.spi.sources import SourceTask
from tidelog.log.base.backoff import Backoff

# The most records that an interval's transaction has: then it is committed, however short it was.
MOST_PENDING = 10_000


class SourceLoop:
    """One started source task. `step` is called over and over by one thread.

    `interval_s`: None commits each poll's records; else those of an interval together. `prepare_topic`: called for each
    topic before its first record. `notes`: is notified of polls that fail and are made again. `spans`: where writes
    become traces.
    """

    def __init__(
        self,
        connector: str,
        task: SourceTask,
        conversion: Conversion,
        writer: SourceWriter,
        operator: ToleranceOperator,
        *,
        prepare_topic: Callable[[str], None],
        wait: Callable[[float], bool],
        now_s: Callable[[], float],
        interval_s: float | None = None,
        notes: RetryNotes | None = None,
        spans: TaskSpans = NO_SPANS,
    ) -> None:
        self._spans = spans
        self._connector = connector
        self._task = task
        self._conversion = conversion
        self._writer = writer
        self._operator = operator
        self._prepare = prepare_topic
        self._wait = wait
        self._now_s = now_s
        self._interval_s = interval_s
        self._topics: set[str] = set()
        self._pending: list[tuple[SourceRecord, RawRecord | None]] = []
        self._began_s = 0.0
        self._backoff = Backoff(0.1, 10.0)
        self._figures = operator.figures
        self._notes = notes

    def step(self) -> None:
        """Poll once, and write what is due. Raises `ConnectError` and tidelog's errors: the task fails."""
        try:
            records = self._task.poll()
        except RetriableConnectError as error:
            self._figures.add(TaskFigure.RETRIES)
            if self._notes is not None:
                self._notes.failed(error)
            self._wait(self._backoff.next_s())
            records = []
        else:
            self._backoff.reset()
            if self._notes is not None:
                self._notes.succeeded()
        if records and not self._pending:
            self._began_s = self._now_s()
        self._figures.add(TaskFigure.POLLED, len(records))
        self._pending += [(record, self._converted(record)) for record in records]
        if self._is_due():
            self.flush()

    def _is_due(self) -> bool:
        if not self._pending:
            return False
        if self._interval_s is None or len(self._pending) >= MOST_PENDING:
            return True
        return self._now_s() - self._began_s >= self._interval_s

    def flush(self) -> None:
        """Write what was polled, with its offsets; a batch that the store did not take is written again."""
        if not self._pending:
            return
        raws = [raw for _, raw in self._pending if raw is not None]
        offsets = newest_offsets(self._connector, [record for record, _ in self._pending])
        for topic in dict.fromkeys(raw.topic for raw in raws):
            if topic not in self._topics:
                self._prepare(topic)
                self._topics.add(topic)
        with self._spans.batch("write", raws, len(raws)):
            placed = iter(self._written(raws, offsets))
        pending, self._pending = self._pending, []
        for record, raw in pending:
            self._task.commit_record(record, None if raw is None else next(placed))
        self._figures.add(TaskFigure.WRITTEN, len(raws))
        self._task.commit()

    def _written(self, raws: Sequence[RawRecord], offsets: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        write: WriteBatch | None = None
        while True:
            try:
                write = write or self._writer.begin(raws, offsets)
                placed = write()
            except Exception as error:
                if not is_retriable(error) or self._wait(self._backoff.next_s()):
                    raise
            else:
                self._backoff.reset()
                return placed

    def _converted(self, record: SourceRecord) -> RawRecord | None:
        """The bytes of a record; None for one that was dropped, or skipped as `errors.tolerance` says."""
        try:
            return self._conversion.to_raw(record)
        except RecordFailedError as failure:
            where = f"source_partition={dict(record.source_partition)} source_offset={dict(record.source_offset)}"
            self._operator.tolerate(failure, where)
            return None


def newest_offsets(connector: str, records: Sequence[SourceRecord]) -> list[tuple[bytes, bytes | None]]:
    """The rows of connect-offsets for the last record of each source partition. Raises `ConnectError`."""
    newest: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    seen: Mapping[str, Any] | None = None
    named = ""
    try:
        for record in records:
            partition = record.source_partition
            if partition or record.source_offset:
                if partition is not seen:  # most sources give one object for all records of a partition
                    seen, named = partition, canonical(partition)
                newest[named] = partition, record.source_offset
        return [offset_record(connector, partition, offset) for partition, offset in newest.values()]
    except (TypeError, ValueError) as error:
        raise ConnectError(f"A source partition or offset of {connector} has no form in JSON: {error}") from error
