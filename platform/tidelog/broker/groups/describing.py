"""DescribeGroups, ListGroups and DeleteGroups: what operators and tools ask about groups.

Source: `GroupMetadataManager.describeGroups`, `ClassicGroup.describe` (kafka 4.0), KIP-518, KIP-848, KIP-1043.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tidelog.access.model import AclResource
from tidelog.broker.base.access import NOT_ASKED, operations
from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.base.group_answers import no_consumer_group, no_streams_group
from tidelog.broker.groups import streams_answers
from tidelog.broker.groups.consumer_groups import topic_partitions
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import code_of
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import Assignment, ConsumerGroup, Decision, Group, GroupPhase, GroupView, StreamsGroup
from tidelog.groups.rules.offsets import delete_group, found_group
from tidelog.groups.rules.streams.heartbeat import no_streams_group as not_of_streams
from tidelog.log.base.errors import GroupNotFoundError, TidelogError


class DescribingHandlers:
    """What is asked about groups."""

    def __init__(self, context: Context, coordinator: GroupCoordinator) -> None:
        self._blocking = context.blocking
        self._access = context.access
        self._coordinator = coordinator

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.DESCRIBE_GROUPS: self.describe,
            ApiKey.CONSUMER_GROUP_DESCRIBE: self.describe_consumer_groups,
            ApiKey.STREAMS_GROUP_DESCRIBE: self.describe_streams_groups,
            ApiKey.LIST_GROUPS: self.list,
            ApiKey.DELETE_GROUPS: self.delete,
        }

    async def describe(self, call: Call) -> Reply:
        """DescribeGroups."""
        body = call.body
        groups = []
        refused = {group_id: self._refusal(group_id) for group_id in body.groups}
        own = [group_id for group_id, why in refused.items() if why is None]
        views = await self._blocking(self._views, own)
        for group_id in body.groups:
            allowed = NOT_ASKED
            if getattr(body, "include_authorized_operations", False):
                allowed = operations(self._access, call.peer, AclResource.GROUP, group_id)
            try:
                if (why := refused[group_id]) is not None:
                    raise why
                group = described(views[group_id](), group_id, allowed)
            except GroupNotFoundError as e:
                # Until version 6 such a group counts as dead (KIP-1043).
                code = code_of(e) if call.version >= 6 else 0
                group = _no_group(group_id, code, str(e), GroupPhase.DEAD.value) | {"authorized_operations": allowed}
            except TidelogError as e:
                group = _no_group(group_id, code_of(e), str(e), "")
            groups.append(group)
        return {"groups": groups}

    async def describe_consumer_groups(self, call: Call) -> Reply:
        """ConsumerGroupDescribe."""
        return await self._described(call, described_consumer_group, no_consumer_group)

    async def describe_streams_groups(self, call: Call) -> Reply:
        """StreamsGroupDescribe."""
        return await self._described(call, described_streams_group, no_streams_group)

    async def _described(
        self,
        call: Call,
        described_one: Callable[[GroupView, str, int], Mapping[str, Any]],
        refusal: Callable[[str, int, str], Mapping[str, Any]],
    ) -> Reply:
        body, groups = call.body, list[Mapping[str, Any]]()
        refused = {group_id: self._refusal(group_id) for group_id in body.group_ids}
        views = await self._blocking(self._views, [group_id for group_id, why in refused.items() if why is None])
        for group_id in body.group_ids:
            allowed = NOT_ASKED
            if body.include_authorized_operations:
                allowed = operations(self._access, call.peer, AclResource.GROUP, group_id)
            try:
                if (why := refused[group_id]) is not None:
                    raise why
                groups.append(described_one(views[group_id](), group_id, allowed))
            except TidelogError as e:
                groups.append(refusal(group_id, code_of(e), str(e)))
        return {"groups": groups}

    def _refusal(self, group_id: str) -> TidelogError | None:
        try:
            self._coordinator.require(group_id)
        except TidelogError as e:
            return e
        return None

    def _views(self, group_ids: Sequence[str]) -> Mapping[str, Callable[[], GroupView]]:
        """{group: gives its view, or raises why it can't be had}, of the groups of one request together."""

        def view_of(group_id: str) -> Callable[[], GroupView]:
            try:
                view = self._coordinator.log.view(group_id)
            except TidelogError as e:
                return partial(_raise, e)
            return lambda: view

        return {group_id: view_of(group_id) for group_id in group_ids}

    async def list(self, call: Call) -> Reply:
        """ListGroups: those that this broker coordinates. Clients ask all brokers."""
        states, types = getattr(call.body, "states_filter", ()), getattr(call.body, "types_filter", ())
        try:
            views = await self._blocking(self._coordinator.log.views)
        except TidelogError as e:
            return {"error_code": code_of(e)}
        own = {group_id: view for group_id, view in views.items() if self._coordinator.coordinates(group_id)}
        return {"groups": listed(own, states, types)}

    async def delete(self, call: Call) -> Reply:
        """DeleteGroups."""
        results = []
        for group_id in call.body.groups_names:
            error = 0
            try:
                self._coordinator.require(group_id)
                self._coordinator.expire(group_id)
                await self._coordinator.decisions.decide(group_id, _deleting(group_id))
            except TidelogError as e:
                error = code_of(e)
            results.append({"group_id": group_id, "error_code": error})
        return {"results": results}


def _raise(error: TidelogError) -> GroupView:
    raise error


def _deleting(group_id: str) -> Any:
    def rule(view: GroupView) -> Decision[None]:
        return delete_group(view, group_id)

    return rule


# --- rules -----------------------------------------------------------------------------------------------------


def described(view: GroupView, group_id: str, allowed: int) -> Mapping[str, Any]:
    """A group in full; what members say for the protocol only while it is Stable.

    Raises GroupNotFoundError, also for a group of the type consumer, which another request describes.
    """
    group = found_group(view, group_id)
    if not isinstance(group, Group):
        raise GroupNotFoundError(f"Group {group_id} is not a classic group.")
    is_stable = group.phase is GroupPhase.STABLE
    protocol = (group.protocol or "") if is_stable else ""
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.host,
            "member_metadata": dict(member.protocols).get(protocol, b"") if is_stable else b"",
            "member_assignment": member.assignment,
        }
        for _, member in sorted(group.members.items())
    ]
    return {
        "error_code": 0,
        "error_message": None,
        "group_id": group_id,
        "group_state": group.phase.value,
        "protocol_type": group.protocol_type,
        "protocol_data": protocol,
        "members": members,
        "authorized_operations": allowed,
    }


