"""Joint appends: what several writers have staged of a topic is committed as one entry, and each gets its answer."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import orjson

from tidelog.log.appends.topic_handle import TopicHandle
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import MissingSegmentError, RequestForgottenError, TidelogError
from tidelog.log.delta.actions import Metadata
from tidelog.log.door.request_history import find_answer
from tidelog.log.rules.appends import UNSETTLED, AppendAnswer, StagedShare, committed, refusal
from tidelog.log.rules.joint_appends import decide_joint_append
from tidelog.log.rules.topics import Outcome, require_topic
from tidelog.log.state.topic_state import TopicState


def configuration_digest(metadata: Metadata | None) -> str:
    """What two processes compare to know whether they see the same configuration of a topic; "" before there is one."""
    if metadata is None:
        return ""
    said: list[object] = [metadata.table_id, metadata.name, metadata.schema, list(metadata.partition_columns)]
    said += [sorted(metadata.configuration.items()), metadata.created_ms]
    return blake2b(orjson.dumps(said), digest_size=16).hexdigest()


class JointAppend:
    """Makes the entries of one topic: the committer of a process that hands nothing over. Any number of threads."""

    def __init__(self, topic: TopicHandle, clock: Clock) -> None:
        self.topic = topic
        self._clock = clock
        self._digest: tuple[Metadata | None, str] = (None, "")

    def digest(self, metadata: Metadata | None) -> str:
        """`configuration_digest`, computed once for each metadata."""
        memo = self._digest
        if memo[0] is not metadata:
            memo = self._digest = (metadata, configuration_digest(metadata))
        return memo[1]

    def hand_over(self, share: StagedShare) -> None:  # noqa: ARG002
        """As `ShareCommitter.hand_over`: to no process."""
        return

    def commit(
        self, share: StagedShare, timeout_s: float | None = None, *, request_id: str | None = None
    ) -> AppendAnswer:
        """Commit one share as an entry of its own; as `commit_all`."""
        return self.commit_all([share], timeout_s, request_id=request_id)[0]

    def commit_all(
        self, shares: Sequence[StagedShare], timeout_s: float | None = None, *, request_id: str | None = None
    ) -> list[AppendAnswer]:
        """Commit the shares as one entry; the answer of each.

        A share that may have landed is looked for in the log where the topic's state no longer tells; one that the log
        no longer knows is refused by `RequestForgottenError`, unless its producers' sequences tell. `timeout_s` is how
        long this may take. `request_id`: the entry's; one with this id is the shares', too. The segments are in the
        store, by the word of those that staged them; where one is missing all the same, the shares are committed one by
        one.
        """
        answers: dict[int, AppendAnswer] = {}
        left = dict(enumerate(shares))
        while left:
            try:
                outcomes = self._attempt(list(left.values()), timeout_s, request_id)
            except MissingSegmentError as e:
                outcomes = (
                    [refusal(e)] if len(left) == 1 else [self.commit(share, timeout_s) for share in left.values()]
                )
            except TidelogError as e:
                outcomes = [refusal(e)] * len(left)
            again: dict[int, StagedShare] = {}
            for at, answer in zip(left, outcomes, strict=True):
                settled = self._settled(left[at], request_id) if answer is UNSETTLED else answer
                if isinstance(settled, StagedShare):
                    again[at] = settled
                else:
                    answers[at] = settled
            left = again
        return [answers[at] for at in range(len(shares))]

    def _attempt(
        self, shares: Sequence[StagedShare], timeout_s: float | None, request_id: str | None
    ) -> Sequence[AppendAnswer]:
        topic = self.topic

        def decide(state: TopicState, now_ms: int, by_committer: bool) -> Outcome[Sequence[AppendAnswer]]:
            require_topic(state, topic.name, topic.id)
            return decide_joint_append(
                state,
                topic.name,
                shares,
                configuration=self.digest(state.metadata),
                now_ms=now_ms,
                log_append_time=by_committer,
            )

        durable = any(share.acks == -1 for share in shares)
        return topic.commit_decided(decide, durable=durable, request_id=request_id, timeout_s=timeout_s)

    def _settled(self, share: StagedShare, request_id: str | None) -> AppendAnswer | StagedShare:
        """What an earlier entry gave the share, as the log's kept entries tell it; or the share, which is in none."""
        topic, head = self.topic, self.topic.known.version
        after = max(share.known_version, -1 if share.new_until is None else share.new_until)
        try:
            ranges = find_answer(
                topic.storage, self._clock, topic.folder, request_id or "", share.segments, after, head
            )
        except RequestForgottenError as e:
            if not share.is_numbered:
                return refusal(e)
            ranges = None
        except TidelogError as e:
            return refusal(e)
        return replace(share, new_until=head) if ranges is None else committed(ranges)
