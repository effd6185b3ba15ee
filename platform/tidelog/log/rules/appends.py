"""What appends are made of: shares that are staged, the offsets that their segments get, and what became of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from tidelog.log.base.errors import (
    DuplicateSegmentError,
    InvalidConfigError,
    InvalidTimestampError,
    MissingSegmentError,
    OffsetOutOfRangeError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    SegmentTooOldError,
    StaleBatchError,
    TidelogError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.rules.topics import require_partition
from tidelog.log.segments.writer import Staged, stats_json
from tidelog.log.state.topic_state import TopicState

Ranges = dict[int, tuple[int, int]]

# The one partition of a topic whose records have one order.
ORDERED_PARTITION: Final = 0

_ACKS = {0: 0, "0": 0, 1: 1, "1": 1, -1: -1, "-1": -1, "all": -1}

# Offsets are LONGs, and so is a partition's end.
_LARGEST_END = 2**63 - 1


def parse_acks(acks: int | str) -> int:
    """Kafka's `acks` as 0, 1 or -1 (all). Raises `InvalidConfigError`."""
    try:
        return _ACKS[acks if isinstance(acks, int) else acks.strip().lower()]
    except (KeyError, AttributeError) as e:
        raise InvalidConfigError(f"Invalid value {acks!r} for acks: it is 0, 1, -1 or 'all'.") from e


@dataclass(frozen=True, slots=True)
class Marker:
    """A writer's own number for its batch, kept under `app_id`: the same number again is a no-op.

    `strict`: a lower number is an error (a streaming query whose checkpoint was copied or restored), else it is
    a no-op too (Delta's `txnVersion`).
    """

    app_id: str
    version: int
    strict: bool


class LogAppendTimeError(InvalidTimestampError, retriable=True):
    """Another writer's LogAppendTime is later than the staged records': stage them again from `at_least_ms`."""

    def __init__(self, message: str, *, at_least_ms: int) -> None:
        super().__init__(message)
        self.at_least_ms = at_least_ms


class PartlyRepeatedError(OutOfOrderSequenceError, retriable=True):
    """Some of the staged records are there already and some are not: stage again only what is new."""


class HeadMovedError(TidelogError, retriable=True):
    """Others have appended since the topic was read: read on, and decide again."""


# The log is not what it was when the records were staged: they are looked at again and staged again. Each comes from a
# decision over a newer state than the one before, in which the same can't be found again.
_STALE: Final = (
    LogAppendTimeError,
    SegmentTooOldError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownPartitionError,
    TopicChangedError,
    UnknownTopicError,
)


class CommitOutcome(StrEnum):
    """What became of what was staged."""

    COMMITTED = "committed"
    # It is in no entry, and the log has changed since it was staged: its records may be staged again.
    STALE = "stale"
    # It is in no entry, and this committer will put it into none.
    REFUSED = "refused"
    # It may be in an entry, now or later.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AppendAnswer:
    """What became of a share.

    `ranges`: {partition: (first offset, end offset)} of what is committed; {} where its records were there already, and
    nothing says at which offsets. `error`: why it is not committed, where there is more to say than the outcome.
    `elsewhere`: another process says so.
    """

    outcome: CommitOutcome
    ranges: Ranges = field(default_factory=dict)
    error: TidelogError | None = None
    elsewhere: bool = False

    @property
    def at_least_ms(self) -> int:
        """The earliest LogAppendTime that the log will accept, ms since the epoch; 0 for any."""
        return self.error.at_least_ms if isinstance(self.error, LogAppendTimeError) else 0

    @property
    def is_stale_for_now(self) -> bool:
        """Whether what the log refuses now may be taken once more, if it becomes what it was."""
        is_gone = isinstance(self.error, TopicChangedError | UnknownTopicError)
        return self.outcome is CommitOutcome.STALE and not is_gone

    def settles(self, share: "StagedShare") -> bool:
        """Whether it is known now what became of the share.

        That a segment is missing proves that no entry names it, and a moved head was found after a look for the share.
        """
        if self.outcome is CommitOutcome.REFUSED:
            return share.new_until is None or isinstance(self.error, MissingSegmentError | HeadMovedError)
        return self.outcome is not CommitOutcome.UNKNOWN

    def required(self) -> Ranges:
        """The ranges of what is committed; raises why it is not."""
        if self.outcome is not CommitOutcome.COMMITTED:
            assert self.error is not None
            raise self.error
        return self.ranges


