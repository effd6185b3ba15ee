"""The rule of an append that lands only if the head is where it was read."""

from collections.abc import Sequence
from dataclasses import replace

from tidelog.log.base.errors import TidelogError
from tidelog.log.rules.appends import Ranges, decide_append, first_answer
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState

# `_schemas` has one partition, as Confluent's registry makes it.
PARTITION = 0


class HeadMovedError(TidelogError, retriable=True):
    """Others have appended since the topic was read: read on, and decide again."""


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
    if state.end(PARTITION) != end:
        raise HeadMovedError(
            f"Topic '{topic}' ends at offset {state.end(PARTITION)} by now, and was read up to {end}: what was decided"
            " may no longer hold. Read on, and decide again."
        )
    outcome = decide_append(state, topic, staged, now_ms=now_ms, log_append_time=log_append_time, new_until=new_until)
    return replace(outcome, blind_append=False)
