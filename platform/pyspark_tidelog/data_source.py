"""The data source that Spark finds as `format("tidelog")`."""

import logging
import os
from collections.abc import Iterable, Mapping

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tidelog.groups.store.adapters import LoggedPositions
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.environment import LAKE_VARIABLE
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.lake import Lake
from tidelog.log.shared import shared_lake
from tidelog.log.spark_options import unknown_options
from tidelog.sinks import options as sink_options
from tidelog.sinks.writer import BatchWriter, StreamWriter
from tidelog.sources import options as source_options
from tidelog.sources.batch import BatchReader
from tidelog.sources.catalog import Catalog
from tidelog.sources.columns import RECORDS, RECORDS_WITH_HEADERS, columns_of, with_columns
from tidelog.sources.stream import RefusedReader, StreamReader

logger = logging.getLogger("tidelog.spark")
_OPTIONS = (*source_options.SOURCE_OPTIONS, *sink_options.SINK_OPTIONS)


# Spark makes a reader and a writer several times, in processes that it uses again; each says its warnings once.
_uttered: set[tuple[frozenset[tuple[str, str]], str]] = set()


class DefaultSource(DataSource):
    """Topics as a source and a sink of batch and streaming queries, with the options of Spark's Kafka connector."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._gave_schema = False

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "tidelog"

    @shallow
    def schema(self) -> StructType:
        """The columns of Spark's Kafka source, `headers` and `columns` where options ask for them."""
        self._gave_schema = True
        options = dict(self.options)
        records = RECORDS_WITH_HEADERS if source_options.parse_include_headers(options) else RECORDS
        if not source_options.parse_include_columns(options):
            return records
        place = source_options.parse_place(options, os.environ.get(LAKE_VARIABLE))
        catalog = Catalog(shared_lake(place.lake, place.store), place)
        catalog.refresh(required=True)
        return with_columns(records, catalog.columns())

    @shallow
    def reader(self, schema: StructType) -> BatchReader:
        """The source of a batch query."""
        _warn(self.options, unknown_options(self.options, _OPTIONS))
        options = source_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        self._check_schema()
        return BatchReader(options, columns_of(schema))

    @shallow
    def streamReader(self, schema: StructType) -> StreamReader | RefusedReader:  # noqa: N802 - Spark's name
        """The source of a streaming query."""
        _warn(self.options, unknown_options(self.options, _OPTIONS))
        try:
            options = source_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
            self._check_schema()
        except InvalidOptionError as e:
            return RefusedReader(e)
        return StreamReader(options, _positions, columns_of(schema))

    @shallow
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """The sink of a batch write."""
        _warn(self.options, unknown_options(self.options, _OPTIONS))
        options = sink_options.parse_batch(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(self.options, options.warnings)
        return BatchWriter(schema, overwrite, options)

    @shallow
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: ARG002, N802 - Spark's name
        """The sink of a streaming query. Complete mode, which sets `overwrite`, appends as in Kafka's sink."""
        _warn(self.options, unknown_options(self.options, _OPTIONS))
        options = sink_options.parse_stream(dict(self.options), os.environ.get(LAKE_VARIABLE))
        _warn(self.options, options.warnings)
        return StreamWriter(schema, options)

    def _check_schema(self) -> None:
        """Refuse a schema of the caller's own: Kafka's source has a fixed one.

        Spark asks the source for its schema where the caller gave none, and only there. With the caller's it asks
        nothing until it needs a reader, so that is the first moment to refuse.
        """
        if not self._gave_schema:
            raise InvalidOptionError(
                "tidelog: the source has a fixed schema, as Kafka's, and cannot be set with a custom one. Leave"
                " .schema(…) out, and parse values in the query, as by from_json."
            )


def _positions(lake: Lake) -> LoggedPositions:
    """Where a query publishes its progress as a group's offsets."""
    return LoggedPositions(GroupLog(lake))


def _warn(options: Mapping[str, str], warnings: Iterable[str]) -> None:
    about = frozenset(options.items())
    for warning in warnings:
        said = (about, warning)
        if said not in _uttered:
            _uttered.add(said)
            logger.warning(warning)
