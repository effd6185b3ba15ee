"""The data source that Spark finds as `format("tidelog")`."""

import logging
import os

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tidelog.log.errors import InvalidOptionError
from tidelog.sinks import options as sink_options
from tidelog.sinks.writer import BatchWriter, StreamWriter
from tidelog.sources import options as source_options
from tidelog.sources.batch import BatchReader
from tidelog.sources.columns import RECORDS, RECORDS_WITH_HEADERS
from tidelog.sources.stream import StreamReader

logger = logging.getLogger("tidelog.spark")

LAKE_VARIABLE = "TIDELOG_LAKE"


class DefaultSource(DataSource):
    """Topics as a source and a sink of batch and streaming queries, with the options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidelog"

    def schema(self) -> StructType:
        """The columns of Spark's Kafka source, `headers` where `includeHeaders` asks for them."""
        return RECORDS_WITH_HEADERS if source_options.parse_include_headers(dict(self.options)) else RECORDS

    def reader(self, schema: StructType) -> BatchReader:
        """The source of a batch query."""
        _check_schema(schema)
        options = source_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802 - Spark's name
        """The source of a streaming query."""
        _check_schema(schema)
        options = source_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The sink of a batch write."""
        options = sink_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return BatchWriter(schema, overwrite, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002, N802 - Spark's name
        """The sink of a streaming query."""
        options = sink_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return StreamWriter(schema, options)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        logger.warning(warning)


def _check_schema(schema: StructType) -> None:
    """Kafka's source has a fixed schema."""
    if schema.fieldNames() not in (RECORDS.fieldNames(), RECORDS_WITH_HEADERS.fieldNames()):
        raise InvalidOptionError("Kafka source has a fixed schema and cannot be set with a custom one")
