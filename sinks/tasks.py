"""What a sink's task does: rows of one Spark partition become staged segments, topic by topic.

Nothing is committed here. What was written goes back to the driver as a value; memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.config import TopicConfig
from tidelog.log.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.log.segments import Staged
from tidelog.log.staging import Stager, Target, stage_records
from tidelog.sinks.options import NULL_TOPIC, SinkOptions
from tidelog.sinks.partitioner import load_partitioner

# Arrow batches from Spark hold 10,000 rows by default: gathered up to this, the work by column is worth it.
GATHERED_RECORDS = 65_536
GATHERED_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic to stage records for, as the driver or the task found it."""

    name: str
    target: Target
    config: TopicConfig


@dataclass(frozen=True, slots=True)
class StagedTopics:
    """What a task wrote: {topic: segments in the order of its rows}."""

    segments: Mapping[str, tuple[Staged, ...]] = field(default_factory=dict)


def open_target(lake: Lake, name: str, compression: str | None) -> TopicTarget:
    """Find a topic to write to, and create it when the lake allows that."""
    lake.ensure_topic(name)
    topic = lake.topic(name)
    return TopicTarget(name, topic.target(compression), topic.config())


def stage(
    batches: Iterable[pa.RecordBatch], names: list[str], options: SinkOptions, lake: Lake, known: TopicTarget | None
) -> StagedTopics:
    """Stage the rows of `batches`, whose columns are `names` in order. `known` is the topic of option `topic`.

    On an error everything staged is deleted again. With acks=all the segments survive a power loss on return.
    """
    stagers: dict[str, tuple[TopicTarget, Stager]] = {}
    partitioner = load_partitioner(options.partitioner)
    turn = int(lake.ids.fraction() * 2**31)
    try:
        for table in _gathered(batches, names):
            for name, rows in _by_topic(table, options):
                if name not in stagers:
                    found = known if known and known.name == name else open_target(lake, name, options.compression)
                    stagers[name] = (found, Stager(lake.storage, found.target, lake.ids))
                target, stager = stagers[name]
                turn += 1
                records = rows.select([c for c in rows.column_names if _counts(c, options)])
                stage_records(stager, records, name, target.config, partitioner, turn, lake.clock.now_ms())
        staged = {name: (target, stager.finish()) for name, (target, stager) in stagers.items()}
        if options.acks == "all":
            lake.storage.sync(f"{t.target.folder}/{s.path}" for t, segments in staged.values() for s in segments)
    except BaseException:
        for _, stager in stagers.values():
            stager.abort()
        raise
    return StagedTopics({name: tuple(segments) for name, (_, segments) in staged.items() if segments})


def _counts(column: str, options: SinkOptions) -> bool:
    """Whether the sink writes a column: others have no effect, as in Kafka's sink."""
    return column in ("key", "value", "headers", "partition") or (column == "timestamp" and options.include_timestamp)


def _gathered(batches: Iterable[pa.RecordBatch], names: list[str]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        waiting.append(pa.RecordBatch.from_arrays(batch.columns, names=names))
        records += batch.num_rows
        size += batch.nbytes
        if records >= GATHERED_RECORDS or size >= GATHERED_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, records, size = [], 0, 0
    if records:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _by_topic(table: pa.Table, options: SinkOptions) -> Iterator[tuple[str, pa.Table]]:
    if options.topic is not None:
        yield options.topic, table
        return
    topics = table.column("topic")
    if topics.null_count:
        raise InvalidOptionError(NULL_TOPIC)
    for name in sorted(pc.unique(topics).to_pylist()):
        yield name, table.filter(pc.equal(topics, name))
