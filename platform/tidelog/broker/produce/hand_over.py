"""Hand-over: a broker has what it staged committed by its topic's committer, and commits it itself where that fails.

The committer makes one entry of what all brokers hand over, so that they don't race for the log. It is not needed for
safety: a broker that gets no answer commits its share itself, and the second of the two finds it in the log.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, Final
from uuid import UUID

from tidelog.broker.base.calls import Call, Encoded
from tidelog.broker.base.channels import NoAnswerError, NotAskedError
from tidelog.broker.base.cluster_view import BrokerNode
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.produce.joint_entries import JointEntries
from tidelog.broker.produce.linger import FileBudget
from tidelog.broker.wire.hand_over import (
    HandedOverAnswer,
    HandOver,
    decode_answer,
    decode_hand_over,
    encode_answer,
    encode_hand_over,
)
from tidelog.cluster.leases import times_of
from tidelog.log.delta.actions import Metadata
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome, Ranges, StagedShare
from tidelog.log.topic import Topic

logger = logging.getLogger(__name__)

# How long a committer that gave no answer is not asked again: by then it is taken for dead, or answers.
AVOIDED_S: Final = 5.0
# What becomes of a share that a committer was not asked for, or gave no answer about.
_NOT_TAKEN: Final = AppendAnswer(CommitOutcome.REFUSED, elsewhere=True)
_UNANSWERED: Final = AppendAnswer(CommitOutcome.UNKNOWN, elsewhere=True)


class CommittedTopic:
    """A topic that this broker commits to: for itself, and for others where it is the topic's committer.

    It commits for the topic's pool (`ShareCommitter`). `budget` is what the topic's linger goes by. It is right at the
    topic's committer, which all brokers' files are counted at: each of its answers says what is left.
    """

    def __init__(
        self, hand_overs: "HandOvers", name: str, topic_id: str, entries: JointEntries, budget: FileBudget
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.entries = entries
        self.budget = budget
        self._hand_overs = hand_overs
        self._uuid = UUID(topic_id)

    def digest(self, metadata: Metadata | None) -> str:
        """As `ShareCommitter.digest`."""
        return self.entries.digest(metadata)

    def hand_over(self, share: StagedShare) -> Future[AppendAnswer] | None:
        """As `ShareCommitter.hand_over`: to the topic's committer, where that is another broker."""
        committer = self._hand_overs.committer(self._uuid)
        return None if committer is None else self._hand_overs.begin(committer, self, share)

    def commit(self, share: StagedShare, timeout_s: float) -> AppendAnswer | Future[AppendAnswer]:
        """As `ShareCommitter.commit`."""
        return self.entries.commit(share, timeout_s)


