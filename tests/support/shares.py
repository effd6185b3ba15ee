"""Shares in tests: one writer's by itself, decided or committed, and what became of several in short."""

from collections.abc import Sequence
from typing import Any

from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.clock import SystemClock
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome, Ranges, StagedShare
from tidelog.log.rules.joint_appends import decide_joint_append
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic


def decide_alone(
    state: TopicState, segments: Sequence[Staged], *, now_ms: int, log_append_time: bool = False, **terms: Any
) -> Outcome[Ranges]:
    """An entry of one share of topic t, and its ranges; `terms` are the share's. Raises why it is not committed."""
    share = StagedShare(tuple(segments), **terms)
    outcome = decide_joint_append(state, "t", [share], now_ms=now_ms, log_append_time=log_append_time)
    return Outcome(outcome.actions, outcome.response[0].required(), blind_append=outcome.blind_append)


def commit_alone(
    topic: Topic,
    segments: Sequence[Staged],
    *,
    timeout_s: float | None = None,
    request_id: str | None = None,
    **terms: Any,
) -> Ranges:
    """Commit a share as an entry of its own; `terms` are the share's. Raises why it is not committed."""
    share = StagedShare(tuple(segments), **terms)
    return JointAppend(topic, SystemClock()).commit(share, timeout_s, request_id=request_id).required()


def in_short(answers: Sequence[AppendAnswer]) -> list[Any]:
    """Of each answer the ranges of what is committed, else its error, or the answer itself where it has none."""
    return [
        answer.ranges if answer.outcome is CommitOutcome.COMMITTED else answer.error or answer for answer in answers
    ]
