"""The rules of an append: which offsets staged segments get, and which appends are refused or repeats."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidelog.log.base.errors import (
    DuplicateSegmentError,
    InvalidConfigError,
    InvalidTimestampError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    SegmentTooOldError,
    StaleBatchError,
    TidelogError,
)
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn
from tidelog.log.rules.sequences import ProducerBatch, Sequences
from tidelog.log.rules.topics import Outcome, require_partition, require_topic
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


class UnsettledRequestError(Exception):
    """Segments have left the topic since these were staged, so that its state can't rule a repeat out: ask the log."""


class HeadMovedError(TidelogError, retriable=True):
    """Others have appended since the topic was read: read on, and decide again."""


class ConfigurationChangedError(Exception):
    """The topic's configuration is not the one that records were checked against: check and stage them again."""


def decide_append(
    state: TopicState,
    topic: str,
    staged: Sequence[Staged],
    *,
    now_ms: int,
    log_append_time: bool = False,
    marker: Marker | None = None,
    producers: Sequence[ProducerBatch] = (),
    new_until: int | None = None,
) -> Outcome[Ranges]:
    """Append staged segments in their order; the response is {partition: (first offset, end offset)}.

    Segments that the topic holds already, all of them, are a repeat: no actions, and the response that they got first.
    A repeat of `marker`, or of all that `producers` say of the records, has no actions and an empty response.
    `producers` come in the order in which their records were staged; one producer may come several times.
    `new_until`: the request may be a repeat, and no entry up to this one is its first; None where the caller knows that
    it is new. Raises `UnsettledRequestError`.
    """
    for topic_id in sorted({s.topic_id for s in staged}) or [""]:
        require_topic(state, topic, topic_id)
    first = first_answer(state, staged)
    if first:
        return Outcome((), first, "WRITE")
    if marker is not None and _is_repeat(state, topic, marker):
        return Outcome((), {}, "WRITE")
    sequences = Sequences(state, topic)
    repeats = [(len(sequences.take(batch)), len(batch.sequences)) for batch in producers]
    if any(repeated for repeated, _ in repeats):
        if all(repeated == of for repeated, of in repeats):
            return Outcome((), {}, "WRITE")
        raise PartlyRepeatedError(
            f"Topic '{topic}' already has some of these records, by their producers' sequences, but not all: an entry"
            " holds whole segments. Stage the others again without them."
        )
    known = min((s.known_version for s in staged), default=state.version)
    if new_until is not None and max(known, new_until) < state.removed_at:
        raise UnsettledRequestError
    actions, ranges = segment_actions(state, topic, staged, now_ms)
    check_purge_floor(state, topic, staged)
    if log_append_time:
        check_append_times(state, topic, staged)
    if marker is not None:
        actions.append(Txn(marker.app_id, marker.version))
    actions.extend(sequences.txns(now_ms))
    return Outcome(tuple(actions), ranges, "WRITE", blind_append=True)


def decide_append_at(
    state: TopicState,
    topic: str,
    staged: Sequence[Staged],
    end: int,
    *,
    now_ms: int,
    log_append_time: bool = False,
    new_until: int | None = None,
) -> Outcome[Ranges]:
    """Append staged segments if partition 0 still ends at `end`, the offset up to which the caller has read it.

    Segments that the topic holds already are a repeat, and get the response that they got first, wherever it ends by
    now. So a writer that had no answer may ask again with the same segments. Raises `HeadMovedError`, and as
    `decide_append`.
    """
    first = first_answer(state, staged)
    if first:
        return Outcome((), first, "WRITE")
    if state.end(ORDERED_PARTITION) != end:
        raise HeadMovedError(
            f"Topic '{topic}' ends at offset {state.end(ORDERED_PARTITION)} by now, and was read up to {end}: what was"
            " decided may no longer hold. Read on, and decide again."
        )
    outcome = decide_append(state, topic, staged, now_ms=now_ms, log_append_time=log_append_time, new_until=new_until)
    return replace(outcome, blind_append=False)


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
            first, base = ranges.get(number) or (self._ends.get(number, state.end(number)),) * 2
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


def _is_repeat(state: TopicState, topic: str, marker: Marker) -> bool:
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
