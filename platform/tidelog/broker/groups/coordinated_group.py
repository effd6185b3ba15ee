"""A group at its coordinator, beside what its log says: parked requests, sessions and timers. Pure.

The log has the group's generation, members and offsets. What is here is lost without harm: a client whose request was
parked asks again, and a coordinator that begins again gives every member a full session. Times are seconds of a clock
that is passed in.

Source: `ClassicGroup`, `GroupMetadataManager` (kafka 4.0), `DelayedJoin`, `InitialDelayedJoin`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.broker.base.group_configs import HEARTBEAT, GroupConfigs
from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.groups.acknowledgements import Acknowledgements
from tidelog.broker.groups.errors import GroupFullError
from tidelog.groups.model import AnyGroup, ConsumerGroup, Group, GroupPhase, Member, StreamsGroup
from tidelog.groups.rules.members import check_member
from tidelog.groups.rules.migration import is_to_give_up
from tidelog.log.base.errors import RebalanceInProgressError, TidelogError

# What the shell finds a parked request's client by.
Ticket: TypeAlias = Any

# An eviction that could not be written is tried again after this long.
AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Joining:
    """A request to join. `known`: under the id that it has as a member. `fresh`: its client has not heard its id."""

    member: Member
    protocol_type: str
    known: bool
    ticket: Ticket
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class JoinAnswer:
    """A member belongs to this generation. `old_leader`: it took the place of that one, and the share-out stands."""

    group: Group
    member_id: str
    old_leader: str | None = None


@dataclass(frozen=True, slots=True)
class ShareAnswer:
    """A member has its share."""

    group: Group
    member_id: str


Answers: TypeAlias = list[tuple[Ticket, JoinAnswer | ShareAnswer | TidelogError]]


@dataclass(frozen=True, slots=True)
class Evict:
    """These members are to go, unless they have joined since this turn of theirs."""

    turns: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EvictLate:
    """The round of this generation has had its time."""

    generation: int


@dataclass(frozen=True, slots=True)
class Admit:
    """The first round of a group has waited for its members: they join."""

    joinings: tuple[Joining, ...]


Action: TypeAlias = Evict | EvictLate | Admit


@dataclass(slots=True)
class _Hold:
    """Newcomers to an empty group, and how long they wait for others."""

    joinings: dict[str, Joining]
    until_s: float
    left_s: float
    grew: bool = False


@dataclass(slots=True)
class _ParkedJoin:
    ticket: Ticket
    old_leader: str | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class UserEndpoints:
    """Where members of a streams group answer queries, as an answer has it, and a number that changes with that.

    Worked out of this `state`, and to be worked out again at `until_s`, as its topics may have grown by then.
    """

    state: AnyGroup
    until_s: float
    number: int
    told: list[dict[str, Any]]


class Making:
    """The inner topics of a streams group that are to be made. `goes_on`: whether some are being made."""

    def __init__(self) -> None:
        self.goes_on = False
        self._refused: dict[str, tuple[str, float]] = {}  # by topic: why it was not made, and until when that stands
        self._warned: set[str] = set()

    def keep(self, missing: Iterable[str]) -> None:
        """Only these are still missing."""
        self._refused = {name: self._refused[name] for name in missing if name in self._refused}
        if not self._refused:
            self._warned.clear()

    def is_due(self, name: str, now_s: float) -> bool:
        """Whether a topic is to be made now."""
        return name not in self._refused or now_s >= self._refused[name][1]

    def refuse(self, name: str, why: str, until_s: float) -> bool:
        """A topic could not be made; whether that is to be logged: one of many reasons that are alike."""
        self._refused[name] = why, until_s
        is_new = why not in self._warned
        self._warned.add(why)
        return is_new

    def refusals(self) -> Mapping[str, str]:
        """{topic: why it was not made}."""
        return {name: why for name, (why, _) in self._refused.items()}


class CoordinatedGroup:
    """One group at its coordinator. Answers go back to the caller, by ticket; `due` says what time has brought.

    `state`: what its log says of it.
    """

    def __init__(self, group_id: str, settings: GroupSettings, configs: GroupConfigs) -> None:
        self.state: AnyGroup = Group(group_id)
        self._subscribed: tuple[AnyGroup | None, frozenset[str]] = None, frozenset()
        self._configs = configs
        self._in_force = configs.in_force({})
        # Members that have leases of their own, and those of which that is to be found out.
        self.native: set[str] = set()
        self.unsorted: set[str] = set()
        # Requests to join that are decided just now: not parked yet, and of no member yet.
        self.joining = 0
        # Those that join and may be no members yet, and how many requests of each are under way.
        self.newcomers: Counter[str] = Counter()
        # When the topics that members of the consumer protocol subscribe to are looked at again.
        self.refresh_s = 0.0
        # Until when a streams group that had no members waits for more than the first one.
        self.settles_s = 0.0
        self.making = Making()
        self.endpoints: UserEndpoints | None = None
        self.acknowledgements = Acknowledgements()
        # Until when is known which topics the regular expressions of members match.
        self.matched_until_s: dict[str, float] = {}
        self._settings = settings
        self._deadlines: dict[str, float] = {}  # when a Kafka member's session is over
        self._heard: set[str] = set()
        # Members whose eviction is being written, by how often.
        self.leaves: Counter[str] = Counter()
        self._joins: dict[str, _ParkedJoin] = {}
        self._syncs: dict[str, tuple[Ticket, int]] = {}
        self._pending: dict[str, float] = {}  # ids that were given out, until they are used
        self._hold: _Hold | None = None
        # Members that have to give up partitions, or to join again for that: since when on, in which epoch of theirs.
        self._revocations: dict[str, tuple[int, float]] = {}
        self._round: object = None
        self._round_s = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether nothing here would be missed."""
        waiting = self.joining or self.newcomers or self._joins or self._syncs or self._pending or self._hold
        return not (self._deadlines or self.unsorted or waiting)

    @property
    def kafka_members(self) -> bool:
        """Whether there are members to vouch for."""
        return bool(self._deadlines)

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that members of a group of the type consumer subscribe to, as its log says."""
        state, names = self._subscribed
        if state is not self.state:
            state = self.state
            of_members = state.members.values() if isinstance(state, ConsumerGroup) else ()
            names = frozenset().union(*(member.subscription for member in of_members))
            self._subscribed = state, names
        return names

    def never_heard(self, member_id: str) -> bool:
        """Whether a member is known from the log only."""
        return member_id not in self._heard

    # --- what it is configured with ------------------------------------------------------------------------

    @property
    def config(self) -> Mapping[str, str]:
        """What its log said that it is configured with, by key."""
        return self._in_force.config

    def configured(self, config: Mapping[str, str]) -> None:
        """It is configured with this now, as its log says."""
        self._in_force = self._configs.in_force(config, self._in_force)

    def limits(self, config: Mapping[str, str] | None = None) -> Mapping[str, int]:
        """What counts for it, by key: with a configuration, or the one that was seen. May be asked in any thread."""
        before = self._in_force
        return (before if config is None else self._configs.in_force(config, before)).values

    # --- the log -------------------------------------------------------------------------------------------

    def seen(self, state: AnyGroup | None, now_s: float) -> Answers:
        """The group is this now, as its log says. Groups come in the order of the log."""
        before, self.state = self.state, Group(self.state.group_id) if state is None else state
        state = self.state
        if self._round != (state.phase, state.generation):
            self._round, self._round_s = (state.phase, state.generation), now_s
        self._deadlines = {name: at for name, at in self._deadlines.items() if name in state.members}
        self._heard.intersection_update(state.members)
        self.matched_until_s = {name: at for name, at in self.matched_until_s.items() if name in state.members}
        self.native.intersection_update(state.members)
        self.unsorted = set(state.members).difference(self._deadlines, self.native)
        if state is not before:  # it is looked at a few times a second, and has many members
            self._revocations = self._revoking(now_s)
            self.acknowledgements.keep(state.members)
        return [*self._joins_over(now_s), *self._syncs_over(now_s)]

    def _revoking(self, now_s: float) -> dict[str, tuple[int, float]]:
        state = self.state
        revoking = {name: member.turn for name, member in state.members.items() if is_to_give_up(state, member)}
        before = self._revocations
        return {
            name: before[name] if name in before and before[name][0] == epoch else (epoch, now_s)
            for name, epoch in revoking.items()
        }

    def sort(self, member_id: str, *, native: bool, now_s: float) -> None:
        """A member that is known from the log only has a lease of its own, or else gets a full session here."""
        if member_id not in self.unsorted:
            return
        self.unsorted.discard(member_id)
        if native:
            self.native.add(member_id)
        else:
            self._begin_session(member_id, now_s)

    def turns_native(self, member_id: str) -> None:
        """A member that was taken for one of Kafka's has a lease of its own."""
        if self._deadlines.pop(member_id, None) is not None:
            self.native.add(member_id)

    def _joins_over(self, now_s: float) -> Answers:
        answers: Answers = []
        for name, parked in list(self._joins.items()):
            member = self.state.members.get(name)
            if member is not None and self.state.phase is GroupPhase.PREPARING and member.joined:
                continue
            del self._joins[name]
            refusal = self.refusal(name)
            self.heard(name, now_s)
            if isinstance(self.state, Group) and refusal is None:
                answers.append((parked.ticket, JoinAnswer(self.state, name, parked.old_leader)))
            else:  # it is no member any more, or not of this protocol
                answers.append((parked.ticket, refusal or rebalancing(self.state.group_id)))
        return answers

    def _syncs_over(self, now_s: float) -> Answers:
        answers: Answers = []
        for name, (ticket, generation) in list(self._syncs.items()):
            answer: ShareAnswer | TidelogError | None = self.refusal(name)
            if answer is None:
                is_over = self.state.phase is GroupPhase.PREPARING or self.state.generation != generation
                if is_over or not isinstance(self.state, Group):
                    answer = rebalancing(self.state.group_id)
                elif self.state.phase is GroupPhase.STABLE:
                    answer = ShareAnswer(self.state, name)
                else:
                    continue
            del self._syncs[name]
            self.heard(name, now_s)
            answers.append((ticket, answer))
        return answers

    def refusal(self, member_id: str, instance_id: str | None = None) -> TidelogError | None:
        """Why this is no member; None for one."""
        try:
            check_member(self.state, member_id, instance_id)
        except TidelogError as e:
            return e
        return None

    # --- sessions ------------------------------------------------------------------------------------------

    def heard(self, member_id: str, now_s: float) -> None:
        """A member shows life: its session begins again."""
        if member_id in self.state.members and member_id not in self.native:
            self._heard.add(member_id)
            self.unsorted.discard(member_id)
            self._begin_session(member_id, now_s)

    def _begin_session(self, member_id: str, now_s: float) -> None:
        member = self.state.members.get(member_id)
        if member is not None:
            self._deadlines[member_id] = now_s + member.session_timeout_ms / 1000

    def paused(self, seconds: float) -> None:
        """The coordinator itself did nothing for so long: that counts against no member."""
        self._deadlines = {name: at + seconds for name, at in self._deadlines.items()}
        self._pending = {name: at + seconds for name, at in self._pending.items()}
        self._revocations = {name: (epoch, at + seconds) for name, (epoch, at) in self._revocations.items()}
        self._round_s += seconds

    def renewed(self, now_s: float) -> None:
        """Another broker may have heard the members meanwhile: sessions, and a round, begin again from here."""
        self._round_s = now_s
        self._revocations = {name: (epoch, now_s) for name, (epoch, _) in self._revocations.items()}
        for name in list(self._deadlines):
            self._begin_session(name, now_s)

    # --- joining -------------------------------------------------------------------------------------------

    def expect(self, member_id: str, session_s: float, now_s: float) -> None:
        """An id was given to a newcomer, which is to join with it."""
        self._pending[member_id] = now_s + session_s

    def expects(self, member_id: str) -> bool:
        """Whether a newcomer was given this id."""
        return member_id in self._pending

    def drop_expected(self, member_id: str) -> bool:
        """The newcomer of this id does not come; whether there was one."""
        return self._pending.pop(member_id, None) is not None

    @contextmanager
    def room_for(self, member_id: str, becomes: type[AnyGroup]) -> Iterator[None]:
        """Keep a place for what joins until that is over: many may join while the first one is decided.

        `becomes`: the group's type once it has joined. Raises `GroupFullError`.
        """
        if member_id not in self.state.members and member_id not in self.newcomers:
            self._check_room(becomes)
        self.newcomers[member_id] += 1
        try:
            yield
        finally:
            self.newcomers[member_id] -= 1
            if not self.newcomers[member_id]:
                del self.newcomers[member_id]

    def _check_room(self, becomes: type[AnyGroup]) -> None:
        waiting = len(self._hold.joinings) if self._hold else len(self.newcomers.keys() - self.state.members.keys())
        most, name = {
            Group: (self._settings.max_size, "group.max.size"),
            ConsumerGroup: (self._settings.consumer_max_size, "group.consumer.max.size"),
            StreamsGroup: (self._settings.streams_max_size, "group.streams.max.size"),
        }[becomes]
        if len(self.state.members) + waiting >= most:
            raise GroupFullError(f"Group {self.state.group_id!r} has {most} members, `{name}`.")

    def holds(self, joining: Joining, now_s: float) -> Answers | None:
        """Have a newcomer to an empty group wait for others, so that its first round has them all; None: it must not.

        The answers are for a request that this one repeats.
        """
        delay_s = self._settings.initial_rebalance_delay_ms / 1000
        if self.state.members or not delay_s or joining.known:
            return None
        name, hold = joining.member.member_id, self._hold
        if hold is None:
            longest_s = joining.member.rebalance_timeout_ms / 1000
            self._hold = _Hold({name: joining}, now_s + delay_s, max(0.0, longest_s - delay_s))
            return []
        before = hold.joinings.get(name)
        hold.joinings[name] = joining
        hold.grew = hold.grew or before is None
        return [] if before is None else [(before.ticket, rebalancing(self.state.group_id))]

    def joined(self, joining: Joining, old_leader: str | None = None) -> Answers:
        """A join is written: its client waits until its round is over. To be followed by `seen`."""
        name = joining.member.member_id
        self._pending.pop(name, None)
        before = self._joins.get(name)
        self._joins[name] = _ParkedJoin(joining.ticket, old_leader, joining.fresh)
        return [] if before is None else [(before.ticket, rebalancing(self.state.group_id))]

    def syncs(self, member_id: str, generation: int, ticket: Ticket, now_s: float) -> Answers:
        """A member waits for its share. Answers what is over by now."""
        before = self._syncs.get(member_id)
        self._syncs[member_id] = ticket, generation
        answers = self._syncs_over(now_s)
        return answers if before is None else [*answers, (before[0], rebalancing(self.state.group_id))]

    def gone(self, ticket: Ticket, now_s: float) -> Evict | None:
        """The client of a parked request is gone: its session runs from here.

        One that has not heard its id is to be evicted: it would join again as another member.
        """
        if self._hold is not None:
            kept = {name: one for name, one in self._hold.joinings.items() if one.ticket is not ticket}
            self._hold.joinings = kept
            if not kept:
                self._hold = None
        for name, parked in list(self._joins.items()):
            if parked.ticket is ticket:
                del self._joins[name]
                self.heard(name, now_s)
                member = self.state.members.get(name)
                if parked.fresh and member is not None and member.instance_id is None:
                    return Evict({name: member.turn})
        for name, (waiting, _) in list(self._syncs.items()):
            if waiting is ticket:
                del self._syncs[name]
                self.heard(name, now_s)
        return None

    def close(self, why: TidelogError) -> Answers:
        """End: all that wait get this answer."""
        answers: Answers = [(parked.ticket, why) for parked in self._joins.values()]
        answers += [(ticket, why) for ticket, _ in self._syncs.values()]
        answers += [(one.ticket, why) for one in self._hold.joinings.values()] if self._hold else []
        self._joins, self._syncs, self._hold = {}, {}, None
        return answers

    # --- timers --------------------------------------------------------------------------------------------

    def due(self, now_s: float) -> list[Action]:
        """What is to be done now that it is so late. What is not done comes again."""
        self._pending = {name: at for name, at in self._pending.items() if at > now_s}
        actions: list[Action] = []
        members = self.state.members
        parked = self._joins.keys() | self._syncs.keys()
        silent = [name for name, at in self._deadlines.items() if at <= now_s and name not in parked]
        if silent:
            self._deadlines |= dict.fromkeys(silent, now_s + AGAIN_S)
            actions.append(Evict({name: members[name].turn for name in silent}))
        # A member of the consumer protocol hears that it has to give up at its next heartbeat.
        unheard_s = self.limits()[HEARTBEAT] / 1000 if isinstance(self.state, ConsumerGroup) else 0.0
        late = {
            name: epoch
            for name, (epoch, since_s) in self._revocations.items()
            if now_s - since_s >= members[name].rebalance_timeout_ms / 1000 + unheard_s
        }
        if late:
            self._revocations |= {name: (epoch, now_s) for name, epoch in late.items()}
            actions.append(Evict(late))
        if self._is_late(now_s):
            self._round_s = now_s
            actions.append(EvictLate(self.state.generation))
        admitted = self._admit(now_s)
        return actions if admitted is None else [*actions, admitted]

    def _is_late(self, now_s: float) -> bool:
        state = self.state
        if not isinstance(state, Group):
            return False
        joining = state.phase is GroupPhase.PREPARING and any(member.joined for member in state.members.values())
        if not joining and state.phase is not GroupPhase.COMPLETING:
            return False
        longest_ms = max((member.rebalance_timeout_ms for member in state.members.values()), default=0)
        return now_s - self._round_s >= longest_ms / 1000

    def _admit(self, now_s: float) -> Admit | None:
        hold = self._hold
        if hold is None:
            return None
        if not self.state.members:
            if now_s < hold.until_s:
                return None
            if hold.grew and hold.left_s > 0:
                more_s = min(self._settings.initial_rebalance_delay_ms / 1000, hold.left_s)
                hold.until_s, hold.left_s, hold.grew = now_s + more_s, hold.left_s - more_s, False
                return None
        self._hold = None
        return Admit(tuple(hold.joinings.values()))


def rebalancing(group_id: str) -> RebalanceInProgressError:
    """The error for a member whose group is in a round."""
    return RebalanceInProgressError(f"Group {group_id!r} is rebalancing: its members join again. Join again.")
