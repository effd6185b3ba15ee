"""The rule of a joint append: what several writers have staged becomes one entry, with an answer for each of them.

One writer's refusal is no other writer's matter. A writer that got no answer may commit its segments itself, so each
part may be there already: a part lands once, whichever writer commits it, and however late.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidelog.log.base.errors import TidelogError
from tidelog.log.rules.appends import (
    AddedSegments,
    ConfigurationChangedError,
    LogAppendTimeError,
    PartlyRepeatedError,
    Ranges,
    UnsettledRequestError,
    check_append_times,
    check_purge_floor,
    first_answer,
)
from tidelog.log.rules.sequences import ProducerBatch, Sequences
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState

# {partition: (first offset, end offset)}, or why a part is not in the log.
PartAnswer = Ranges | TidelogError | ConfigurationChangedError | UnsettledRequestError


@dataclass(frozen=True, slots=True)
class StagedShare:
    """What one writer has staged of one topic, at least one segment.

    `configuration`: the digest of the topic's metadata by which the records were checked. `producers`: what idempotent
    producers say of them, in the order in which they were staged; one producer may come several times. `acks`: 1 or -1
    (all). `new_until`: the part may have landed, though by no entry up to this one; None where it is known to be new.
    """

    segments: Sequence[Staged]
    configuration: str
    producers: Sequence[ProducerBatch] = ()
    acks: int = -1
    new_until: int | None = None

    def repeated(self) -> "StagedShare":
        """The same part, which may have landed."""
        return replace(self, new_until=-1) if self.new_until is None else self


def decide_joint_append(
    state: TopicState,
    topic: str,
    parts: Sequence[StagedShare],
    *,
    configuration: str,
    now_ms: int,
    log_append_time: bool = False,
) -> Outcome[Sequence[PartAnswer]]:
    """Append the parts in their order; the response has an answer for each.

    A part whose segments the topic holds gets the answer that it got first. A part of which all records are there, by
    their producers' sequences, gets {}. One that may have landed and whose segments may have left the topic since gets
    `UnsettledRequestError`: ask the log. A part that is refused has nothing in the entry. `configuration`: the digest
    of the state's metadata.
    """
    sequences, added = Sequences(state, topic), AddedSegments(state, topic, now_ms)
    newest_ms: dict[int, int] = {}
    answers: list[PartAnswer] = []
    taken = False
    for part in parts:
        fork = sequences.fork()
        answer: PartAnswer | None
        try:
            answer = _earlier_answer(state, topic, part, configuration, fork)
            if answer is None:
                if log_append_time:
                    _check_times(state, topic, part.segments, newest_ms)
                answer = added.take(part.segments)
                sequences, taken = fork, True
                for segment in part.segments:
                    newest = max(newest_ms.get(segment.partition, 0), segment.max_timestamp_ms)
                    newest_ms[segment.partition] = newest
        except (TidelogError, ConfigurationChangedError, UnsettledRequestError) as e:
            answer = e
        answers.append(answer)
    if not taken:
        return Outcome((), answers)
    return Outcome((*added.actions(), *sequences.txns(now_ms)), answers, blind_append=True)


def _earlier_answer(
    state: TopicState, topic: str, part: StagedShare, configuration: str, sequences: Sequences
) -> Ranges | None:
    """What a part got by an entry before; None where it is new. Raises why it can't be taken."""
    for topic_id in {segment.topic_id for segment in part.segments}:
        require_topic(state, topic, topic_id)
    found = first_answer(state, part.segments)
    if found:
        return found
    known = min(segment.known_version for segment in part.segments)
    if part.new_until is not None and max(known, part.new_until) < state.removed_at:
        raise UnsettledRequestError
    repeats = [(len(sequences.take(batch)), len(batch.sequences)) for batch in part.producers]
    if any(repeated for repeated, _ in repeats):
        numbered = sum(count for batch in part.producers for _, count in batch.sequences.values())
        if all(repeated == of for repeated, of in repeats) and numbered == sum(s.records for s in part.segments):
            return {}
        raise PartlyRepeatedError(
            f"Topic '{topic}' already has some of these records, by their producers' sequences, but not all: an entry"
            " holds whole segments. Stage the others again without them."
        )
    if part.configuration != configuration:
        raise ConfigurationChangedError
    check_purge_floor(state, topic, part.segments)
    return None


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
