"""The source of a batch query: planned once, when the DataFrame is first used."""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from tidelog.log.base.clock import SystemIds
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.shared import shared_lake
from tidelog.sources.catalog import Catalog
from tidelog.sources.filters import RowBounds, wanted_by
from tidelog.sources.options import SourceOptions
from tidelog.sources.planning import judge_losses, plan_batch
from tidelog.sources.tasks import plan_tasks, read_task

logger = logging.getLogger("tidelog.spark")


class _PushFilters:
    """`pushFilters` of a reader that works with Spark's push-down on and off.

    While `spark.sql.python.filterPushdown.enabled` is off (its default) Spark refuses a reader that overrides the
    method, and tells so by `__func__`. Without push-down Spark does not call this.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Callable[[list[Filter]], Iterator[Filter]]) -> None:
        self._take = take

    def __call__(self, filters: list[Filter]) -> Iterator[Filter]:
        return self._take(filters)


class BatchReader(DataSourceReader):
    """Reads what lies between the starting and the ending offsets. `columns`: the type of the column of that name."""

    def __init__(self, options: SourceOptions, columns: pa.StructType | None = None) -> None:
        self._options = options
        self._columns = columns
        self._wanted = RowBounds()
        self.pushFilters = _PushFilters(self._take_filters)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {}  # tasks say all that an executor needs

    def _take_filters(self, filters: list[Filter]) -> Iterator[Filter]:
        """Read only the segments that can hold matching rows; Spark still filters the rows."""
        self._wanted = wanted_by(filters)
        yield from filters

    @shallow
    def partitions(self) -> list[InputPartition]:
        """Plan the query's tasks."""
        options = self._options
        for warning in options.warnings:
            logger.warning(warning)
        catalog = Catalog(shared_lake(options.lake, options.store), options)
        catalog.refresh(required=True)
        starts, ends = catalog.batch_limits()
        plan = plan_batch(
            starts,
            ends,
            catalog.bounds(),
            options.reading_group(SystemIds().new()),
            custom_group_id=options.group_id is not None,
        )
        for warning in judge_losses(plan.losses, fail_on_data_loss=options.fail_on_data_loss):
            logger.warning(warning)
        ranges = [cut for r in plan.ranges if (cut := self._wanted.range(r)) is not None]
        segments = self._wanted.segments(catalog.segments(catalog.assigned()))
        return plan_tasks(catalog.lake.uri, ranges, segments, options, catalog.typings(), self._columns)

    @shallow
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task's records."""
        return read_task(partition)