# The state can't say whether the share was committed, for segments have left the topic since: the log's entries may.
UNSETTLED: Final = AppendAnswer(CommitOutcome.UNKNOWN)


def committed(ranges: Ranges) -> AppendAnswer:
    """The answer for a share that is in the log."""
    return AppendAnswer(CommitOutcome.COMMITTED, ranges)


def refusal(error: TidelogError) -> AppendAnswer:
    """The answer for a share that a rule or the store refused by raising."""
    if isinstance(error, OutcomeUnknownError):
        return AppendAnswer(CommitOutcome.UNKNOWN, error=error)
    stale = isinstance(error, _STALE)
    return AppendAnswer(CommitOutcome.STALE if stale else CommitOutcome.REFUSED, error=error)


@dataclass(frozen=True, slots=True)
class StagedShare:
    """What one writer has staged of one topic, for one entry.

    `configuration`: the digest of the topic's metadata by which the records were checked; None where that doesn't
    matter. `producers`: what idempotent producers say of them, in the order in which they were staged; one producer may
    come several times. `acks`: 1 or -1 (all). `new_until`: the share may have landed, though by no entry up to this
    one; None where it is known to be new. `marker`: the writer's number for it. `only_at`: it is appended only if
    `ORDERED_PARTITION` ends there. `by_others`: another process has staged it; `synced`: and made it durable.
    """

    segments: Sequence[Staged]
    configuration: str | None = None
    producers: Sequence[ProducerBatch] = ()
    acks: int = -1
    new_until: int | None = None
    marker: Marker | None = None
    only_at: int | None = None
    by_others: bool = False
    synced: bool = False

    def repeated(self) -> "StagedShare":
        """The same share, which may have landed."""
        return replace(self, new_until=-1) if self.new_until is None else self

    @property
    def is_numbered(self) -> bool:
        """Whether its producers' sequences say of every record whether it is there."""
        numbered = sum(count for batch in self.producers for _, count in batch.sequences.values())
        return numbered > 0 and numbered == sum(segment.records for segment in self.segments)

    @property
    def known_version(self) -> int:
        """The oldest version that one of its segments was staged at; the share is in no entry up to it."""
        return min((segment.known_version for segment in self.segments), default=-1)


def segment_actions(
    state: TopicState, topic: str, staged: Sequence[Staged], now_ms: int
) -> tuple[list[Action], Ranges]:
    """The actions that append segments in their order, and {partition: (first offset, end offset)}.

    Raises `DuplicateSegmentError` for one that the topic holds already, or that comes twice.
    """
    added = AddedSegments(state, topic, now_ms)
    ranges = added.take(staged)
    return added.actions(), ranges


class AddedSegments:
    """The segments that one entry appends: of one writer, or of several, one after another."""

    def __init__(self, state: TopicState, topic: str, now_ms: int) -> None:
        self._state = state
        self._topic = topic
        self._modified_ms = max(now_ms, state.last_modification_ms)
        self._names: set[str] = set()
        self._ends: dict[int, int] = {}
        self._adds: list[Add] = []

    def take(self, staged: Sequence[Staged]) -> Ranges:
        """Append a writer's segments in their order: {partition: (first offset, end offset)}.

        What is refused changes nothing. Raises as `segment_actions`.
        """
        state, topic = self._state, self._topic
        ranges: Ranges = {}
        adds: list[Add] = []
        names: set[str] = set()
        for segment in staged:
            require_partition(state, topic, segment.partition)
            _require_new(state, topic, segment, self._names, names)
            number = segment.partition
            first, base = ranges.get(number) or (self.end(number),) * 2
            end = base + segment.records
            if end > _LARGEST_END:
                raise OffsetOutOfRangeError(
                    f"Topic '{topic}': partition {number} ends at offset {base}, and {segment.records} records"
                    f" more would need offsets past {_LARGEST_END - 1}, the largest that a reader can hold. Nothing was"
                    " appended. Send them to another partition, or to a new topic."
                )
            ranges[number] = (first, end)
            stats = stats_json(segment.records, segment.records - 1, segment.min_timestamp_ms, segment.max_timestamp_ms)
            adds.append(Add(segment.path, number, base, segment.size, self._modified_ms, True, stats, end))
        self._adds += adds
        self._names |= names
        self._ends.update((number, end) for number, (_, end) in ranges.items())
        return ranges

    def end(self, partition: int) -> int:
        """Where a partition ends behind what was taken."""
        return self._ends.get(partition, self._state.end(partition))

    def actions(self) -> list[Action]:
        """The actions of the entry."""
        return [*self._adds, *(Txn(f"{layout.END_PREFIX}{p}", end) for p, end in sorted(self._ends.items()))]


