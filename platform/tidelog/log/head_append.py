"""An append of few records that a caller's own rule decides: it lands only where the rule still holds at the head."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from tidelog.log.base.errors import OutcomeUnknownError
from tidelog.log.rules.appends import Ranges, UnsettledRequestError
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.staging import stage_records
from tidelog.log.segments.writer import Staged
from tidelog.log.staged_append import StagedAppend, append_staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.topic import Topic

# How often an append without an answer is asked for again before the caller hears of it.
_ATTEMPTS: Final = 3


class HeadRule(Protocol):
    """A pure rule about an append; it may be asked more than once."""

    def __call__(
        self,
        state: TopicState,
        segments: Sequence[Staged],
        *,
        now_ms: int,
        log_append_time: bool,
        new_until: int | None,
    ) -> Outcome[Ranges]:
        """Append the segments, or raise."""


def append_decided(topic: Topic, table: pa.Table, rule: HeadRule) -> Ranges:
    """Append records as `rule` decides at the head of the topic's log; they survive a power loss on return.

    Raises what the rule does, and `OutcomeUnknownError` where the records may be there: read, and decide again.
    """
    return append_staged(lambda at_least_ms: _staged(topic, table, at_least_ms), lambda one: _commit(topic, one, rule))


def _commit(topic: Topic, staged: StagedAppend, rule: HeadRule) -> Ranges:
    known = min(segment.known_version for segment in staged.segments)
    new_until: int | None = None

    def decide(state: TopicState, now_ms: int, by_committer: bool) -> Outcome[Ranges]:
        return rule(state, staged.segments, now_ms=now_ms, log_append_time=by_committer, new_until=new_until)

    for left in reversed(range(_ATTEMPTS)):
        try:
            return topic.commit_decided(decide, durable=True)
        except OutcomeUnknownError:
            staged.in_doubt = True
            if not left:
                raise
            new_until = known
        except UnsettledRequestError as error:
            raise OutcomeUnknownError(
                f"Whether records were appended to '{topic.name}' is not known: the store gave no answer, and the"
                " topic was compacted meanwhile. Decide again, and see what is there.",
                request_id="",
            ) from error
    raise AssertionError("the last attempt returns or raises")


def _staged(topic: Topic, table: Any, at_least_ms: int) -> StagedAppend:
    metadata, stager = topic.known.metadata, topic.stager()
    try:
        now_ms = max(topic.now_ms(), at_least_ms)
        stage_records(stager, table, topic.name, topic.config(), "murmur2", 0, now_ms)
        return StagedAppend(metadata, stager, stager.finish())
    except BaseException:
        stager.abort()
        raise
