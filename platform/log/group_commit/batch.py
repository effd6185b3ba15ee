"""What group commit is given, what it answers, and how the submissions of one entry are staged and told apart again."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.log.base.errors import InvalidRecordError, TidelogError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.actions import Metadata
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.records.checks import to_records
from tidelog.log.rules.appends import Ranges
from tidelog.log.rules.sequences import ProducerBatch, Sequences
from tidelog.log.rules.topics import require_partition
from tidelog.log.segments.staging import Stager
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic

I32 = npt.NDArray[np.int32]

# Stands for the offsets of records that were there already: nobody knows any more which they got.
REPEATED = (-1, -1)


@dataclass(frozen=True, slots=True)
class Submission:
    """Records of one producer for one topic, committed together or not at all.

    `table`: columns as `Topic.append` takes them, without `partition`; `partitions`: one for each row. `producer`
    says the sequences of each partition's rows, in their order. `acks`: 1, or -1 for all. `compression` and
    `compression_level` are the producer's wish. `timeout_s`: how long it may be tried from now on.
    """

    table: pa.Table
    partitions: I32
    producer: ProducerBatch | None = None
    acks: int = -1
    compression: str | None = None
    compression_level: int | None = None
    timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Landed:
    """Where records are: {partition: (first offset, end offset)}, `REPEATED` for those that were there before.

    `append_ms`: their timestamp where the topic has LogAppendTime (ms since the epoch), else None.
    """

    ranges: Ranges
    append_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """How submissions gather. `linger_s`: how long one waits at most for others; `entry_bytes`: an entry is due once
    so much waits, and takes hardly more; `waiting_bytes`: what may wait at all. A failed attempt is repeated after
    `backoff_s`, twice as long each time up to `most_backoff_s`, at most `retries` times."""

    linger_s: float = 0.005
    entry_bytes: int = 32 * 1024 * 1024
    waiting_bytes: int = 256 * 1024 * 1024
    retries: int = 2**31 - 1
    backoff_s: float = 0.1
    most_backoff_s: float = 1.0


@dataclass(slots=True)
class Waiting:
    """A submission, who waits for it, and until when (seconds on the elapsed clock)."""

    submission: Submission
    future: Future[Landed]
    since_s: float
    deadline_s: float
    size: int
    counts: dict[int, int]
    # Where its records were there already, as far as the last look at the log says.
    repeated: frozenset[int] = frozenset()

    def resolve(self, ranges: Ranges, append_ms: int | None) -> None:
        """Tell who waits, unless that has been told already."""
        with suppress(InvalidStateError):
            self.future.set_result(Landed(ranges, append_ms))

    def fail(self, error: BaseException) -> None:
        """Tell who waits, unless that has been told already."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)


def counted(submission: Submission, topic: str) -> dict[int, int]:
    """{partition: rows}. Raises `InvalidRecordError` when the submission contradicts itself."""
    rows = submission.table.num_rows
    if len(submission.partitions) != rows or not rows:
        raise InvalidRecordError(
            f"{len(submission.partitions)} partitions were given for {rows} records of topic '{topic}': each record"
            " has one, and there is at least one record."
        )
    by_partition = rows_by_partition(submission.partitions)
    producer = submission.producer
    if producer is not None and {p: n for p, (_, n) in producer.sequences.items()} != by_partition:
        raise InvalidRecordError(
            f"Producer {producer.producer_id} gives sequences {dict(producer.sequences)} for {by_partition} records of"
            f" topic '{topic}': every partition's records have theirs."
        )
    return by_partition


def rows_by_partition(partitions: I32) -> dict[int, int]:
    """{partition: rows}, for any numbers that may come."""
    if int(partitions.min()) < 0 or int(partitions.max()) > len(partitions) + 1024:
        found, counts = np.unique(partitions, return_counts=True)
        return dict(zip(found.tolist(), counts.tolist(), strict=True))
    rows = np.bincount(partitions)  # many times as fast, and takes memory for every number up to the largest
    return {p: rows_of for p, rows_of in enumerate(rows.tolist()) if rows_of}


