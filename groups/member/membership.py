"""A consumer's membership in a group, as an engine: it does what is due when it is stepped, and returns what happened.

It has no thread, no clock of its own and no global state, so that one process can drive thousands of them. All calls of
one membership come from one thread at a time. Members learn of each other from the group's log alone.
`transitions` decides; this shell observes the group and the clock, and carries the effects out.
"""

import math
from collections.abc import Iterable

from tidelog.groups.consumer_protocol import decode_assignment
from tidelog.groups.member.events import (
    AssignableTopics,
    Assigned,
    Event,
    GroupDoor,
    MemberConfig,
    PartitionCounts,
    no_assignable_topics,
)
from tidelog.groups.member.group_session import GroupSession
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.polling import PollLimit
from tidelog.groups.member.transitions import (
    AT_REST,
    Happening,
    MemberStage,
    MemberState,
    Partitions,
    Request,
    advance,
)
from tidelog.groups.model import Group, GroupPhase
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    FencedInstanceError,
    IllegalGenerationError,
    InconsistentProtocolError,
    TidelogError,
    UnknownMemberError,
)
from tidelog.transactions.ports import GroupIdentity

# How often the group's log is looked at: calm, and while a rebalance is under way. Seconds.
CALM_LOOK_S = 0.5
BUSY_LOOK_S = 0.05
# The same where the owner calls `wake` when the log has grown; woken over and over, it looks every BUSY_LOOK_S.
WATCHED_CALM_LOOK_S = 4.0
WATCHED_BUSY_LOOK_S = 0.5
# A cooperative rebalance takes a second round. It waits this long, for all members to see their shares and give up what
# moves; and this long after a share members go on looking often.
SECOND_ROUND_S = 0.15
AFTERMATH_S = 1.0
RETRY_S = 0.5


