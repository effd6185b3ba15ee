"""The rule of appends: what one writer has staged, or several, becomes one entry, with an answer for each of them.

One writer's refusal is no other writer's matter. A writer that got no answer may commit its segments itself, so each
share may be there already: a share lands once, whichever writer commits it, and however late.
"""

from collections.abc import Sequence

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta.actions import Txn
from tidelog.log.rules.appends import (
    ORDERED_PARTITION,
    UNSETTLED,
    AddedSegments,
    AppendAnswer,
    CommitOutcome,
    HeadMovedError,
    LogAppendTimeError,
    PartlyRepeatedError,
    StagedShare,
    check_append_times,
    check_purge_floor,
    committed,
    first_answer,
    is_repeated_batch,
    refusal,
)
from tidelog.log.rules.sequences import Sequences
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState


def decide_joint_append(
    state: TopicState,
    topic: str,
    shares: Sequence[StagedShare],
    *,
    configuration: str = "",
    now_ms: int,
    log_append_time: bool = False,
) -> Outcome[Sequence[AppendAnswer]]:
    """Append the shares in their order; the response has an answer for each.

    A share whose segments the topic holds gets the ranges that it got first. One of which all records are there, by
    their producers' sequences or by its marker, gets {}. One that may have landed and whose segments may have left the
    topic since gets `UNSETTLED`. What is not committed has nothing in the entry. `configuration`: the digest of the
    state's metadata.
    """
    sequences, added = Sequences(state, topic), AddedSegments(state, topic, now_ms)
    newest_ms: dict[int, int] = {}
    markers: dict[str, int] = {}
    answers: list[AppendAnswer] = []
    taken: list[StagedShare] = []
    for share in shares:
        fork = sequences.fork() if share.producers else sequences
        try:
            answer = _earlier_answer(state, topic, share, configuration, fork)
            if answer is None:
                _check_head(topic, share, added.end(ORDERED_PARTITION))
                if log_append_time:
                    _check_times(state, topic, share.segments, newest_ms)
                answer = committed(added.take(share.segments))
                sequences = fork
                taken.append(share)
                if share.marker is not None:
                    markers[share.marker.app_id] = share.marker.version
                for segment in share.segments:
                    newest = max(newest_ms.get(segment.partition, 0), segment.max_timestamp_ms)
                    newest_ms[segment.partition] = newest
        except TidelogError as e:
            answer = refusal(e)
        answers.append(answer)
    if not taken:
        return Outcome((), answers)
    marked = [Txn(app_id, version) for app_id, version in markers.items()]
    return Outcome(
        (*added.actions(), *marked, *sequences.txns(now_ms)),
        answers,
        blind_append=all(share.only_at is None for share in taken),
        elsewhere=any(share.by_others for share in taken),
        synced=all(share.synced for share in taken),
    )


def _earlier_answer(
    state: TopicState, topic: str, share: StagedShare, configuration: str, sequences: Sequences
) -> AppendAnswer | None:
    """What became of a share by an entry before, or why it is stale; None where it is new. Raises its refusal."""
    for topic_id in {segment.topic_id for segment in share.segments} or {""}:
        require_topic(state, topic, topic_id)
    ranges = first_answer(state, share.segments)
    if ranges:
        return committed(ranges)
    if share.marker is not None and is_repeated_batch(state, topic, share.marker):
        return committed({})
    if share.segments and share.new_until is not None and max(share.known_version, share.new_until) < state.removed_at:
        return UNSETTLED
    repeats = [(len(sequences.take(batch)), len(batch.sequences)) for batch in share.producers]
    if any(repeated for repeated, _ in repeats):
        if all(repeated == of for repeated, of in repeats) and share.is_numbered:
            return committed({})
        raise PartlyRepeatedError(
            f"Topic '{topic}' already has some of these records, by their producers' sequences, but not all: an entry"
            " holds whole segments. Stage the others again without them."
        )
    if share.configuration is not None and share.configuration != configuration:
        return AppendAnswer(CommitOutcome.STALE)
    check_purge_floor(state, topic, share.segments)
    return None


def _check_head(topic: str, share: StagedShare, end: int) -> None:
    if share.only_at is not None and end != share.only_at:
        raise HeadMovedError(
            f"Topic '{topic}' ends at offset {end} by now, and was read up to {share.only_at}: what was decided may no"
            " longer hold. Read on, and decide again."
        )


def _check_times(state: TopicState, topic: str, staged: Sequence[Staged], newest_ms: dict[int, int]) -> None:
    """LogAppendTime never falls within a partition, not within one entry either."""
    check_append_times(state, topic, staged)
    behind = [s.partition for s in staged if s.min_timestamp_ms < newest_ms.get(s.partition, 0)]
    if behind:
        at_least = max(newest_ms[partition] for partition in behind)
        raise LogAppendTimeError(
            f"Topic '{topic}': partition {behind[0]} gets a record appended at {at_least} (ms) with the same entry,"
            " later than this append's clock. Stage the records again from there.",
            at_least_ms=at_least,
        )
