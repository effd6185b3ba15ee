"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: being a member of a group.

Source: `GroupMetadataManager.classicGroupJoin` and its neighbours (kafka 4.0), KIP-345, KIP-394, KIP-559, KIP-814.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any

from tidelog.broker.base.calls import Call, Handlers, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinated_group import CoordinatedGroup, JoinAnswer, Joining, ShareAnswer, rebalancing
from tidelog.broker.groups.coordinator import GroupCoordinator
from tidelog.broker.groups.errors import InvalidSessionTimeoutError, MemberIdRequiredError, code_of
from tidelog.broker.groups.subscriptions import Subscriptions
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import (
    AnyGroup,
    AnyMember,
    ConsumerGroup,
    Decision,
    EpochGroup,
    Group,
    GroupPhase,
    GroupView,
    Member,
    StreamsGroup,
)
from tidelog.groups.rules.members import check_generation, check_member, current, join, leave, other_protocol, sync
from tidelog.groups.rules.migration import seen_by
from tidelog.groups.rules.modern.joining import ClassicGroupError, join_among_modern
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError
from tidelog.log.base.errors import InconsistentProtocolError, TidelogError, UnknownMemberError

logger = logging.getLogger(__name__)

_MS = timedelta(milliseconds=1)
# How often a group may change its type while one request to join is decided.
_MOST_TURNS = 4


