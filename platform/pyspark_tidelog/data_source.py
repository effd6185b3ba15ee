"""The data source that Spark finds as `format("tidelog")`."""

import logging
import os

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tidelog.groups.group_log import GroupLog
from tidelog.groups.positions import LoggedPositions
from tidelog.log.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.sinks import options as sink_options
from tidelog.sinks.writer import BatchWriter, StreamWriter
from tidelog.sources import options as source_options
from tidelog.sources.batch import BatchReader
from tidelog.sources.columns import RECORDS, RECORDS_WITH_HEADERS
from tidelog.sources.refused import RefusedReader
from tidelog.sources.stream import StreamReader

logger = logging.getLogger("tidelog.spark")

LAKE_VARIABLE = "TIDELOG_LAKE"

# Spark makes a writer for every batch, in processes that it uses again; each says its warnings once.
_uttered: set[tuple[str, str | None, str]] = set()


class DefaultSource(DataSource):
    """Topics as a source and a sink of batch and streaming queries, with the options of Spark's Kafka connector."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._gave_schema = False

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidelog"

    def schema(self) -> StructType:
        """The columns of Spark's Kafka source, `headers` where `includeHeaders` asks for them."""
        self._gave_schema = True
        include_headers = source_options.parse_include_headers(dict(self.options))
        return RECORDS_WITH_HEADERS if include_headers else RECORDS

    def reader(self, schema: StructType) -> BatchReader:  # noqa: ARG002 - Spark's signature
        """The source of a batch query."""
        options = source_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        self._check_schema()
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader | RefusedReader:  # noqa: ARG002, N802 - Spark's name
        """The source of a streaming query."""
        try:
            options = source_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
            self._check_schema()
        except InvalidOptionError as e:
            return RefusedReader(e)
        return StreamReader(options, _positions)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The sink of a batch write."""
        options = sink_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options)
        return BatchWriter(schema, overwrite, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002, N802 - Spark's name
        """The sink of a streaming query. Complete mode, which sets `overwrite`, appends as in Kafka's sink."""
        options = sink_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options)
        return StreamWriter(schema, options)

    def _check_schema(self) -> None:
        """Refuse a schema of the caller's own: Kafka's source has a fixed one.

        Spark asks the source for its schema where the caller gave none, and only there. With the caller's it asks
        nothing until it needs a reader, so that is the first moment to refuse.
        """
        if not self._gave_schema:
            raise InvalidOptionError("Kafka source has a fixed schema and cannot be set with a custom one")


def _positions(lake: Lake) -> LoggedPositions:
    """Where the offsets of a lake's groups are told."""
    return LoggedPositions(GroupLog(lake))


def _warn(options: sink_options.SinkOptions) -> None:
    for warning in options.warnings:
        said = (options.lake, options.topic, warning)
        if said not in _uttered:
            _uttered.add(said)
            logger.warning(warning)
