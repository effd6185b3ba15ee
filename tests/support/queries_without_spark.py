"""Batch queries and writes without Spark: what it asks of the data source, in its order, in this process."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import Filter, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from pyspark_tidelog import DefaultSource
from tidelog.log.lake import Lake

Row = dict[str, Any]


def _source(lake: Lake, options: dict[str, Any]) -> DefaultSource:
    return DefaultSource({"lake": lake.uri, **{name: str(value) for name, value in options.items()}})


def tasks(lake: Lake, filters: Iterable[Filter] = (), **options: Any) -> list[list[Row]]:
    """What each task of a batch query reads; `filters` are those that Spark pushes down."""
    source = _source(lake, options)
    reader = source.reader(source.schema())
    if filters := list(filters):
        assert list(reader.pushFilters(filters)) == filters  # Spark filters the rows as well
    return [_read(reader, task) for task in reader.partitions()]


def _read(reader: Any, task: InputPartition) -> list[Row]:
    return [row for batch in reader.read(task) for row in batch.to_pylist()]


def rows(lake: Lake, filters: Iterable[Filter] = (), **options: Any) -> list[Row]:
    """What a batch query reads."""
    return [row for task in tasks(lake, filters, **options) for row in task]


def write(lake: Lake, given: pa.Table, **options: Any) -> None:
    """A batch write of one task: committed, or aborted where the task or the commit fails."""
    source = _source(lake, options)
    writer = source.writer(from_arrow_schema(given.schema), False)
    messages: list[Any] = []
    try:
        messages.append(writer.write(iter(given.to_batches())))
        writer.commit(messages)
    except BaseException:
        writer.abort(messages or [None])
        raise
