"""Heartbeats at a coordinator: it vouches for the members that it hears, and watches native members' leases.

A broker has one lease for all members that it vouches for, and one object a group that names the broker, written when
it begins to coordinate the group. Native members read both in place of a lease of each member.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Protocol

from tidelog.broker.base.context import Context
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.groups.member.heartbeats import HeartbeatTimers, Leases
from tidelog.groups.model import GroupView
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.storage.leases import Lease
from tidelog.server.base.blocking import pause

logger = logging.getLogger(__name__)

# Between rounds of looking, and between heartbeats of the broker: at most a third of any session that it vouches for.
ROUND_S = 0.25
# The same while there is no group here.
IDLE_ROUND_S = 1.0
LONGEST_BEAT_S = 3.0


class Coordinated(Protocol):
    """The groups of a coordinator."""

    log: GroupLog

    def groups(self) -> Mapping[str, CoordinatedGroup]:
        """Those at hand, by id."""

    def coordinates(self, group_id: str) -> bool:
        """Whether this broker coordinates the group."""

    def adopt(self, group_id: str, view: GroupView) -> None:
        """Begin to coordinate it, as its log says that it is."""

    def evict(self, group: CoordinatedGroup, turns: Mapping[str, int]) -> None:
        """Have members go, unless they have joined since these turns of theirs."""


class MemberLeases:
    """One coordinator's leases. For the loop's thread; the store is reached through `Context.blocking`."""

    def __init__(self, context: Context, coordinator: Coordinated) -> None:
        self._context = context
        self._clock = context.clock
        self._coordinator = coordinator
        self._leases = Leases(context.lake.storage)
        self._own: dict[int, Lease] = {}  # by the broker's id, which another registration may change
        self._beat_s = 0.0
        self._vouched: set[str] = set()
        self._watched: dict[str, tuple[HeartbeatTimers, float]] = {}
        self._epoch: int | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Go on until cancelled; then vouch no more."""
        try:
            while True:
                try:
                    await self.round()
                except TidelogError as e:
                    logger.warning("Leases of groups' members can't be read or written: %s", e)
                except Exception:
                    logger.exception("Leases of groups' members were not looked at.")
                await pause(ROUND_S if self._coordinator.groups() else IDLE_ROUND_S)
        finally:
            await asyncio.shield(self._end())

    async def round(self) -> None:
        """Take over what is new to coordinate, find out which are native, vouch, and watch."""
        if not self._context.cluster().cluster_id:  # the broker has not registered yet, and has no id
            return
        await self._take_over()
        groups = dict(self._coordinator.groups())
        for group in groups.values():
            if group.unsorted:
                await self._sort(group)
        await self._vouch(groups)
        await self._beat(groups)
        for group_id, group in groups.items():
            if group.native and group.kafka_members:
                await self._watch(group_id, group)
            else:
                self._watched.pop(group_id, None)

    # --- taking over ---------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        """When the brokers have changed: begin to coordinate the groups whose members no other broker hears now."""
        epoch = self._context.cluster().epoch
        if epoch == self._epoch:
            return
        groups: Mapping[str, GroupView] = await self._context.blocking(self._coordinator.log.with_members)
        for group_id, view in groups.items():
            if self._coordinator.coordinates(group_id):
                self._coordinator.adopt(group_id, view)
        self._epoch = epoch

    async def _sort(self, group: CoordinatedGroup) -> None:
        asked = sorted(group.unsorted)
        counters = await self._counters(group.state.group_id, asked)
        for name in asked:
            group.sort(name, native=counters[name] is not None, now_s=self._clock.elapsed_s())

    async def _counters(self, group_id: str, names: Iterable[str]) -> Mapping[str, int | None]:
        def read() -> Mapping[str, int | None]:
            return {name: self._leases.of_member(group_id, name).seen() for name in names}

        return await self._context.blocking(read)

    def ask_again(self, group: CoordinatedGroup, names: Iterable[str]) -> None:
        """Evict members that are known from the log only, unless they turn out to have leases of their own."""
        self._begin(self._evict_strangers(group, list(names)))

    async def _evict_strangers(self, group: CoordinatedGroup, names: list[str]) -> None:
        try:
            counters = await self._counters(group.state.group_id, names)
        except TidelogError as e:
            logger.warning("Leases of group %r can't be read: %s", group.state.group_id, e)
            return
        silent = {}
        for name in names:
            if counters[name] is not None:
                group.turns_native(name)
            elif group.never_heard(name) and name in group.state.members:
                silent[name] = group.state.members[name].turn
        if silent:
            self._coordinator.evict(group, silent)

    # --- vouching ------------------------------------------------------------------------------------------

    async def _vouch(self, groups: Mapping[str, CoordinatedGroup]) -> None:
        wanted = {group_id for group_id, group in groups.items() if group.kafka_members}
        node_id = self._context.node_id
        for group_id in sorted(wanted - self._vouched):
            await self._context.blocking(self._leases.vouch, group_id, node_id)
            self._vouched.add(group_id)
            self._beat_s = 0.0
        for group_id in sorted(self._vouched - wanted):
            self._vouched.discard(group_id)
            await self._context.blocking(self._leases.end_vouching, group_id, node_id)

    async def _beat(self, groups: Mapping[str, CoordinatedGroup]) -> None:
        now_s = self._clock.elapsed_s()
        if not self._vouched or now_s < self._beat_s:
            return
        sessions = [
            member.session_timeout_ms / 1000
            for group_id in self._vouched
            if group_id in groups
            for member in groups[group_id].state.members.values()
        ]
        node_id = self._context.node_id
        if node_id not in self._own:  # a broker of this id before it may have written any count
            self._own[node_id] = self._leases.of_broker(node_id, self._clock.now_ms())
        await self._context.blocking(self._own[node_id].renew)
        self._beat_s = now_s + min([LONGEST_BEAT_S, *(session / 3 for session in sessions)])

    async def _end(self) -> None:
        for group_id in self._vouched:
            try:
                await self._context.blocking(self._leases.end_vouching, group_id, self._context.node_id)
            except TidelogError:  # the broker's lease is not renewed any more, so that it means nothing
                return

    # --- native members ------------------------------------------------------------------------------------

    async def _watch(self, group_id: str, group: CoordinatedGroup) -> None:
        """Evict native members whose leases are still; see to it that the group names this broker."""
        timers, due_s = self._watched.setdefault(group_id, (HeartbeatTimers(), 0.0))
        if self._clock.elapsed_s() < due_s:
            return
        watched = [member for name, member in group.state.members.items() if name in group.native]
        counters = await self._counters(group_id, [member.member_id for member in watched])
        if await self._context.blocking(self._leases.voucher, group_id) != self._context.node_id:
            self._vouched.discard(group_id)
        now_s = self._clock.elapsed_s()
        timers.keep(member.member_id for member in watched)
        for member in watched:
            timers.look(member, counters[member.member_id], now_s)
        shortest_s = min((member.session_timeout_ms / 4000 for member in watched), default=LONGEST_BEAT_S)
        self._watched[group_id] = timers, now_s + min(LONGEST_BEAT_S, shortest_s)
        silent = dict(timers.silent())
        if silent:
            self._coordinator.evict(group, silent)

    def drop(self, group_id: str, names: Iterable[str]) -> None:
        """Delete the leases of former members."""
        self._begin(self._drop(group_id, list(names)))

    async def _drop(self, group_id: str, names: Iterable[str]) -> None:
        try:
            for name in names:
                await self._context.blocking(self._leases.of_member(group_id, name).release)
        except TidelogError:  # the lease of an id that is no member is never read
            return

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