def described_consumer_group(view: GroupView, group_id: str, allowed: int) -> Mapping[str, Any]:
    """A group of the type consumer in full. Raises GroupNotFoundError, also for one of another type."""
    group = found_group(view, group_id)
    if not isinstance(group, ConsumerGroup):
        raise GroupNotFoundError(f"Group {group_id} is not a consumer group.")
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.instance_id,
            "rack_id": member.rack,
            "member_epoch": group.reached(member),
            "client_id": member.client_id,
            "client_host": member.host,
            "subscribed_topic_names": sorted(member.topics),
            "subscribed_topic_regex": member.regex,
            "assignment": _named(member.assigned),
            "target_assignment": _named(group.target(name)),
            "member_type": 0 if member.is_classic else 1,
        }
        for name, member in sorted(group.members.items())
    ]
    return {
        "error_code": 0,
        "error_message": None,
        "group_id": group_id,
        "group_state": group.phase.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assignor_name": group.assignor or "",
        "members": members,
        "authorized_operations": allowed,
    }


def described_streams_group(view: GroupView, group_id: str, allowed: int) -> Mapping[str, Any]:
    """A streams group in full. Raises GroupNotFoundError, also for one of another type."""
    group = found_group(view, group_id)
    if not isinstance(group, StreamsGroup):
        raise not_of_streams(group_id)
    return streams_answers.described(group, allowed)


def _named(partitions: Assignment) -> Mapping[str, Any]:
    names = {one.topic_id: one.topic for one in partitions}
    named = [{**one, "topic_name": names[str(one["topic_id"])]} for one in topic_partitions(partitions)]
    return {"topic_partitions": named}


def _no_group(group_id: str, code: int, message: str, state: str) -> dict[str, Any]:
    return {
        "error_code": code,
        "error_message": message if code else None,
        "group_id": group_id,
        "group_state": state,
        "protocol_type": "",
        "protocol_data": "",
    }


def listed(views: Mapping[str, GroupView], states: Iterable[str], types: Iterable[str]) -> list[Mapping[str, Any]]:
    """Groups in short, those of these states and types: none named means all. Case does not count."""
    wanted_states, wanted_types = {s.lower() for s in states}, {t.lower() for t in types}
    groups: list[Mapping[str, Any]] = []
    for group_id, view in views.items():
        group = view.group or Group(group_id)
        if wanted_states and group.phase.value.lower() not in wanted_states:
            continue
        if wanted_types and group.type not in wanted_types:
            continue
        groups.append(
            {
                "group_id": group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.phase.value,
                "group_type": group.type,
            }
        )
    return groups