@dataclass(slots=True)
class Group:
    """The submissions of one entry, in their order, from the first attempt until all are answered.

    `staged` is None until they are staged; `in_doubt` says that an entry of `request_id` may be there.
    """

    members: list[Waiting]
    request_id: str
    staged: list[Staged] | None = None
    staged_members: list[Waiting] = field(default_factory=list)
    metadata: Metadata | None = None
    append_ms: int | None = None
    stagers: list[Stager] = field(default_factory=list)
    in_doubt: bool = False
    unknown: int = 0
    attempts: int = 0
    not_before_s: float = 0.0
    at_least_ms: int = 0

    @property
    def open(self) -> list[Waiting]:
        """The members that are not answered yet."""
        return [m for m in self.members if not m.future.done()]

    def stage(self, topic: Topic, now_ms: int, helpers: Executor | None) -> None:
        """Stage what is new of the open members. Those that are refused, or there already, are answered."""
        state, config = topic.known, topic.config()
        now_ms = max(now_ms, self.at_least_ms)
        accepted = _accepted(self.open, topic, state, config, now_ms)
        self.metadata = state.metadata
        self.append_ms = now_ms if config.timestamp_type == LOG_APPEND_TIME else None
        by_codec: dict[tuple[str | None, int | None], list[tuple[Waiting, pa.Table, I32]]] = {}
        for member, records in accepted:
            asked = member.submission
            new = _without_repeats(records, member)
            by_codec.setdefault((asked.compression, asked.compression_level), []).append((member, *new))
        staged: list[Staged] = []
        self.staged_members = []
        for (codec, level), parts in by_codec.items():
            stager = topic.stager(codec, level, helpers)
            self.stagers.append(stager)
            _, records, chosen = parts[0]
            if len(parts) > 1:
                records = pa.concat_tables([part[1] for part in parts])
                chosen = np.concatenate([part[2] for part in parts])
            stager.add(records, chosen)
            staged += stager.finish()
            self.staged_members += [member for member, _, _ in parts]
        self.staged = staged

    def unstage(self) -> None:
        """Delete what was staged: nobody has committed it."""
        for stager in self.stagers:
            stager.abort()
        self.forget_staged()

    def forget_staged(self) -> None:
        """Leave what was staged where it is: an entry may name it."""
        self.stagers = []
        self.staged = None

    def producers(self) -> list[ProducerBatch]:
        """What the staged records' producers say of them."""
        batches = []
        for member in self.staged_members:
            batch = member.submission.producer
            if batch is not None:
                left = {p: s for p, s in batch.sequences.items() if p not in member.repeated}
                batches.append(ProducerBatch(batch.producer_id, batch.epoch, left))
        return batches

    def share(self, ranges: Ranges) -> None:
        """Tell each member which of the entry's offsets are its own."""
        at = {p: first for p, (first, _) in ranges.items()}
        for member in self.staged_members:
            own: Ranges = {}
            for partition, count in member.counts.items():
                if partition in member.repeated or partition not in at:
                    own[partition] = REPEATED
                else:
                    own[partition] = (at[partition], at[partition] + count)
                    at[partition] += count
            member.resolve(own, self.append_ms)


def _accepted(
    members: Sequence[Waiting], topic: Topic, state: TopicState, config: TopicConfig, now_ms: int
) -> list[tuple[Waiting, pa.Table]]:
    """The members that can be appended now, with their records; the others are answered."""
    sequences = Sequences(state, topic.name)
    accepted = []
    for member, records in zip(members, _checked(members, topic.name, config, now_ms), strict=True):
        try:
            if isinstance(records, TidelogError):
                raise records
            for partition in member.counts:
                require_partition(state, topic.name, partition)
            batch = member.submission.producer
            member.repeated = frozenset() if batch is None else sequences.take(batch)
        except TidelogError as e:
            member.fail(e)
            continue
        if len(member.repeated) == len(member.counts):
            member.resolve(dict.fromkeys(member.counts, REPEATED), None)
        else:
            accepted.append((member, records))
    return accepted


def _checked(members: Sequence[Waiting], topic: str, config: TopicConfig, now_ms: int) -> list[pa.Table | TidelogError]:
    """Each member's records, or why they are refused. All are checked as one table, unless that is refused."""
    tables = [member.submission.table for member in members]
    if len(tables) > 1 and all(t.schema.equals(tables[0].schema) for t in tables):
        try:
            whole = to_records(pa.concat_tables(tables), topic, config, now_ms)
        except TidelogError:
            pass  # one by one, to see whose it is
        else:
            starts = np.cumsum([0, *(t.num_rows for t in tables)]).tolist()
            return [whole.slice(at, t.num_rows) for at, t in zip(starts, tables, strict=False)]
    checked: list[pa.Table | TidelogError] = []
    for table in tables:
        try:
            checked.append(to_records(table, topic, config, now_ms))
        except TidelogError as e:
            checked.append(e)
    return checked


def _without_repeats(records: pa.Table, member: Waiting) -> tuple[pa.Table, I32]:
    partitions = member.submission.partitions
    if not member.repeated:
        return records, partitions
    new = ~np.isin(partitions, list(member.repeated))
    return records.filter(pa.array(new)), partitions[new]
