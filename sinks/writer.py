"""The sink as Spark's Python data source API wants it: writers of batch and streaming queries."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import InvalidOptionError, TidelogError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.sinks import commits
from tidelog.sinks.options import NO_OVERWRITE, SinkOptions, check_columns
from tidelog.sinks.tasks import Segments, TopicTarget, open_target, stage

_QUERY_ID = "sql.streaming.queryId"


@dataclass
class StagedMessage(WriterCommitMessage):
    """A task's message to the driver; `query_id` is "" in a batch write."""

    staged: Segments
    query_id: str = ""


class _TopicWriter:
    """What both writers share. The driver makes a writer and sends it to the tasks.

    `topic_target` is that of option `topic` as the driver found it; a task opens it itself when there is none.
    """

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_columns([(f.name, f.dataType.simpleString()) for f in schema.fields], options)
        self._names = schema.fieldNames()
        self._options = options
        self._topic_target: TopicTarget | None = None
        self._planned_ms = SystemClock().now_ms()

    def _find(self) -> None:
        """Find the lake, by an address that tasks elsewhere understand as well, and the topic."""
        lake = shared_lake(self._options.lake, self._options.store)
        self._options = replace(self._options, lake=lake.uri)
        if self._options.topic is not None:
            self._topic_target = open_target(lake, self._options.topic, self._options.compression)
            lake.time.keep(lake.storage, self._topic_target.target.folder)
        self._planned_ms = lake.time.now_ms()

    def _stage(self, rows: Iterator[pa.RecordBatch]) -> Segments:
        lake = shared_lake(self._options.lake, self._options.store)
        return stage(rows, self._names, self._options, lake, self._topic_target, self._planned_ms)


class BatchWriter(_TopicWriter, DataSourceArrowWriter):
    """A batch write: all its rows appear or none, those of one topic at once."""

    def __init__(self, schema: StructType, overwrite: bool, options: SinkOptions) -> None:
        if overwrite:
            raise InvalidOptionError(NO_OVERWRITE)
        commits.batch_marker(options.txn)
        super().__init__(schema, options)
        self._find()

    @shallow
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's rows."""
        return StagedMessage(self._stage(iterator))

    @shallow
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks staged."""
        # The worker may be gone after this, so the lake is closed: that writes an overdue checkpoint.
        with Lake(self._options.lake, create=False, options=self._options.store) as lake:
            staged = (one for one in _staged(messages) if one is not None)
            commits.commit_batch(lake, staged, self._options)

    @shallow
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what the tasks staged."""
        commits.abort(self._options, _staged(messages))


class StreamWriter(_TopicWriter, DataSourceStreamArrowWriter):
    """A streaming write: each batch counts exactly once, however often it is run."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        super().__init__(schema, options)
        # Spark makes a writer to abort a batch as well, and an error here would hide the first one. The tasks report
        # a topic that can't be opened.
        with suppress(TidelogError):
            self._find()

    @shallow
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's rows. What this returns is all that the commit knows of the query."""
        context = TaskContext.get()
        query_id = context.getLocalProperty(_QUERY_ID) if context else None
        if not query_id:
            raise InvalidOptionError(
                f"Spark did not tell this task which query it belongs to (local property {_QUERY_ID}), and without"
                " that a batch can't count exactly once. Write with start() or toTable(), or inside foreachBatch."
            )
        return StagedMessage(self._stage(iterator), query_id)

    @shallow
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a batch; the query's id and the batch's go into the same entry, or intent."""
        first = next((message for message in messages if isinstance(message, StagedMessage)), None)
        if first is None:
            return  # the batch had no tasks
        staged = (one for one in _staged(messages) if one is not None)
        commits.commit_stream(
            shared_lake(self._options.lake, self._options.store), staged, self._options, first.query_id, batchId
        )

    @shallow
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Delete what the tasks staged."""
        commits.abort(self._options, _staged(messages))


def _staged(messages: Sequence[WriterCommitMessage | None]) -> list[Segments | None]:
    return [message.staged if isinstance(message, StagedMessage) else None for message in messages]