def _require_new(state: TopicState, topic: str, staged: Staged, others: set[str], names: set[str]) -> None:
    """Refuse a segment that is there: its records would be there twice, and a checkpoint would keep one of the two.

    `others` are the names of other writers' segments, `names` those of the segments before it, to which its own is
    added.
    """
    name = layout.segment_name(staged.path)[1]
    if name in names or name in others:
        raise DuplicateSegmentError(
            f"Topic '{topic}': segment {staged.path} is given twice in one commit. A segment is committed once: give it"
            " once, and stage its records again to append them once more."
        )
    names.add(name)
    there = state.find(staged.partition, staged.path)
    if there is not None:
        raise DuplicateSegmentError(
            f"Topic '{topic}': segment {staged.path} is in partition {staged.partition} already, at offsets"
            f" [{there.base_offset}, {there.end}): it was committed before, and not with these segments. A segment is"
            " committed once. Commit the others without it; to append its records once more, stage them again."
        )


def first_answer(state: TopicState, staged: Sequence[Staged]) -> Ranges:
    """Where the topic holds these segments, which is what their commit answered; {} when it doesn't hold them all.

    Nor when other segments are between them: then they were not committed together.
    """
    ranges: Ranges = {}
    for segment in staged:
        there = state.find(segment.partition, segment.path)
        if there is None:
            return {}
        first, end = ranges.get(segment.partition, (there.base_offset,) * 2)
        if end != there.base_offset:
            return {}
        ranges[segment.partition] = (first, there.end)
    return ranges


def is_repeated_batch(state: TopicState, topic: str, marker: Marker) -> bool:
    """Whether a writer's batch is there already, by its number. Raises `StaleBatchError`."""
    seen = state.txn(marker.app_id)
    if seen is None or marker.version > seen:
        return False
    if marker.strict and marker.version < seen:
        raise StaleBatchError(
            f"Topic '{topic}' has already taken batch {seen} of this streaming query, and now gets batch"
            f" {marker.version}: the query runs from a copied or restored checkpoint, and its batches would be"
            " lost or doubled. Start it with a new checkpoint folder, which makes it a new query."
        )
    return True


def check_purge_floor(state: TopicState, topic: str, staged: Sequence[Staged]) -> None:
    """Refuse a segment that a purge may have taken for an orphan (docs/format.md, "Purging files")."""
    floor = state.txn(layout.PURGE_TXN)
    old = [s for s in staged if floor is not None and s.known_version < floor]
    if old:
        raise SegmentTooOldError(
            f"Topic '{topic}': segment {old[0].path} was written at version {old[0].known_version}, below the purge"
            f" floor {floor}: its file may already be deleted as an orphan. Write the records again."
        )


def check_append_times(state: TopicState, topic: str, staged: Sequence[Staged]) -> None:
    """LogAppendTime never falls within a partition, whatever the writers' clocks say."""
    behind = [s for s in staged if s.min_timestamp_ms < state.last_timestamp_ms(s.partition)]
    if behind:
        at_least = max(state.last_timestamp_ms(s.partition) for s in behind)
        raise LogAppendTimeError(
            f"Topic '{topic}': partition {behind[0].partition} already has a record appended at {at_least} (ms),"
            " later than this append's clock. Stage the records again from there.",
            at_least_ms=at_least,
        )