class MembershipHandlers:
    """What members ask of the coordinator."""

    def __init__(self, context: Context, coordinator: GroupCoordinator) -> None:
        self._settings = context.settings.groups
        self._ids = context.lake.ids
        self._clock = context.clock
        self._coordinator = coordinator
        self._subscriptions = Subscriptions(context)

    def handlers(self) -> Handlers:
        """By API."""
        return {
            ApiKey.JOIN_GROUP: self.join,
            ApiKey.SYNC_GROUP: self.sync,
            ApiKey.HEARTBEAT: self.heartbeat,
            ApiKey.LEAVE_GROUP: self.leave,
        }

    # --- joining -------------------------------------------------------------------------------------------

    async def join(self, call: Call) -> Reply:
        """JoinGroup: answered when the round is over."""
        try:
            joined = await self._joined(call)
        except TidelogError as e:
            return {
                "error_code": code_of(e),
                "generation_id": -1,
                "protocol_type": None,
                "protocol_name": None if call.version >= 7 else "",
                "leader": "",
                "member_id": e.member_id if isinstance(e, MemberIdRequiredError) else call.body.member_id,
            }
        return joined_answer(joined, call.version)

    async def _joined(self, call: Call) -> JoinAnswer:
        body, now_s = call.body, self._clock.elapsed_s()
        session_ms = body.session_timeout // _MS
        if not self._settings.min_session_timeout_ms <= session_ms <= self._settings.max_session_timeout_ms:
            raise InvalidSessionTimeoutError(
                f"A session timeout of {session_ms} ms is refused: group.min.session.timeout.ms is"
                f" {self._settings.min_session_timeout_ms}, group.max.session.timeout.ms"
                f" {self._settings.max_session_timeout_ms}. Change `session.timeout.ms`."
            )
        group = await self._coordinator.group(body.group_id)
        fresh = not body.member_id
        instance_id = getattr(body, "group_instance_id", None)
        member_id = f"{instance_id or call.client_id or ''}-{self._ids.new()}" if fresh else body.member_id
        expected = not fresh and not group.expects(member_id)
        member = self._member(call, member_id, session_ms)
        becomes = ConsumerGroup if is_modern(group.state) else Group
        with nullcontext() if expected or instance_id is not None else group.room_for(member_id, becomes):
            if not expected:
                _refuse_by(group.state, member, body.protocol_type)
            if fresh and instance_id is None and call.version >= 4:
                group.expect(member_id, session_ms / 1000, now_s)
                raise MemberIdRequiredError(member_id)
            if expected:
                await self._checked(group, member_id, instance_id)
            reason = getattr(body, "reason", None)
            logger.info("Group %r: %s joins%s.", body.group_id, member_id, f" ({reason})" if reason else "")
            return await self._joined_as(group, member, body.protocol_type, rejoins=expected, fresh=fresh)

    async def _joined_as(
        self, group: CoordinatedGroup, member: Member, protocol_type: str, *, rejoins: bool, fresh: bool
    ) -> JoinAnswer:
        """Have a member join by the rules of the group's type, which may be another once that is decided."""
        for _ in range(_MOST_TURNS):
            among_modern = is_modern(group.state)
            try:
                if among_modern:
                    return await self._joined_among_modern(group, member, protocol_type, rejoins)
                ticket: asyncio.Future[JoinAnswer] = asyncio.get_running_loop().create_future()
                self._coordinator.join(group, Joining(member, protocol_type, rejoins, ticket, fresh))
                joined: JoinAnswer = await self._parked(group, ticket)
                return joined
            except (ClassicGroupError, InconsistentProtocolError) as e:
                await self._coordinator.look(group)
                if isinstance(e, InconsistentProtocolError) and is_modern(group.state) is among_modern:
                    raise
        raise rebalancing(group.state.group_id)

    async def _joined_among_modern(
        self, group: CoordinatedGroup, member: Member, protocol_type: str, rejoins: bool
    ) -> JoinAnswer:
        """Join a group of the type consumer: it is answered at once. Raises `ClassicGroupError`."""
        group_id, known_topics = group.state.group_id, dict[str, AssignableTopic | None]()
        default, policy = self._settings.consumer_assignors[0], self._settings.migration_policy

        def rule(view: GroupView) -> Decision[tuple[Group, AnyGroup | None]]:
            decision = join_among_modern(
                view, known_topics, group_id, member,
                rejoins=rejoins, protocol_type=protocol_type, default_assignor=default, migration=policy,
            )  # fmt: skip
            return Decision(response=(decision.response, decision.group or view.group), group=decision.group)

        while True:
            try:
                seen = await self._coordinator.change(group, rule)
                break
            except MissingTopicsError as e:
                known_topics |= await self._subscriptions.facts(e.names)
        group.drop_expected(member.member_id)
        group.heard(member.member_id, self._clock.elapsed_s())
        return JoinAnswer(seen, member.member_id, None)

    async def _parked(self, group: CoordinatedGroup, ticket: "asyncio.Future[Any]") -> Any:
        try:
            return await ticket
        except asyncio.CancelledError:  # the client is gone
            ticket.cancel()
            self._coordinator.gone(group, ticket)
            raise

    def _member(self, call: Call, member_id: str, session_ms: int) -> Member:
        body = call.body
        rebalance = getattr(body, "rebalance_timeout", None)  # from version 1 on
        return Member(
            member_id=member_id,
            client_id=call.client_id or "",
            host=f"/{call.peer.host}",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms if rebalance is None or rebalance < timedelta() else rebalance // _MS,
            protocols=tuple((one.name, bytes(one.metadata)) for one in body.protocols),
            instance_id=getattr(body, "group_instance_id", None),
        )

    # --- the share -----------------------------------------------------------------------------------------

    async def sync(self, call: Call) -> Reply:
        """SyncGroup: answered when the leader has handed in the assignments."""
        try:
            synced = await self._synced(call.body)
        except TidelogError as e:
            return {"error_code": code_of(e), "assignment": b""}
        group = synced.group
        return {
            "protocol_type": group.protocol_type,
            "protocol_name": group.protocol,
            "assignment": group.members[synced.member_id].assignment,
        }

    async def _synced(self, body: Any) -> ShareAnswer:
        instance_id = getattr(body, "group_instance_id", None)
        group = await self._coordinator.group(body.group_id)
        await self._checked(group, body.member_id, instance_id, body.generation_id)
        state = seen(group.state, body.member_id)
        _require_protocol(state, getattr(body, "protocol_type", None), getattr(body, "protocol_name", None))
        if isinstance(group.state, ConsumerGroup):
            group.heard(body.member_id, self._clock.elapsed_s())
            return ShareAnswer(state, body.member_id)
        ticket: asyncio.Future[ShareAnswer] = asyncio.get_running_loop().create_future()
        if state.phase is GroupPhase.PREPARING:
            group.heard(body.member_id, self._clock.elapsed_s())
            raise rebalancing(body.group_id)
        if state.phase is GroupPhase.COMPLETING and state.leader == body.member_id:
            await self._share_out(group, body, instance_id)
        self._coordinator.answer(group.syncs(body.member_id, body.generation_id, ticket, self._clock.elapsed_s()))
        found: ShareAnswer = await self._parked(group, ticket)
        return found

    async def _share_out(self, group: CoordinatedGroup, body: Any, instance_id: str | None) -> None:
        assignments = {one.member_id: bytes(one.assignment) for one in body.assignments}

        def rule(view: GroupView) -> Decision[tuple[None, AnyGroup | None]]:
            decision = sync(
                view, body.group_id, body.member_id, body.generation_id, instance_id=instance_id,
                assignments=assignments,
            )  # fmt: skip
            return Decision(response=(None, decision.group or view.group), group=decision.group)

        await self._coordinator.change(group, rule)

    # --- staying and going ---------------------------------------------------------------------------------

    async def heartbeat(self, call: Call) -> Reply:
        """Heartbeat: from memory, unless the member is to be refused."""
        body = call.body
        try:
            group = await self._coordinator.group(body.group_id)
            await self._checked(group, body.member_id, getattr(body, "group_instance_id", None), body.generation_id)
            group.heard(body.member_id, self._clock.elapsed_s())
            if seen(group.state, body.member_id).phase is GroupPhase.PREPARING:
                raise rebalancing(body.group_id)
        except TidelogError as e:
            return {"error_code": code_of(e)}
        return {}

    async def _checked(
        self, group: CoordinatedGroup, member_id: str, instance_id: str | None, generation: int | None = None
    ) -> None:
        """Refuse a caller that is no member, of this generation; before that, look at the log once more.

        One whose eviction is being written, which takes long when the store is slow, waits for what comes of it.
        """
        if member_id in group.leaves:
            await self._coordinator.look(group)
        try:
            _require_member(group.state, member_id, instance_id, generation)
        except TidelogError:
            await self._coordinator.look(group)
            _require_member(group.state, member_id, instance_id, generation)

    async def leave(self, call: Call) -> Reply:
        """LeaveGroup: one member, or several from version 3 on, static ones too."""
        body = call.body
        try:
            group = await self._coordinator.group(body.group_id)
            if call.version < 3:
                await self._leave(group, body.member_id, None)
                return {}
        except TidelogError as e:
            return {"error_code": code_of(e)}
        members = []
        for member in body.members:
            error = 0
            try:
                await self._leave(group, member.member_id, member.group_instance_id)
            except TidelogError as e:
                error = code_of(e)
            members.append(
                {"member_id": member.member_id, "group_instance_id": member.group_instance_id, "error_code": error}
            )
        return {"members": members}

    async def _leave(self, group: CoordinatedGroup, member_id: str, instance_id: str | None) -> None:
        if instance_id is None and group.drop_expected(member_id):
            return
        group_id, now_ms = group.state.group_id, self._clock.now_ms()

        def rule(view: GroupView) -> Decision[tuple[None, AnyGroup | None]]:
            who = leaving(view.group or current(view, group_id), member_id, instance_id)
            decision = leave(view, group_id, who, now_ms=now_ms, migration=self._settings.migration_policy)
            return Decision(response=(None, decision.group), group=decision.group)

        await self._coordinator.change(group, rule)


