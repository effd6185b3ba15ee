"""ConsumerGroupHeartbeat: being a member of a group of the type consumer (KIP-848).

A heartbeat is answered by the group as it was last seen, unless it changes something or is to be refused: then it is
decided over the log. Source: `KafkaApis.handleConsumerGroupHeartbeat`, `GroupMetadataManager` (kafka 4.2).
"""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.base.group_answers import no_heartbeat
from tidelog.broker.base.group_configs import HEARTBEAT
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import InvalidHeartbeatError, code_of
from tidelog.broker.groups.heartbeating import REFRESH_S, interval_ms
from tidelog.broker.groups.joint_heartbeats import JointHeartbeats
from tidelog.broker.groups.subscriptions import Subscriptions
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import AnyGroup, Assignment, ConsumerGroup
from tidelog.groups.rules.modern.heartbeat import GOES_AWAY, JOINS, Heartbeat, HeartbeatAnswer
from tidelog.groups.rules.modern.topics import MissingTopicsError, Topics
from tidelog.log.base.errors import TidelogError, UnsupportedAssignorError

logger = logging.getLogger(__name__)

_MS: Final = timedelta(milliseconds=1)
# The version since which clients make member ids, and subscribe by regular expressions.
_CLIENT_IDS_SINCE: Final = 1


class ConsumerGroupHandlers:
    """What members of groups of the type consumer ask of the coordinator."""

    def __init__(self, context: Context, coordinator: GroupCoordinator) -> None:
        self._settings = context.settings.groups
        self._ids = context.lake.ids
        self._clock = context.clock
        self._coordinator = coordinator
        self._subscriptions = Subscriptions(context)
        self._joint = JointHeartbeats(coordinator, context.settings.groups, context.clock)

    def handlers(self) -> Handlers:
        """By API."""
        return {ApiKey.CONSUMER_GROUP_HEARTBEAT: self.heartbeat}

    async def heartbeat(self, call: Call) -> Reply:
        """ConsumerGroupHeartbeat: a member joins, stays, changes its subscription, or leaves."""
        try:
            request = self._request(call)
            group = await self._coordinator.group(request.group_id)
            answer = await self._decided(call, group, request)
        except TidelogError as e:
            return no_heartbeat(code_of(e), str(e))
        assigned, members = answer.assigned, len(answer.group.members)
        longest_ms, waits = group.limits()[HEARTBEAT], _waits(answer.group, request.member_id)
        return {
            "member_id": request.member_id,
            "member_epoch": answer.epoch,
            "heartbeat_interval": interval_ms(members, self._coordinator.times, longest_ms, waits=waits),
            "assignment": None if assigned is None else {"topic_partitions": topic_partitions(assigned)},
        }

    # --- deciding ------------------------------------------------------------------------------------------

    async def _decided(self, call: Call, group: CoordinatedGroup, request: Heartbeat) -> HeartbeatAnswer:
        if request.member_id in group.leaves:  # its eviction is being written
            await self._coordinator.look(group)
        now_s = self._clock.elapsed_s()
        if now_s >= group.refresh_s and request.epoch >= JOINS:
            group.refresh_s = now_s + REFRESH_S
            request = replace(request, refresh=True)
        request = await self._matched(call, group, request, now_s)
        known_topics: Topics = {}
        if request.refresh or request.topics is not None:
            names = group.subscription.union(request.topics or (), request.matched or ())
            known_topics = await self._subscriptions.facts(names)
        while True:
            try:
                return await self._joint.decided(group, request, known_topics)
            except MissingTopicsError as e:
                known_topics = {**known_topics, **await self._subscriptions.facts(e.names)}

    async def _matched(self, call: Call, group: CoordinatedGroup, request: Heartbeat, now_s: float) -> Heartbeat:
        """The request with what the member's regular expression matches, where that is to be looked up.

        It is looked up for each member, as each has an expression and rights of its own.
        """
        state = group.state
        member = state.members.get(request.member_id) if isinstance(state, ConsumerGroup) else None
        regex = request.regex if request.regex is not None else member.regex if member is not None else None
        is_due = request.epoch >= JOINS and now_s >= group.matched_until_s.get(request.member_id, 0.0)
        if not regex or not (is_due or request.regex is not None):
            return request
        if member is not None:
            group.matched_until_s[request.member_id] = now_s + REFRESH_S
        return replace(request, matched=await self._subscriptions.matching(call.peer, regex))

    # --- the request ---------------------------------------------------------------------------------------

    def _request(self, call: Call) -> Heartbeat:
        """What the request says. Raises `InvalidHeartbeatError`, `UnsupportedAssignorError`."""
        body = call.body
        member_id = body.member_id
        if not member_id and body.member_epoch == JOINS and call.version < _CLIENT_IDS_SINCE:
            member_id = self._ids.new()
        rebalance_ms = body.rebalance_timeout // _MS
        names, owned = body.subscribed_topic_names, body.topic_partitions
        request = Heartbeat(
            group_id=body.group_id,
            member_id=member_id,
            epoch=body.member_epoch,
            client_id=call.client_id or "",
            host=f"/{call.peer.host}",
            instance_id=body.instance_id,
            rack=body.rack_id,
            rebalance_timeout_ms=None if rebalance_ms < 0 else rebalance_ms,
            topics=None if names is None else frozenset(names),
            regex=getattr(body, "subscribed_topic_regex", None),
            assignor=body.server_assignor,
            owned=None if owned is None else frozenset((str(one.topic_id), p) for one in owned for p in one.partitions),
        )
        problem = _problem(request)
        if problem is not None:
            raise InvalidHeartbeatError(problem)
        if request.assignor is not None and request.assignor not in self._settings.consumer_assignors:
            raise UnsupportedAssignorError(
                f"ServerAssignor {request.assignor} is not supported. Supported assignors:"
                f" {', '.join(self._settings.consumer_assignors)}."
            )
        return request


def _problem(request: Heartbeat) -> str | None:
    """What is wrong with a request by itself. Source: `throwIfConsumerGroupHeartbeatRequestIsInvalid`."""
    if not request.member_id:
        return "MemberId can't be empty."
    if request.instance_id == "":
        return "InstanceId can't be empty."
    if request.rack == "":
        return "RackId can't be empty."
    if request.epoch < GOES_AWAY:
        return f"MemberEpoch is {request.epoch}, but must be greater than or equal to -2."
    if request.epoch == GOES_AWAY and request.instance_id is None:
        return "InstanceId can't be null."
    if request.epoch != JOINS:
        return None
    if request.rebalance_timeout_ms is None:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.owned is None or request.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if request.topics is None and request.regex is None:  # no topics at all are fine: a member may find some later
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _waits(group: AnyGroup, member_id: str) -> bool:
    """Whether a member does not have all yet that it is to have."""
    if not isinstance(group, ConsumerGroup):
        return False
    member = group.members.get(member_id)
    return member is not None and not group.is_reconciled(member)


def topic_partitions(partitions: Assignment) -> list[dict[str, Any]]:
    """Partitions by their topics' ids, as answers have them."""
    by_topic: dict[str, list[int]] = {}
    for one in sorted(partitions):
        by_topic.setdefault(one.topic_id, []).append(one.partition)
    return [{"topic_id": UUID(topic_id), "partitions": numbers} for topic_id, numbers in by_topic.items()]
