"""Heartbeats of groups of the type consumer on their way to the log: those of a group that wait are decided together.

So a thousand members that join at once get a few assignments, of which each one's costs are those of all members.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from tidelog.broker.base.group_configs import SESSION
from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.broker.groups.heartbeating import decided, unchanged
from tidelog.groups.model import AnyGroup, ConsumerGroup, Decision, GroupView
from tidelog.groups.rules.modern.heartbeat import Heartbeat, HeartbeatAnswer, heartbeats
from tidelog.groups.rules.modern.topics import Topics
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError

# At most this many go into one decision.
MOST_TOGETHER: Final = 512

Answers = list[HeartbeatAnswer | TidelogError]


class Changes(Protocol):
    """The way to the log that a coordinator has."""

    async def change(
        self,
        group: CoordinatedGroup,
        rule: Callable[[GroupView], Decision[tuple[Answers, AnyGroup | None]]],
        taken: Callable[[], None] | None = None,
    ) -> Answers:
        """Decide, and see the group as it is after it; `taken` is called just before."""


@dataclass(frozen=True, slots=True)
class _WaitingHeartbeat:
    request: Heartbeat
    topics: Topics
    answer: "asyncio.Future[HeartbeatAnswer]"


class JointHeartbeats:
    """One coordinator's heartbeats of the consumer protocol. For the loop's thread."""

    def __init__(self, coordinator: Changes, settings: GroupSettings, clock: Clock) -> None:
        self._coordinator = coordinator
        self._settings = settings
        self._clock = clock
        self._waiting: dict[str, list[_WaitingHeartbeat]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def decided(self, group: CoordinatedGroup, request: Heartbeat, topics: Topics) -> HeartbeatAnswer:
        """A heartbeat's answer: by the group as it was last seen, or over the log. Then a session begins again.

        A member that joins changes the group nearly always: that is decided over the log at once. `topics`: what is
        known of them. Raises as the rule `heartbeat`, and as `GroupLog.decide`.
        """
        return await decided(
            group,
            request,
            ConsumerGroup,
            self._clock,
            lambda request: self._unchanged(group, request, topics),
            lambda request: self._over_the_log(group, request, topics),
        )

    def _unchanged(self, group: CoordinatedGroup, request: Heartbeat, topics: Topics) -> HeartbeatAnswer | None:
        """The answer by the group as it was last seen; None where that changes something, or refuses."""
        answers = unchanged(group, self._rule(group, [request], topics))
        return answers[0] if answers and isinstance(answers[0], HeartbeatAnswer) else None

    async def _over_the_log(self, group: CoordinatedGroup, request: Heartbeat, topics: Topics) -> HeartbeatAnswer:
        loop = asyncio.get_running_loop()
        waiting = self._waiting.get(group.state.group_id)
        if waiting is None or len(waiting) >= MOST_TOGETHER:
            waiting = self._waiting[group.state.group_id] = []
            task = loop.create_task(self._decide(group, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        answer: asyncio.Future[HeartbeatAnswer] = loop.create_future()
        waiting.append(_WaitingHeartbeat(request, topics, answer))
        return await answer

    async def _decide(self, group: CoordinatedGroup, waiting: list[_WaitingHeartbeat]) -> None:
        """Decide all that wait when the entry before has been written, and answer them."""

        def taken() -> None:
            if self._waiting.get(group_id) is waiting:
                del self._waiting[group_id]

        def rule(view: GroupView) -> Decision[tuple[Answers, AnyGroup | None]]:
            topics = {name: facts for one in waiting for name, facts in one.topics.items()}
            return self._rule(group, [one.request for one in waiting], topics)(view)

        group_id = group.state.group_id
        try:
            answers: list[HeartbeatAnswer | Exception] = [*await self._coordinator.change(group, rule, taken)]
        except Exception as e:  # each of them hears of it
            answers = [e] * len(waiting)
        taken()  # where it was never to be decided
        for asker, answer in zip(waiting, answers, strict=True):
            if asker.answer.done():  # its client is gone
                continue
            if isinstance(answer, Exception):
                asker.answer.set_exception(answer)
            else:
                asker.answer.set_result(answer)

    def _rule(
        self, group: CoordinatedGroup, requests: list[Heartbeat], topics: Topics
    ) -> Callable[[GroupView], Decision[tuple[Answers, AnyGroup | None]]]:
        now_ms = self._clock.now_ms()

        def rule(view: GroupView) -> Decision[tuple[Answers, AnyGroup | None]]:
            session_ms = group.limits(view.config)[SESSION]
            decision = heartbeats(
                view,
                topics,
                [replace(request, session_timeout_ms=session_ms) for request in requests],
                now_ms=now_ms,
                default_assignor=self._settings.consumer_assignors[0],
                migration=self._settings.migration_policy,
            )
            return Decision(response=(decision.response, decision.group or view.group), group=decision.group)

        return rule