# --- rules -----------------------------------------------------------------------------------------------------


def joined_answer(joined: JoinAnswer, version: int) -> Mapping[str, Any]:
    """The answer to JoinGroup. The leader gets all members with what they say for the elected protocol.

    Where a member took the leader's place and the share-out stands, the answer says so from version 9 on (KIP-814);
    before, it names another leader, so that the member shares nothing out.
    """
    group = joined.group
    leads, stands = group.leader == joined.member_id, joined.old_leader is not None
    shown = leads and (not stands or version >= 9)
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "metadata": dict(member.protocols).get(group.protocol or "", b""),
        }
        for member in group.members.values()
        if shown
    ]
    return {
        "generation_id": group.generation,
        "protocol_type": group.protocol_type,
        "protocol_name": group.protocol or "",
        "leader": (joined.old_leader if leads and not shown else group.leader) or "",
        "skip_assignment": shown and stands,
        "member_id": joined.member_id,
        "members": members,
    }


def leaving(group: AnyGroup, member_id: str, instance_id: str | None) -> str:
    """The id of the member that is to leave: a static one may be named by its static id alone.

    One of the consumer protocol leaves by a heartbeat: here an administrator removes a static one. Raises
    UnknownMemberError, FencedInstanceError.
    """
    if isinstance(group, EpochGroup) and instance_id is None and not _is_classic(group, member_id):
        raise other_protocol(group, member_id)
    if instance_id is None or member_id:
        check_member(group, member_id, instance_id)
        return member_id
    members: Iterable[AnyMember] = group.members.values()
    for holder in members:
        if holder.instance_id == instance_id:
            return holder.member_id
    raise UnknownMemberError(f"Group {group.group_id!r} has no member of the static id {instance_id!r}.")


def _require_member(group: AnyGroup, member_id: str, instance_id: str | None, generation: int | None) -> None:
    check_member(group, member_id, instance_id)  # first: one that was replaced is not to join again
    if isinstance(group, EpochGroup) and not _is_classic(group, member_id):
        raise other_protocol(group, member_id)
    if generation is not None:
        check_generation(seen(group, member_id), generation)


def _refuse_by(group: AnyGroup, member: Member, protocol_type: str) -> None:
    """Refuse a newcomer that can't join the group, before it is given an id. Raises as the rules that it joins by."""
    view = GroupView(group)
    if is_modern(group):
        with suppress(MissingTopicsError):
            join_among_modern(view, {}, group.group_id, member, rejoins=False, protocol_type=protocol_type)
    else:
        join(view, group.group_id, member, rejoins=False, now_ms=0, protocol_type=protocol_type)


def _is_classic(group: EpochGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is not None and member.is_classic


def is_modern(group: AnyGroup) -> bool:
    """Whether members of the classic protocol join by the rules of a group of the type consumer."""
    return isinstance(group, ConsumerGroup) and bool(group.members)


def seen(group: AnyGroup, member_id: str) -> Group:
    """A group as its member of the classic protocol sees it."""
    if isinstance(group, StreamsGroup):
        raise other_protocol(group, member_id)
    return seen_by(group, group.members[member_id]) if isinstance(group, ConsumerGroup) else group


def _require_protocol(group: Group, protocol_type: str | None, protocol: str | None) -> None:
    """Refuse a member that takes the group for one of another protocol (KIP-559)."""
    if protocol_type not in (None, group.protocol_type) or protocol not in (None, group.protocol):
        raise InconsistentProtocolError(
            f"Group {group.group_id!r} has protocol {group.protocol!r} of type {group.protocol_type!r}, not"
            f" {protocol!r} of type {protocol_type!r}. Join again."
        )
