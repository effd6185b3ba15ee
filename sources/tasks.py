"""A source's task: which records it reads, planned on the driver, and reading them on an executor."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from tidelog.log.delta import schema
from tidelog.log.segments.fetch import FetchPlan, fetch, overlapping
from tidelog.log.segments.writer import ROW_GROUP_RECORDS
from tidelog.log.shared import shared_storage
from tidelog.log.state.topic_state import Segment
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions
from tidelog.log.typed.placing import placed
from tidelog.log.typed.value_typing import Typing
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.options import SourceOptions
from tidelog.sources.planning import Range
from tidelog.sources.splitting import split_by_bytes, split_by_offsets

# Records in one Arrow batch on the way to the JVM: large enough to cost little each, small enough for its caches.
BATCH_RECORDS = 32_768
NO_TYPINGS: Mapping[str, Typing | None] = MappingProxyType({})


@dataclass(frozen=True)
class ReadTask(InputPartition):
    """Offset ranges that one task reads one after another, with the segments that hold them.

    `columns`: the type of the query's column `columns`, None where it has none.
    """

    lake: str
    plans: tuple[tuple[str, FetchPlan], ...]
    include_headers: bool
    columns: pa.StructType | None = None
    store: StoreOptions = NO_OPTIONS


def plan_tasks(
    lake_uri: str,
    ranges: Sequence[Range],
    segments: Mapping[TopicPartition, Sequence[Segment]],
    options: SourceOptions,
    typings: Mapping[str, Typing | None] = NO_TYPINGS,
    columns: pa.StructType | None = None,
) -> list[InputPartition]:
    """The tasks that read `ranges`: cut as Kafka's options say, else by bytes at segments and row groups.

    `lake_uri` is absolute, as tasks run elsewhere. `typings`: of the typed topics among them.
    `columns`: the type of the query's column of that name, None where it has none.
    """
    if options.min_partitions is not None or options.max_records_per_partition is not None:
        cut = split_by_offsets(ranges, options.min_partitions, options.max_records_per_partition)
        groups: list[tuple[Range, ...]] = [(part,) for part in cut]
    else:
        # Where a query is planned the executors' number of cores is unknown: as many as here, more by bytes.
        cores = os.cpu_count() or 1
        groups = split_by_bytes(ranges, segments, cores=cores, row_group_records=ROW_GROUP_RECORDS)
    return [
        ReadTask(
            lake_uri,
            tuple((r.topic, _fetch_plan(r, segments, typings)) for r in group),
            options.include_headers,
            columns,
            options.store,
        )
        for group in groups
    ]


def _fetch_plan(
    part: Range, segments: Mapping[TopicPartition, Sequence[Segment]], typings: Mapping[str, Typing | None]
) -> FetchPlan:
    live = segments[TopicPartition(part.topic, part.partition)]
    wanted = tuple(overlapping(live, part.start, part.end))
    return FetchPlan(part.partition, part.start, part.end, wanted, typings.get(part.topic))


def read_task(task: InputPartition) -> Iterator[pa.RecordBatch]:
    """The task's records as Arrow batches, columns as `tidelog.log.delta.schema.RECORDS`.

    A record without headers has null in `headers`, whether its producer gave none or an empty list. Source:
    `KafkaRecordToRowConverter`.
    """
    if not isinstance(task, ReadTask):  # Spark's stand-in for a query that has nothing to read
        return
    storage = shared_storage(task.lake, task.store)
    with_headers, columns = task.include_headers, task.columns
    for topic, plan in task.plans:
        for batch in fetch(
            storage,
            topic,
            topic,
            plan,
            include_headers=with_headers,
            include_columns=columns is not None,
            batch_records=BATCH_RECORDS,
        ):
            shown = _null_where_empty(batch) if with_headers else batch
            yield shown if columns is None else _as_planned(shown, columns)


def _as_planned(batch: pa.RecordBatch, columns: pa.StructType) -> pa.RecordBatch:
    """The batch with `columns` as the query has it, which was planned before: the table may have more by now."""
    at = batch.schema.get_field_index(schema.COLUMNS)
    found = placed(batch.column(at), columns)
    return batch.set_column(at, pa.field(schema.COLUMNS, columns), found)


def _null_where_empty(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with null in `headers` in place of empty lists."""
    headers = batch.column("headers")
    is_empty = pc.equal(pc.list_value_length(headers), 0)
    if not pc.any(is_empty).as_py():
        return batch
    return batch.set_column(
        batch.schema.get_field_index("headers"),
        batch.schema.field("headers"),
        pc.if_else(is_empty, pa.scalar(None, headers.type), headers),
    )
