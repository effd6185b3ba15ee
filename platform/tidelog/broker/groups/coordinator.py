"""The coordinator of groups: it drives their timers, parks requests, and goes through the log for whatever changes one.

A group's state is in its log only. So a broker that begins to coordinate a group reads it there, gives every member a
full session, and goes on without a rebalance; one that ends answers parked requests that it is not the coordinator.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from tidelog.broker.base.context import Context
from tidelog.broker.base.group_configs import GroupConfigs
from tidelog.broker.groups.coordinated_group import Action, Admit, Answers, CoordinatedGroup, Evict, Joining
from tidelog.broker.groups.decisions import Decisions, elsewhere
from tidelog.broker.groups.heartbeating import AnswerTimes
from tidelog.broker.groups.member_leases import MemberLeases
from tidelog.groups.model import AnyGroup, Decision, Group, GroupPhase, GroupView
from tidelog.groups.rules.members import check_group_id, evict_late, evict_silent, join, join_all
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.server.base.blocking import pause

logger = logging.getLogger(__name__)

R = TypeVar("R")

# Between looks at the timers, and at what native members have written. A gap of PAUSE_S is one in which the broker
# itself was frozen.
TICK_S = 0.1
LOOK_S = 0.25
PAUSE_S = 1.0


class GroupCoordinator:
    """One broker's part as coordinator of groups. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.clock
        self.log = GroupLog(context.lake)
        self.decisions = Decisions(self.log, context)
        self._configs = GroupConfigs(context.settings.groups)
        self._groups: dict[str, CoordinatedGroup] = {}
        self._begun = asyncio.Event()  # while there are groups
        self._member_leases = MemberLeases(context, self)
        self._look_s = 0.0
        self.times = AnswerTimes()
        self._closed = False
        self._ticked_s = self._clock.elapsed_s()
        self._epoch = 0
        self._tasks = [
            asyncio.get_running_loop().create_task(run()) for run in (self._keep_time, self._member_leases.run)
        ]

    # --- which groups --------------------------------------------------------------------------------------

    def coordinates(self, group_id: str) -> bool:
        """Whether this broker coordinates the group."""
        view = self._context.cluster()
        return not self._closed and view.coordinator("group", group_id).id == view.node_id

    def require(self, group_id: str) -> None:
        """Refuse a group that no group may be, and one of another broker. InvalidGroupError, NotCoordinatorError."""
        check_group_id(group_id)
        if not self.coordinates(group_id):
            raise elsewhere(group_id)

    def groups(self) -> Mapping[str, CoordinatedGroup]:
        """The groups that are at hand, by id. Not to be changed."""
        return self._groups

    async def group(self, group_id: str) -> CoordinatedGroup:
        """The group, read from its log where it is not at hand. Raises as `require`, and why it can't be read."""
        self.require(group_id)
        if group_id not in self._groups:
            view = await self.decisions.decide(group_id, _look)
            self.adopt(group_id, view)
        return self._groups[group_id]

    def adopt(self, group_id: str, view: GroupView) -> None:
        """Begin to coordinate a group that is as its log says: all its members have a full session."""
        if group_id not in self._groups:
            group = CoordinatedGroup(group_id, self._context.settings.groups, self._configs)
            self._groups[group_id] = group
            self._begun.set()
            group.configured(view.config)
            self.answer(group.seen(view.group, self._clock.elapsed_s()))

    async def look(self, group: CoordinatedGroup) -> None:
        """See the group as its log has it now. Raises why it can't be read."""
        await self.change(group, lambda view: Decision(response=(None, view.group)))

    # --- changing one --------------------------------------------------------------------------------------

    async def change(
        self,
        group: CoordinatedGroup,
        rule: Callable[[GroupView], Decision[tuple[R, AnyGroup | None]]],
        taken: Callable[[], None] | None = None,
    ) -> R:
        """Decide, and see the group as it is after it: the rule answers with its response and the group.

        `taken`: is called when this waits no more, just before it is decided.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        began_s = self._clock.elapsed_s()

        def done(outcome: Any, error: Exception | None) -> None:
            now_s = self._clock.elapsed_s()
            if error is None:
                self.times.wrote(now_s - began_s)
                self.answer(group.seen(outcome[1], now_s))
            if not future.done():
                future.set_result(outcome[0]) if error is None else future.set_exception(error)

        self.decisions.submit(group.state.group_id, rule, done, taken=taken)
        return await future

    def answer(self, answers: Answers) -> None:
        """Give parked requests their answers."""
        for ticket, given in answers:
            if ticket.done():
                continue
            if isinstance(given, TidelogError):
                ticket.set_exception(given)
            else:
                ticket.set_result(given)

    def join(self, group: CoordinatedGroup, joining: Joining) -> None:
        """Have a member join; its ticket gets the answer when its round is over."""
        now_s = self._clock.elapsed_s()
        held = group.holds(joining, now_s)
        if held is not None:
            self.answer(held)
            return
        group_id, now_ms = group.state.group_id, self._clock.now_ms()
        before: list[AnyGroup] = [group.state]

        def rule(view: GroupView) -> Decision[Group]:
            before[0] = view.group or Group(group_id)
            return join(
                view,
                group_id,
                joining.member,
                rejoins=joining.known,
                now_ms=now_ms,
                protocol_type=joining.protocol_type,
            )

        def done(after: Group, error: Exception | None) -> None:
            group.joining -= 1
            if error is not None:
                self._refuse(joining, error)
                return
            self._joined(group, joining, _took_place(before[0], after, joining))
            self.answer(group.seen(after, self._clock.elapsed_s()))

        group.joining += 1
        self.decisions.submit(group_id, rule, done)

    def _joined(self, group: CoordinatedGroup, joining: Joining, old_leader: str | None) -> None:
        if self._groups.get(group.state.group_id) is not group:  # another broker has the group by now
            self._refuse(joining, elsewhere(group.state.group_id))
            return
        self.answer(group.joined(joining, old_leader))
        if joining.ticket.done():  # its client has gone meanwhile
            asyncio.get_running_loop().call_soon(self.gone, group, joining.ticket)

    def _refuse(self, joining: Joining, error: Exception) -> None:
        if not joining.ticket.done():
            joining.ticket.set_exception(error)

    def _admit(self, group: CoordinatedGroup, admitted: Admit) -> None:
        group_id, now_ms = group.state.group_id, self._clock.now_ms()
        newcomers = [(one.member, one.protocol_type) for one in admitted.joinings]

        def done(outcome: Any, error: Exception | None) -> None:
            group.joining -= len(newcomers)
            refused = {} if error is not None else outcome[1]
            for joining in admitted.joinings:
                why = error or refused.get(joining.member.member_id)
                if why is None:
                    self._joined(group, joining, None)
                else:
                    self._refuse(joining, why)
            if error is None:
                self.answer(group.seen(outcome[0], self._clock.elapsed_s()))

        group.joining += len(newcomers)
        self.decisions.submit(group_id, lambda view: join_all(view, group_id, newcomers, now_ms=now_ms), done)

    def gone(self, group: CoordinatedGroup, ticket: object) -> None:
        """The client of a parked request is gone."""
        evicted = group.gone(ticket, self._clock.elapsed_s())
        if evicted is not None:
            self._act(group, evicted)

    # --- timers --------------------------------------------------------------------------------------------

    async def _keep_time(self) -> None:
        while True:
            if not self._groups:
                self._begun.clear()
                await self._begun.wait()
                self._ticked_s, self._epoch = self._clock.elapsed_s(), self._context.cluster().epoch
                self.times.late_s = 0.0
            await pause(TICK_S)
            try:
                self.tick()
            except Exception:
                logger.exception("The timers of groups were not looked at.")

    def tick(self) -> None:
        """Do what time has brought."""
        now_s = self._clock.elapsed_s()
        paused_s, self._ticked_s = now_s - self._ticked_s, now_s
        self.times.ticked(paused_s, TICK_S)
        epoch_before, self._epoch = self._epoch, self._context.cluster().epoch
        for group_id, group in list(self._groups.items()):
            if not self.coordinates(group_id):
                self._give_up(group_id)
                continue
            if paused_s > PAUSE_S:
                group.paused(paused_s)
            if self._epoch > epoch_before + 1:  # a group may have been another broker's in between
                group.renewed(now_s)
            self.expire(group_id)
            if group.is_idle:
                self._give_up(group_id)
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_S
            self._look_at_all()

    def expire(self, group_id: str) -> None:
        """Do what time has brought to one group: a session ends when it is over, and not at the next tick."""
        group, now_s = self._groups.get(group_id), self._clock.elapsed_s()
        if group is None or now_s - self._ticked_s > PAUSE_S:
            return
        for action in group.due(now_s):
            self._act(group, action)

    def _look_at_all(self) -> None:
        """See what others have written: native members, other brokers."""
        for group_id, group in self._groups.items():

            def done(view: GroupView, error: Exception | None, group: CoordinatedGroup = group) -> None:
                if error is None:
                    group.configured(view.config)
                    self.answer(group.seen(view.group, self._clock.elapsed_s()))

            self.decisions.submit(group_id, _look, done)

    def _act(self, group: CoordinatedGroup, action: Action) -> None:
        if isinstance(action, Admit):
            self._admit(group, action)
            return
        group_id = group.state.group_id
        if isinstance(action, Evict):
            strangers = {name for name in action.turns if group.never_heard(name)}
            if strangers:
                self._member_leases.ask_again(group, strangers)
            turns = {name: turn for name, turn in action.turns.items() if name not in strangers}
            if turns:
                self.evict(group, turns)
            return
        self._write_eviction(group, lambda view, ms: evict_late(view, group_id, action.generation, now_ms=ms))

    def evict(self, group: CoordinatedGroup, turns: Mapping[str, int]) -> None:
        """Members that fell silent go, unless they have joined since."""
        group_id, policy = group.state.group_id, self._context.settings.groups.migration_policy
        self._write_eviction(
            group, lambda view, ms: evict_silent(view, group_id, turns, now_ms=ms, migration=policy), list(turns)
        )

    def _write_eviction(
        self,
        group: CoordinatedGroup,
        rule: Callable[[GroupView, int], Decision[frozenset[str]]],
        names: Iterable[str] = (),
    ) -> None:
        group_id, now_ms, leaves = group.state.group_id, self._clock.now_ms(), Counter(names)

        def with_group(view: GroupView) -> Decision[tuple[frozenset[str], AnyGroup | None]]:
            decision = rule(view, now_ms)
            return Decision(response=(decision.response, decision.group or view.group), group=decision.group)

        def done(outcome: Any, error: Exception | None) -> None:
            group.leaves -= leaves
            if error is not None:
                logger.warning("Members of group %r could not be evicted: %s", group_id, error)
                return
            gone, state = outcome
            if gone:
                logger.info("Group %r: evicted %s.", group_id, ", ".join(sorted(gone)))
                self._member_leases.drop(group_id, gone)
            self.answer(group.seen(state, self._clock.elapsed_s()))

        group.leaves += leaves
        self.decisions.submit(group_id, with_group, done)

    # --- the end -------------------------------------------------------------------------------------------

    def _give_up(self, group_id: str) -> None:
        group = self._groups.pop(group_id)
        self.answer(group.close(elsewhere(group_id)))

    async def close(self) -> None:
        """Coordinate nothing any more: parked clients look elsewhere, what was decided is written."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for group_id in list(self._groups):
            self._give_up(group_id)
        await self.decisions.finish()


def _look(view: GroupView) -> Decision[GroupView]:
    return Decision(response=view)


def _took_place(before: AnyGroup, after: Group, joining: Joining) -> str | None:
    """The leader whose place a newcomer of the same static id has, where no round begins for that."""
    if joining.known or after.phase is not GroupPhase.STABLE or after.leader != joining.member.member_id:
        return None
    return before.leader
