"""The sink as Spark's Python data source API wants it: writers of batch and streaming queries."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidelog.log.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.sinks import commits
from tidelog.sinks.columns import check_columns
from tidelog.sinks.options import NO_OVERWRITE, SinkOptions
from tidelog.sinks.tasks import StagedTopics, open_target, stage

_QUERY_ID = "sql.streaming.queryId"


@dataclass
class StagedMessage(WriterCommitMessage):
    """What a task tells the driver."""

    staged: StagedTopics
    query_id: str | None


class _Writer:
    """What both writers do: made on the driver, sent to the tasks."""

    def __init__(self, schema: StructType, options: SinkOptions) -> None:
        check_columns([(f.name, f.dataType.simpleString()) for f in schema.fields], options)
        self._names = schema.fieldNames()
        self._options = options
        lake = shared_lake(options.lake)
        self._known = None if options.topic is None else open_target(lake, options.topic, options.compression)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Stage a task's rows."""
        context = TaskContext.get()
        query_id = context.getLocalProperty(_QUERY_ID) if context else None
        staged = stage(iterator, self._names, self._options, shared_lake(self._options.lake), self._known)
        return StagedMessage(staged, query_id)


class BatchWriter(_Writer, DataSourceArrowWriter):
    """A batch write: all its rows appear at once in each topic, or none."""

    def __init__(self, schema: StructType, overwrite: bool, options: SinkOptions) -> None:
        if overwrite:
            raise InvalidOptionError(NO_OVERWRITE)
        commits.batch_marker(options.txn)
        super().__init__(schema, options)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks staged."""
        # The worker may be gone after this, so the lake is closed: that writes an overdue checkpoint.
        with Lake(self._options.lake, create=False) as lake:
            commits.commit(lake, _staged(messages), self._options, commits.batch_marker(self._options.txn))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what the tasks staged."""
        commits.abort(shared_lake(self._options.lake), _staged(messages))


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """A streaming write: each batch counts exactly once, however often it is run."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Commit a batch; the query's id and the batch's go into the same entry."""
        ids = {m.query_id for m in messages if isinstance(m, StagedMessage)} - {None, ""}
        marker = commits.stream_marker(ids.pop() or "", batchId) if ids else None
        if marker is not None:
            commits.commit(shared_lake(self._options.lake), _staged(messages), self._options, marker)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Delete what the tasks staged."""
        commits.abort(shared_lake(self._options.lake), _staged(messages))


def _staged(messages: list[Any]) -> list[StagedTopics]:
    return [m.staged for m in messages if isinstance(m, StagedMessage)]