class Membership:
    """One consumer in one group. See `MemberConfig` for its timings and the events for what it reports.

    `watched`: its owner also calls `wake` as soon as the group's log has grown, so that it looks seldom. `trouble`: why
    the last step could not do its work and tries again; None when it could.
    """

    def __init__(
        self,
        log: GroupDoor,
        leases: Leases,
        partition_counts: PartitionCounts,
        config: MemberConfig,
        *,
        clock: Clock,
        ids: Ids,
        assignable: AssignableTopics = no_assignable_topics,
    ) -> None:
        self.config = config
        self._session = GroupSession(log, leases, partition_counts, config, clock, ids, assignable)
        self._joined_among_modern = False
        self._requests = {
            Request.LEAVE: self._session.leave,
            Request.FORGET: self._session.forget,
            Request.LEAVE_GENERATION: self._session.leave_generation,
        }
        self._clock = clock
        self._ids = ids
        self._state = MemberState(config.cooperative)
        self._events: list[Event] = []
        self._again_s = self._busy_s = 0.0  # when to join again (JOINS_AGAIN); until when to look often
        self._poll_limit = PollLimit(config.group_id, config.max_poll_interval_ms, clock)
        self._look_s = 0.0
        self._looked_s = float("-inf")
        self.watched = False
        self.trouble: TidelogError | None = None

    # --- what the client sees ------------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The id in the group; "" while there is none."""
        return self._session.member_id if self._session.known else ""

    @property
    def generation(self) -> int:
        """The last generation that this member takes part in; -1 when it is in none."""
        return self._session.generation

    @property
    def owned(self) -> Partitions:
        """The partitions that are this member's to read."""
        return self._state.owned

    @property
    def leads(self) -> bool:
        """Whether this member shares the partitions out."""
        return self._session.leads

    @property
    def fenced(self) -> FencedInstanceError | None:
        """Why the member is out for good: another consumer has its place; None while it is not."""
        return self._state.fenced

    def identity(self) -> GroupIdentity:
        """The identity to commit with. Raises UnknownMemberError in no generation: a commit would not be fenced.

        Raises FencedInstanceError for good once another consumer has taken its place.
        """
        if self.fenced is not None:
            raise self.fenced
        if self._session.generation < 0:
            raise UnknownMemberError(
                f"This consumer is in no generation of group {self.config.group_id!r}: it has not joined yet, or has "
                "lost its place. What it read since its last commit comes again, here or elsewhere. Poll until it is "
                "assigned."
            )
        config = self.config
        return GroupIdentity(config.group_id, self.member_id, self.generation, config.instance_id)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics from now on, all of them; the next steps join, or join again where they changed."""
        self._happens(Happening.SUBSCRIBED, frozenset(topics))

    def polled(self) -> None:
        """The application is alive: it polled. Within `max_poll_interval_ms` it must do so again.

        Gaps of over half a session between steps, or in one, don't count: then the whole process was asleep.
        """
        self._poll_limit.polled()
        self._happens(Happening.POLLED)

    def revoked(self) -> None:
        """The application has given up what the last `Revoke` named."""
        self._happens(Happening.REVOKED)

    def leave(self) -> None:
        """Be no member any more, unless static: then only fall silent, so that it may come back within its session.

        The application has given up its partitions before. Raises what `GroupDoor.decide` does; it has left all the
        same as far as this consumer goes, and the others notice when its session is over.
        """
        self._happens(Happening.LEFT)

    def wake(self) -> None:
        """The group's log may have something new: a step looks soon, at once if the last look was a while ago."""
        self._look_s = min(self._look_s, self._looked_s + BUSY_LOOK_S)

    def due_s(self) -> float:
        """Seconds until `step` has something to do, 0 for now, infinity while there is nothing to wait for."""
        if self._events:
            return 0.0
        if self._state.stage in AT_REST:
            return math.inf
        session = self._session
        times = [self._look_s, session.beat_due_s, self._poll_limit.at_s] if session.known else [self._look_s]
        return max(0.0, min(times) - self._clock.elapsed_s())

    def step(self) -> list[Event]:
        """Do what is due; returns what happened, in order, each event once.

        Where the store does not answer, or other writers win, it tries again later: see `trouble`. Other errors are
        raised.
        """
        try:
            if self._step():
                self.trouble = None
        except TidelogError as e:
            if not e.retriable:
                raise
            self.trouble = e
            self._look_s = self._clock.elapsed_s() + RETRY_S * (0.5 + self._ids.fraction())
            self._session.beat_due_s = min(self._session.beat_due_s, self._look_s)
        events, self._events = self._events, []
        return events

    # --- effects -------------------------------------------------------------------------------------------

    def _happens(self, happening: Happening, given: object = None) -> None:
        """Go on to the next stage, and execute its effects; after a change the next look is due at once."""
        before = self._state.stage
        self._state, effects = advance(self._state, happening, given)
        now_s = self._clock.elapsed_s()
        if self._state.stage is not before:
            self._look_s = 0.0
            if before is MemberStage.IDLE:
                self._poll_limit.polled()
            if self._state.stage is MemberStage.JOINS_AGAIN:
                self._again_s = now_s + SECOND_ROUND_S
        for effect in effects:
            if isinstance(effect, Request):
                self._requests[effect]()
                continue
            if isinstance(effect, Assigned) and self.config.cooperative:
                self._busy_s = now_s + AFTERMATH_S
            self._events.append(effect)

    # --- observing -----------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Do what is due; whether that shows that the store answers: a heartbeat alone does not."""
        if self._state.stage in AT_REST:
            return True
        session = self._session
        looks = self._clock.elapsed_s() >= self._look_s
        if looks:
            self._look()
        if session.known and self._clock.elapsed_s() >= session.beat_due_s:
            session.beat()
        self._poll_limit.stepped(self.config.session_timeout_ms)
        if session.known and self._poll_limit.is_over():
            self._happens(Happening.POLL_OVERDUE, self._poll_limit.overdue())
        return looks

    def _look(self) -> None:
        """See what the group is now, and do this member's part in it."""
        group = None
        self._looked_s = self._clock.elapsed_s()
        try:
            if self._session.known:
                group = self._session.look()
                self._follow(group)
            if self._state.stage in (MemberStage.JOINING, MemberStage.REFUSED):
                self._join()
        except UnknownMemberError as e:
            self._happens(Happening.EVICTED, e)
            return
        except FencedInstanceError as e:
            self._happens(Happening.INSTANCE_FENCED, e)
            return
        now_s = self._clock.elapsed_s()
        self._look_s = now_s + min(self.config.heartbeat_interval_ms / 1000, self._pause_s(now_s))
        if group is not None:
            self._look_s = min(self._look_s, self._session.watch(group))

    def _pause_s(self, now_s: float) -> float:
        stage = self._state.stage
        busy = now_s < self._busy_s or stage in (MemberStage.WAITING, MemberStage.JOINING)
        if not self.watched:
            return BUSY_LOOK_S if busy else CALM_LOOK_S
        if stage is MemberStage.JOINS_AGAIN:
            return max(BUSY_LOOK_S, self._again_s - now_s)
        if stage is MemberStage.READY and self._state.resubscribed:
            return BUSY_LOOK_S
        return WATCHED_BUSY_LOOK_S if busy else WATCHED_CALM_LOOK_S

    def _follow(self, group: Group) -> None:
        match self._state.stage:
            case MemberStage.WAITING:
                self._follow_round(group)
            case MemberStage.READY | MemberStage.JOINS_AGAIN | MemberStage.YIELDING | MemberStage.REVOKING:
                if group.generation != self._session.generation:
                    self._miss(group)
                elif self._must_rejoin(group):
                    self._happens(Happening.REJOIN_DUE)

    def _must_rejoin(self, group: Group) -> bool:
        stage = self._state.stage
        if stage not in (MemberStage.READY, MemberStage.JOINS_AGAIN):  # it joins when the application has given up
            return False
        if group.phase is GroupPhase.PREPARING or self._state.resubscribed:
            return True
        if stage is MemberStage.JOINS_AGAIN:
            return self._clock.elapsed_s() >= self._again_s
        return self._session.partitions_changed(group)

    def _join(self) -> None:
        topics = self._state.topics
        try:
            group = self._session.join(topics, self._state.owned)
        except InconsistentProtocolError as e:
            self._happens(Happening.JOIN_REFUSED, e)
            return
        self._joined_among_modern = self._session.among_modern
        self._happens(Happening.JOIN_ACCEPTED, topics)
        self._follow_round(group)

    def _follow_round(self, group: Group) -> None:
        """Go on from having joined, as far as the group is."""
        session = self._session
        if group.generation < session.round:
            if self._state.resubscribed or session.among_modern is not self._joined_among_modern:
                self._happens(Happening.REJOIN_DUE)
            return
        if group.generation > session.round:
            self._miss(group)
            return
        session.generation = group.generation
        assignment = None
        if group.phase is GroupPhase.PREPARING:
            self._happens(Happening.REJOIN_DUE)
        elif group.phase is GroupPhase.STABLE:
            assignment = group.members[session.member_id].assignment
        elif session.leads:
            assignment = session.share_out(group)
        if assignment is not None:
            given = decode_assignment(assignment).partitions
            share = frozenset(partition for partition in given if partition[0] in self._state.topics)
            session.remember(share)
            self._happens(Happening.SHARE_GIVEN, share)

    def _miss(self, group: Group) -> None:
        """A generation began without this member, as happens to static members, which keep their place."""
        error = IllegalGenerationError(
            f"Group {group.group_id!r} went on to generation {group.generation} without this consumer, which did not "
            "join in time: its partitions may be others' now. It joins again."
        )
        self._happens(Happening.GENERATION_MISSED, error)
