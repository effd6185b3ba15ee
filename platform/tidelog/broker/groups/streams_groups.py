"""StreamsGroupHeartbeat: being a member of a streams group (KIP-1071).

A heartbeat is answered by the group as it was last seen, unless it changes something or is to be refused: then it is
decided over the log. Source: `KafkaApis.handleStreamsGroupHeartbeat`, `GroupMetadataManager` (kafka 4.2).
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.base.group_answers import no_streams_heartbeat
from tidelog.broker.base.group_configs import STANDBYS, STREAMS_DELAY, STREAMS_HEARTBEAT, STREAMS_SESSION
from tidelog.broker.groups.coordinated_group import CoordinatedGroup, UserEndpoints
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import code_of
from tidelog.broker.groups.heartbeating import REFRESH_S, decided, interval_ms, unchanged
from tidelog.broker.groups.inner_topics import InnerTopics
from tidelog.broker.groups.streams_answers import endpoints, task_ids
from tidelog.broker.groups.streams_requests import heartbeat_of
from tidelog.broker.groups.subscriptions import Subscriptions
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import AnyGroup, Decision, GroupView, StreamsGroup
from tidelog.groups.rules.modern.topics import MissingTopicsError, Topics
from tidelog.groups.rules.streams.configuring import Status
from tidelog.groups.rules.streams.heartbeat import (
    JOINS,
    StreamsAnswer,
    StreamsHeartbeat,
    streams_heartbeat,
)
from tidelog.log.base.errors import TidelogError

logger = logging.getLogger(__name__)

# What Kafka's brokers tell members: how far behind a copy may be that counts as one, and how often members say where
# their copies are.
_RECOVERY_LAG: Final = 10_000
_OFFSETS_EVERY_MS: Final = 60_000
# In how many of its longest heartbeat intervals a group asks again for a topic that was refused.
_REFUSED_BEATS: Final = 3


class StreamsGroupHandlers:
    """What members of streams groups ask of the coordinator."""

    def __init__(self, context: Context, coordinator: GroupCoordinator) -> None:
        self._clock = context.clock
        self._coordinator = coordinator
        self._subscriptions = Subscriptions(context)
        self._inner_topics = InnerTopics(context)

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.STREAMS_GROUP_HEARTBEAT: self.heartbeat}

    async def heartbeat(self, call: Call) -> Reply:
        """StreamsGroupHeartbeat: a member joins, stays, or leaves."""
        try:
            request = heartbeat_of(call)
            group = await self._coordinator.group(request.group_id)
            answer = await self._decided(group, request)
            statuses = await self._made(call, group, answer)
            endpoints_now = await self._endpoints(group)
        except TidelogError as e:
            return no_streams_heartbeat(code_of(e), str(e))
        tasks = answer.assigned
        are_known = endpoints_now.number == call.body.endpoint_information_epoch
        return {
            "member_id": request.member_id,
            "member_epoch": answer.epoch,
            "heartbeat_interval": self._interval_ms(group, answer),
            "acceptable_recovery_lag": _RECOVERY_LAG,
            "task_offset_interval": _OFFSETS_EVERY_MS,
            "status": [{"status_code": int(code), "status_detail": detail} for code, detail in statuses],
            "active_tasks": None if tasks is None else task_ids(tasks.active),
            "standby_tasks": None if tasks is None else task_ids(tasks.standby),
            "warmup_tasks": None if tasks is None else task_ids(tasks.warmup),
            "endpoint_information_epoch": endpoints_now.number,
            "partitions_by_user_endpoint": None if are_known else endpoints_now.told,
        }

    def _interval_ms(self, group: CoordinatedGroup, answer: StreamsAnswer) -> int:
        """Until the member's next heartbeat. For a source topic its application waits twice that long, then it ends."""
        longest = group.limits()[STREAMS_HEARTBEAT]
        if any(status is Status.MISSING_SOURCE_TOPICS for status, _ in answer.statuses):
            return longest
        return interval_ms(len(answer.group.members), self._coordinator.times, longest)

    # --- deciding ------------------------------------------------------------------------------------------

    async def _decided(self, group: CoordinatedGroup, request: StreamsHeartbeat) -> StreamsAnswer:
        if request.member_id in group.leaves:  # its eviction is being written
            await self._coordinator.look(group)
        now_s = self._clock.elapsed_s()
        if request.epoch == JOINS and not group.state.members:
            group.settles_s = now_s + group.limits()[STREAMS_DELAY] / 1000
        request = replace(request, waits=now_s < group.settles_s)
        if now_s >= group.refresh_s and request.epoch >= JOINS:
            group.refresh_s = now_s + REFRESH_S
            request = replace(request, refresh=True)
        topics: Topics = {}
        while True:
            try:
                return await self._decided_once(group, request, topics)
            except MissingTopicsError as e:
                topics = await self._subscriptions.facts(e.names)

    async def _decided_once(self, group: CoordinatedGroup, request: StreamsHeartbeat, topics: Topics) -> StreamsAnswer:
        now_ms = self._clock.now_ms()

        def rule_of(
            request: StreamsHeartbeat,
        ) -> Callable[[GroupView], Decision[tuple[StreamsAnswer, AnyGroup | None]]]:
            def rule(view: GroupView) -> Decision[tuple[StreamsAnswer, AnyGroup | None]]:
                limits = group.limits(view.config)
                said = replace(request, session_timeout_ms=limits[STREAMS_SESSION])
                decision = streams_heartbeat(view, topics, said, now_ms=now_ms, standbys=limits[STANDBYS])
                return Decision(response=(decision.response, decision.group or view.group), group=decision.group)

            return rule

        return await decided(
            group,
            request,
            StreamsGroup,
            self._clock,
            lambda request: unchanged(group, rule_of(request)),
            lambda request: self._coordinator.change(group, rule_of(request)),
        )

    async def _made(self, call: Call, group: CoordinatedGroup, answer: StreamsAnswer) -> Iterable[tuple[Status, str]]:
        """Have the inner topics made that are missing; the statuses that the member gets after that."""
        missing = answer.configured.missing if answer.configured is not None else ()
        if not missing:
            return answer.statuses
        again_s = _REFUSED_BEATS * group.limits()[STREAMS_HEARTBEAT] / 1000
        refused = await self._inner_topics.make(call.peer, group, missing, again_s)
        return [
            (status, f"{detail}. {refused}" if status is Status.MISSING_INTERNAL_TOPICS and refused else detail)
            for status, detail in answer.statuses
        ]

    async def _endpoints(self, group: CoordinatedGroup) -> UserEndpoints:
        """Which member answers queries about which partitions: worked out once for all members."""
        state, now_s, before = group.state, self._clock.elapsed_s(), group.endpoints
        if before is not None and now_s < before.until_s and before.state == state:
            group.endpoints = replace(before, state=state)  # what was decided, and what the log says of it, are alike
            return group.endpoints
        number, told = await self._worked_out(state) if isinstance(state, StreamsGroup) else (0, [])
        group.endpoints = UserEndpoints(state, now_s + REFRESH_S, number, told)
        return group.endpoints

    async def _worked_out(self, group: StreamsGroup) -> tuple[int, list[dict[str, Any]]]:
        if group.topology is None or all(member.endpoint is None for member in group.members.values()):
            return 0, []
        return endpoints(group, group.topology, await self._subscriptions.facts(group.topology.required))
