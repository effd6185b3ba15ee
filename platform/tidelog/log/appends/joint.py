"""Joint appends: what several writers have staged of a topic is committed as one entry, and each gets its answer."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import orjson

from tidelog.log.appends.topic_handle import TopicHandle
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import MissingSegmentError, TidelogError
from tidelog.log.delta.actions import Metadata
from tidelog.log.door.request_history import find_answer
from tidelog.log.rules.appends import UnsettledRequestError
from tidelog.log.rules.joint_appends import PartAnswer, StagedShare, decide_joint_append
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import TopicState


def configuration_digest(metadata: Metadata | None) -> str:
    """What two processes compare to know whether they see the same configuration of a topic; "" before there is one."""
    if metadata is None:
        return ""
    said: list[object] = [metadata.table_id, metadata.name, metadata.schema, list(metadata.partition_columns)]
    said += [sorted(metadata.configuration.items()), metadata.created_ms]
    return blake2b(orjson.dumps(said), digest_size=16).hexdigest()


class JointAppend:
    """Makes the joint entries of one topic. `topic` has the topic's id; any number of threads."""

    def __init__(self, topic: TopicHandle, clock: Clock) -> None:
        self._topic = topic
        self._clock = clock
        self._digest: tuple[Metadata | None, str] = (None, "")

    def digest(self, metadata: Metadata | None) -> str:
        """`configuration_digest`, computed once for each metadata."""
        known = self._digest
        if known[0] is not metadata:
            known = self._digest = (metadata, configuration_digest(metadata))
        return known[1]

    def commit(self, parts: Sequence[StagedShare], timeout_s: float | None = None) -> list[PartAnswer]:
        """Commit the parts as one entry; the answer of each: {partition: (first offset, end offset)}, or its refusal.

        A part that may have landed is looked for in the log where the topic's state no longer tells; one that the log
        no longer knows gets `RequestForgottenError`. What is refused is in no entry of this call, but after
        `OutcomeUnknownError`: then it may be. `timeout_s` is how long this may take. The segments are in the store, by
        the word of those that staged them; where one is missing all the same, the parts are committed one by one.
        """
        answers: dict[int, PartAnswer] = {}
        left = dict(enumerate(parts))
        while left:
            try:
                found = self._attempt(list(left.values()), timeout_s)
            except MissingSegmentError as e:
                found = [e] if len(left) == 1 else [self.commit([part], timeout_s)[0] for part in left.values()]
            except TidelogError as e:
                found = [e] * len(left)
            again: dict[int, StagedShare] = {}
            for at, answer in zip(left, found, strict=True):
                if isinstance(answer, UnsettledRequestError):
                    head = self._topic.known.version
                    try:
                        earlier = self._earlier(left[at], head)
                    except TidelogError as e:
                        answers[at] = e
                        continue
                    if earlier is None:
                        again[at] = replace(left[at], new_until=head)
                    else:
                        answers[at] = earlier
                else:
                    answers[at] = answer
            left = again
        return [answers[at] for at in range(len(parts))]

    def _attempt(self, parts: Sequence[StagedShare], timeout_s: float | None) -> Sequence[PartAnswer]:
        topic = self._topic

        def decide(state: TopicState, now_ms: int, by_committer: bool) -> Outcome[Sequence[PartAnswer]]:
            return decide_joint_append(
                state,
                topic.name,
                parts,
                configuration=self.digest(state.metadata),
                now_ms=now_ms,
                log_append_time=by_committer,
            )

        return topic.commit_decided(decide, durable=any(part.acks == -1 for part in parts), timeout_s=timeout_s)

    def _earlier(self, part: StagedShare, head: int) -> PartAnswer | None:
        """What an entry up to `head` gave the part, as the log's kept entries tell it. Raises as `find_answer`."""
        known = min(segment.known_version for segment in part.segments)
        after = max(known, -1 if part.new_until is None else part.new_until)
        return find_answer(self._topic.storage, self._clock, self._topic.folder, "", part.segments, after, head)