class HandOvers:
    """Both ends of a broker's hand-overs. `open_topic` opens the topic of a name and an id. For the loop's thread."""

    def __init__(self, context: Context, linger: Linger, open_topic: Callable[[str, str], Topic]) -> None:
        self._context = context
        self._linger = linger
        self._open_topic = open_topic
        self._listener = context.settings.brokers_listener
        self._loop = asyncio.get_running_loop()
        self._within_s = times_of(context.lake.storage).silence_s
        self._topics: dict[str, CommittedTopic] = {}  # by the topics' ids
        # Registrations of committers that gave no answer, and until when they are not asked again.
        self._avoided: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def topic(self, name: str, topic_id: str) -> CommittedTopic:
        """The topic of that id."""
        committed = self._topics.get(topic_id)
        if committed is None:
            context = self._context
            entries = JointEntries(
                partial(self._open_topic, name, topic_id),
                self._start,
                self._within_s,
            )
            budget = FileBudget(self._linger, context.clock.elapsed_s(), context.load)
            committed = self._topics[topic_id] = CommittedTopic(self, name, topic_id, entries, budget)
        return committed

    def forget(self, topic_id: str) -> None:
        """The topic may be gone."""
        self._topics.pop(topic_id, None)

    def _start(self, call: Callable[[], None]) -> None:
        """Have a thread run a call. For any thread."""

        async def run() -> None:
            await self._context.blocking(call)

        self._loop.call_soon_threadsafe(lambda: self._begin(run()))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- handing over --------------------------------------------------------------------------------------

    def committer(self, topic: UUID) -> BrokerNode | None:
        """The other broker that commits to a topic, as far as is known and as it answers; None: commit here.

        For any thread.
        """
        view = self._context.cluster()
        node = view.committer(topic)
        if not view.serves or node.id == view.node_id or self._listener not in node.addresses:
            return None
        return None if self._context.clock.elapsed_s() < self._avoided.get(node.registration, 0.0) else node

    def begin(self, committer: BrokerNode, topic: CommittedTopic, share: StagedShare) -> Future[AppendAnswer]:
        """Hand a share over; its answer. For any thread."""
        answer: Future[AppendAnswer] = Future()
        self._loop.call_soon_threadsafe(lambda: self._begin(self._hand_over(committer, topic, share, answer)))
        return answer

    async def _hand_over(
        self, committer: BrokerNode, topic: CommittedTopic, share: StagedShare, outcome: Future[AppendAnswer]
    ) -> None:
        answer = _UNANSWERED
        try:
            answer = await self._handed_over(committer, topic, share)
        finally:
            outcome.set_result(answer)

    async def _handed_over(self, committer: BrokerNode, topic: CommittedTopic, share: StagedShare) -> AppendAnswer:
        """What the committer says, or that it says nothing."""
        hand_overs, clock = self._context.meter.hand_overs, self._context.clock
        began_s = clock.elapsed_s()
        try:
            answer = await self._answer(committer, topic, share)
        except NotAskedError as e:
            hand_overs["not_asked"] += 1
            self._avoid(committer, repr(e))
            return _NOT_TAKEN
        except (NoAnswerError, ValueError) as e:
            hand_overs["no_answer"] += 1
            self._avoid(committer, repr(e))
            return _UNANSWERED
        except BaseException:
            hand_overs["no_answer"] += 1
            raise
        hand_overs[answer.outcome.name.lower()] += 1
        now_s = clock.elapsed_s()
        if answer.outcome is CommitOutcome.COMMITTED:
            topic.budget.told(answer.files_left, now_s)
        elif now_s - began_s > self._within_s / 4:
            self._avoid(committer, answer.why)
        return AppendAnswer(answer.outcome, answer.ranges, elsewhere=True)

    async def _answer(self, committer: BrokerNode, topic: CommittedTopic, share: StagedShare) -> HandedOverAnswer:
        view = self._context.cluster()
        me, channels = view.node(view.node_id), self._context.channels
        if me is None:
            raise NotAskedError("this broker serves no more")
        request = HandOver(view.cluster_id, me.registration, topic.name, topic.topic_id, share)
        address = committer.addresses[self._listener]
        return decode_answer(await channels.ask(address, encode_hand_over(request), self._within_s))

    def _avoid(self, committer: BrokerNode, why: str) -> None:
        now_s = self._context.clock.elapsed_s()
        self._avoided = {name: until_s for name, until_s in self._avoided.items() if until_s > now_s}
        self._avoided[committer.registration] = now_s + AVOIDED_S
        logger.info("Broker %d commits for this one no more for %g s: %s", committer.id, AVOIDED_S, why)

    # --- committing for others -----------------------------------------------------------------------------

    async def __call__(self, call: Call) -> Encoded:
        """Answer a hand-over, once its share is committed or refused."""
        request = decode_hand_over(call.body)
        topic = self.topic(request.topic, request.topic_id)
        outcome, ranges, why = await self._committed(request, topic)
        if outcome is CommitOutcome.COMMITTED:
            self._context.topics.committed(request.topic, ranges)
        left = topic.budget.left(self._context.clock.elapsed_s())
        return Encoded([encode_answer(HandedOverAnswer(outcome, ranges, left, why))])

    async def _committed(self, request: HandOver, topic: CommittedTopic) -> tuple[CommitOutcome, Ranges, str]:
        view = self._context.cluster()
        if request.cluster_id != view.cluster_id:
            return CommitOutcome.REFUSED, {}, f"this is cluster {view.cluster_id}"
        if not view.serves:
            return CommitOutcome.REFUSED, {}, "this broker serves no more"
        if not request.sender or all(node.registration != request.sender for node in view.nodes):
            return CommitOutcome.REFUSED, {}, f"no broker that serves is registered as {request.sender}"
        share = request.share.repeated()
        small = sum(segment.size < self._linger.small_file_bytes for segment in share.segments)
        topic.budget.take(small, self._context.clock.elapsed_s())
        answer = await asyncio.wrap_future(topic.entries.add(share))
        if answer.outcome is CommitOutcome.COMMITTED:
            return answer.outcome, answer.ranges, ""
        # What is stale the other broker finds stale, too, when it commits it.
        outcome = CommitOutcome.REFUSED if answer.outcome is CommitOutcome.STALE else answer.outcome
        return outcome, {}, str(answer.error or "the topic's configuration has changed")
