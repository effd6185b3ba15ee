"""What a sink's task does: rows of one Spark partition become staged segments, topic by topic.

A task commits nothing: it returns its segments to the driver. Its memory stays bounded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.door.commit_objects import make_durable
from tidelog.log.lake import Lake
from tidelog.log.records.partitioners import PARTITIONERS, Partitioner
from tidelog.log.segments.staging import WAITING_BYTES, Stager, Target, stage_records
from tidelog.log.segments.writer import Staged
from tidelog.log.storage import Storage
from tidelog.log.storage.orphans import discard
from tidelog.log.topic import Topic
from tidelog.sinks.options import NULL_TOPIC, SinkOptions

# Arrow batches from Spark hold 10,000 rows by default; work by column pays off on larger tables.
GATHERED_RECORDS = 65_536
GATHERED_BYTES = 16 * 1024 * 1024

# {topic: its segments, in the order of their rows}
Segments = Mapping[str, Sequence[Staged]]


@dataclass(frozen=True, slots=True)
class TopicTarget:
    """A topic to stage records for, as the driver or the task found it."""

    name: str
    target: Target
    config: TopicConfig


def open_target(lake: Lake, name: str, compression: str | None) -> TopicTarget:
    """Find a topic to write to, and create it when the lake allows that."""
    lake.ensure_topic(name)
    topic = lake.topic(name)
    return TopicTarget(name, topic.target(compression), topic.config())


def stage(
    batches: Iterable[pa.RecordBatch],
    names: list[str],
    options: SinkOptions,
    lake: Lake,
    topic: TopicTarget | None,
    planned_ms: int,
) -> Segments:
    """Stage the rows of `batches`, whose columns are `names` in order. `topic`: that of option `topic`.

    `planned_ms` (since the epoch) is the LogAppendTime of the whole batch: tasks that run side by side must not
    make it go back and forth. On an error everything staged is deleted again. With acks=all, or where the rows may go
    to several topics, the segments survive a power loss on return: an intent must be able to rely on them.
    """
    opened: dict[str, _TaskStaging] = {}
    partitioner = load_partitioner(options.partitioner)
    turn = int(lake.ids.fraction() * 2**31)
    try:
        for table in _gathered(batches, _columns(names, options)):
            for name, records in _by_topic(table, options):
                if name not in opened:
                    found = topic if topic and topic.name == name else open_target(lake, name, options.compression)
                    opened[name] = _TaskStaging(lake, found, options.compression)
                target, stager = opened[name].target, opened[name].stager_for(records)
                turn += 1
                lake.time.keep(lake.storage, target.target.folder)
                judged_ms = lake.time.judged_ms()
                now_ms = planned_ms if target.config.timestamp_type == LOG_APPEND_TIME else judged_ms
                stage_records(stager, records, name, target.config, partitioner, turn, now_ms)
            _bound([stager for staging in opened.values() for stager in staging.stagers])
        staged = {name: staging.finish() for name, staging in opened.items()}
        if options.acks == "all" or options.topic is None:
            folders = {name: staging.target.target.folder for name, staging in opened.items()}
            paths = [f"{folders[name]}/{s.path}" for name, segments in staged.items() for s in segments]
            make_durable(lake.storage, paths)
    except BaseException:
        for staging in opened.values():
            for stager in staging.stagers:
                stager.abort()
        raise
    return {name: segments for name, segments in staged.items() if segments}


class _TaskStaging:
    """A task's segments of one topic. `stagers`: one after another, each for what the topic's table knew by then."""

    def __init__(self, lake: Lake, target: TopicTarget, compression: str | None) -> None:
        self.target = target
        self._lake = lake
        self._compression = compression
        self._typed: Topic | None = None
        if target.target.typing is None:
            self.stagers = [Stager(lake.storage, target.target, lake.ids)]
        else:
            self._typed = lake.topic(target.name)
            self.stagers = [self._typed.stager(compression)]

    def stager_for(self, records: pa.Table) -> Stager:
        """What stages these records next. A typed topic's table knows their values' schemas then."""
        if self._typed is not None:
            self._typed.grow_for(records)
            if self._typed.typing() is not self.stagers[-1].typing:
                self.stagers[-1].finish()
                self.stagers.append(self._typed.stager(self._compression))
        return self.stagers[-1]

    def finish(self) -> tuple[Staged, ...]:
        """All segments, in the order of their rows."""
        return tuple(segment for stager in self.stagers for segment in stager.finish())


def merged(staged: Iterable[Segments]) -> Segments:
    """What all tasks of a batch staged: topics by name, tasks in their order."""
    by_topic: dict[str, list[Staged]] = {}
    for one in staged:
        for name, segments in one.items():
            by_topic.setdefault(name, []).extend(segments)
    return dict(sorted(by_topic.items()))


def discard_segments(storage: Storage, segments: Segments) -> None:
    """Discard segments that no log entry names, and none will name."""
    discard(storage, (f"{topic}/{segment.path}" for topic, staged in segments.items() for segment in staged))


def _columns(names: Sequence[str], options: SinkOptions) -> dict[str, int]:
    """Where the columns are that the sink writes: the first of equal names; others have no effect, as in Kafka."""
    # A typed topic makes the bytes of columns that come without.
    counts = {"key", "value" if "value" in names else "columns", "headers", "partition"}
    counts |= {"timestamp"} if options.include_timestamp else set()
    counts |= {"topic"} if options.topic is None else set()
    places: dict[str, int] = {}
    for at, name in enumerate(names):
        if name in counts:
            places.setdefault(name, at)
    return places


def _gathered(batches: Iterable[pa.RecordBatch], columns: Mapping[str, int]) -> Iterator[pa.Table]:
    """The columns that count, in tables that are worth the work; each in one chunk."""
    waiting: list[pa.RecordBatch] = []
    records = size = 0
    for batch in batches:
        taken = pa.RecordBatch.from_arrays([batch.column(at) for at in columns.values()], names=list(columns))
        waiting.append(taken)
        records += taken.num_rows
        size += taken.nbytes
        if records >= GATHERED_RECORDS or size >= GATHERED_BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, records, size = [], 0, 0
    if records:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _by_topic(table: pa.Table, options: SinkOptions) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each topic, in their order."""
    if options.topic is not None:
        yield options.topic, table
        return
    topics = table.column("topic")
    if topics.null_count:
        raise InvalidOptionError(NULL_TOPIC)
    codes = topics.combine_chunks().dictionary_encode()
    names, rows = codes.dictionary.to_pylist(), np.asarray(codes.indices)
    if len(names) == 1:
        yield names[0], table.drop_columns("topic")
        return
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(names) + 1))
    for name, (start, end) in zip(names, pairwise(starts.tolist()), strict=True):
        yield name, table.take(pa.array(order[start:end])).drop_columns("topic")


def _bound(stagers: Sequence[Stager]) -> None:
    """Write early so that the rows that wait, over all topics, stay below the bound of one."""
    while sum(stager.waiting_bytes for stager in stagers) > WAITING_BYTES:
        max(stagers, key=lambda stager: stager.waiting_bytes).write_largest()


def load_partitioner(name: str) -> str | Partitioner:
    """The partitioner that option `partitioner` names: a rule's name as it is, or the function `module:function`."""
    if name in PARTITIONERS:
        return name
    module, _, function = name.partition(":")
    try:
        partitioner = getattr(import_module(module), function)
    except (ImportError, AttributeError) as e:
        raise InvalidOptionError(
            f"Partitioner '{name}' can't be loaded: {e}. Ship its module to the executors (spark-submit --py-files)."
        ) from e
    if not callable(partitioner):
        raise InvalidOptionError(
            f"Partitioner '{name}' is {type(partitioner).__name__}, not a function of keys and a count."
        )
    return partitioner  # type: ignore[no-any-return]
