"""The data source that Spark finds as `format("tidelog")`."""

import logging
import os

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tidelog.sinks.options import parse_batch, parse_stream
from tidelog.sinks.writer import BatchWriter, StreamWriter

logger = logging.getLogger("tidelog.spark")

LAKE_VARIABLE = "TIDELOG_LAKE"


class DefaultSource(DataSource):
    """Topics as a source and a sink of batch and streaming queries, with the options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidelog"

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The sink of a batch write."""
        options = parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return BatchWriter(schema, overwrite, options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002, N802 - Spark's name
        """The sink of a streaming query."""
        options = parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(options.warnings)
        return StreamWriter(schema, options)


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        logger.warning(warning)
