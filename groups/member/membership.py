"""A consumer's membership in a group, as an engine: it does what is due when it is stepped, and tells what happened.

It has no thread, no clock of its own and no global state, so that one process can drive thousands of them. All calls of
one membership come from one thread at a time. Others notice what it does in the group's log; nobody talks to anybody.
"""

import math
from collections.abc import Iterable
from enum import Enum, auto

from tidelog.groups.consumer_protocol import decode_assignment
from tidelog.groups.member.events import (
    Assigned,
    Event,
    Failed,
    GroupDoor,
    Identity,
    Lost,
    MemberConfig,
    PartitionCounts,
    Revoke,
)
from tidelog.groups.member.group_session import Seat
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.voice import Memory
from tidelog.groups.model import Group, Phase, TopicPartition
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    FencedInstanceError,
    IllegalGenerationError,
    InconsistentProtocolError,
    MaxPollExceededError,
    TidelogError,
    UnknownMemberError,
)

Partitions = frozenset[TopicPartition]

# How often the group's log is looked at: calm, and while a rebalance is under way. Seconds.
CALM_LOOK_S = 0.5
BUSY_LOOK_S = 0.05
# The same where somebody calls `wake` when the log has grown; woken over and over, it looks every BUSY_LOOK_S.
WATCHED_CALM_LOOK_S = 4.0
WATCHED_BUSY_LOOK_S = 0.5
# A cooperative rebalance takes a second round. So long it waits, for all to see their shares and give up what moves,
# and so long after a share members go on looking often.
SECOND_ROUND_S = 0.15
AFTERMATH_S = 1.0
RETRY_S = 0.5


class _Stage(Enum):
    IDLE = auto()  # no subscription
    PAUSED = auto()  # left because the application did not poll; waits for it
    JOINING = auto()  # is to join at the next step
    REVOKING = auto()  # waits for the application to give partitions up
    WAITING = auto()  # joined; waits for its share
    READY = auto()  # has its share
    FAILED = auto()


_AT_REST = (_Stage.IDLE, _Stage.PAUSED, _Stage.FAILED)


class Membership:
    """One consumer in one group. See `MemberConfig` for its timings and the events for what it tells.

    `watched`: whoever steps it also calls `wake` as soon as the group's log has grown, so that it looks seldom.
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
    ) -> None:
        self.config = config
        self._seat = Seat(log, leases, partition_counts, config, clock, ids)
        self._clock = clock
        self._ids = ids
        self._stage = _Stage.IDLE
        self._events: list[Event] = []
        self._topics: frozenset[str] = frozenset()
        self._joined_topics: frozenset[str] = frozenset()
        self._owned: Partitions = frozenset()
        self._revoking: Partitions = frozenset()
        self._share: Partitions | None = None  # a share that waits until what is not in it was given up
        self._memory = Memory()
        self._rejoin = False
        self._rejoin_s = self._busy_s = 0.0  # when to join again at the earliest; until when to look often
        self._refused = False  # the group can't take us, and the application was told
        self._polled_s = self._stepped_s = clock.elapsed_s()
        self._look_s = 0.0
        self._looked_s = float("-inf")
        self.watched = False
        self._trouble: TidelogError | None = None
        self.fenced: FencedInstanceError | None = None  # another has our place, for good

    # --- what the client sees ------------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The id in the group; "" while there is none."""
        return self._seat.member_id if self._seat.known else ""

    @property
    def generation(self) -> int:
        """The last generation that this member takes part in; -1 when it is in none."""
        return self._seat.generation

    @property
    def owned(self) -> Partitions:
        """The partitions that are this member's to read."""
        return self._owned

    @property
    def leads(self) -> bool:
        """Whether this member shares the partitions out."""
        return self._seat.leads

    @property
    def trouble(self) -> TidelogError | None:
        """Why the last step could not do its work and tries again; None when it could."""
        return self._trouble

    def identity(self) -> Identity:
        """As whom to commit. Raises UnknownMemberError while it is in no generation: a commit would not be fenced.

        Raises FencedInstanceError for good once another consumer has taken its place.
        """
        if self.fenced is not None:
            raise self.fenced
        if self._seat.generation < 0:
            raise UnknownMemberError(
                f"This consumer is in no generation of group {self.config.group_id!r}: it has not joined yet, or has "
                "lost its place. What it read since its last commit comes again, here or elsewhere. Poll until it is "
                "assigned."
            )
        return Identity(self._seat.member_id, self._seat.generation, self.config.instance_id)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics from now on, all of them; the next steps join, or join again where they changed."""
        self._topics = frozenset(topics)
        if self._stage is _Stage.IDLE:
            self._stage = _Stage.JOINING
            self._polled_s = self._clock.elapsed_s()

    def polled(self) -> None:
        """The application is alive: it polled. Within `max_poll_interval_ms` it must do so again.

        Gaps of over half a session between steps, or in one, don't count: then the whole process was asleep.
        """
        self._polled_s = self._clock.elapsed_s()
        if self._stage is _Stage.PAUSED:
            self._stage = _Stage.JOINING

    def wake(self) -> None:
        """The group's log may have something new: a step looks soon, at once if the last look was a while ago."""
        self._look_s = min(self._look_s, self._looked_s + BUSY_LOOK_S)

    def due_s(self) -> float:
        """Seconds until `step` has something to do, 0 for now, infinity while there is nothing to wait for."""
        if self._events:
            return 0.0
        if self._stage in _AT_REST:
            return math.inf
        times = [self._look_s, self._seat.beat_due_s, self._poll_limit_s()] if self._seat.known else [self._look_s]
        return max(0.0, min(times) - self._clock.elapsed_s())

    def step(self) -> list[Event]:
        """Do what is due; returns what happened, in order.

        Where the store does not answer, or other writers win, it tries again later: see `trouble`. Other errors are
        raised. An event that was told is not told again.
        """
        try:
            if self._step():
                self._trouble = None
        except TidelogError as e:
            if not e.retriable:
                raise
            self._trouble = e
            self._look_s = self._clock.elapsed_s() + RETRY_S * (0.5 + self._ids.fraction())
            self._seat.beat_due_s = min(self._seat.beat_due_s, self._look_s)
        events, self._events = self._events, []
        return events

    def revoked(self) -> None:
        """The application has given up what the last `Revoke` named."""
        if self._stage is not _Stage.REVOKING:
            return
        self._owned -= self._revoking
        self._revoking = frozenset()
        self._look_s = 0.0
        if self._share is None:
            self._stage = _Stage.JOINING
            return
        share, self._share = self._share, None
        self._take(share)
        self._rejoin = True  # what was given up can be handed out now
        self._rejoin_s = self._clock.elapsed_s() + SECOND_ROUND_S

    def leave(self) -> None:
        """Be no member any more, unless static: then only fall silent, so that it may come back within its session.

        The application has given up its partitions before. Raises what `GroupDoor.decide` does; it has left all the
        same as far as this consumer goes, and the others notice when its session is over.
        """
        self._drop(_Stage.IDLE)
        self._seat.leave()

    # --- steps ---------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Do what is due; whether that tells that the store answers: a sign of life alone does not."""
        if self._stage in _AT_REST:
            return True
        seat = self._seat
        looks = self._clock.elapsed_s() >= self._look_s
        if looks:
            self._look()
        if seat.known and self._clock.elapsed_s() >= seat.beat_due_s:
            seat.beat()
        self._pass_over_sleep()
        if seat.known and self._clock.elapsed_s() >= self._poll_limit_s():
            self._pause()
        return looks

    def _pass_over_sleep(self) -> None:
        """A long gap since the last call is no time in which the application did not poll: it slept, too."""
        now_s = self._clock.elapsed_s()
        if now_s - self._stepped_s > self.config.session_timeout_ms / 2000:
            self._polled_s = min(self._polled_s + now_s - self._stepped_s, now_s)
        self._stepped_s = now_s

    def _look(self) -> None:
        """See what the group is now, and do this member's part in it."""
        group = None
        self._looked_s = self._clock.elapsed_s()
        try:
            if self._seat.known:
                group = self._seat.look()
                self._follow(group)
            if self._stage is _Stage.JOINING:
                self._join()
        except (UnknownMemberError, FencedInstanceError) as e:
            self._drop_out(e)
            return
        now_s = self._clock.elapsed_s()
        self._look_s = now_s + min(self.config.heartbeat_interval_ms / 1000, self._pause_s(now_s))
        if group is not None:
            self._look_s = min(self._look_s, self._seat.watch(group))

    def _pause_s(self, now_s: float) -> float:
        busy = now_s < self._busy_s or (self._stage in (_Stage.WAITING, _Stage.JOINING) and not self._refused)
        if not self.watched:
            return BUSY_LOOK_S if busy else CALM_LOOK_S
        if self._rejoin and self._stage is _Stage.READY:
            return max(BUSY_LOOK_S, self._rejoin_s - now_s)
        return WATCHED_BUSY_LOOK_S if busy else WATCHED_CALM_LOOK_S

    def _follow(self, group: Group) -> None:
        if self._stage is _Stage.WAITING:
            self._progress(group)
        elif self._stage in (_Stage.READY, _Stage.REVOKING):
            if group.generation != self._seat.generation:
                self._miss(group)
            elif self._stage is _Stage.READY and self._must_rejoin(group):
                self._prepare()

    def _must_rejoin(self, group: Group) -> bool:
        if group.phase is Phase.PREPARING or self._topics != self._joined_topics:
            return True
        if self._rejoin:
            return self._clock.elapsed_s() >= self._rejoin_s
        return self._seat.partitions_changed(group)

    def _prepare(self) -> None:
        """Give up what must be given up before joining: all of it, or only topics no longer subscribed to."""
        kept = self._topics if self.config.cooperative else frozenset()
        gone = frozenset(partition for partition in self._owned if partition[0] not in kept)
        if gone:
            self._revoke(gone, share=None)
        else:
            self._stage = _Stage.JOINING

    def _revoke(self, partitions: Partitions, share: Partitions | None) -> None:
        self._revoking, self._share, self._stage = partitions, share, _Stage.REVOKING
        self._events.append(Revoke(partitions))

    def _join(self) -> None:
        topics = self._topics
        try:
            group = self._seat.join(topics, self._owned, self._memory)
        except InconsistentProtocolError as e:
            if not self._refused:
                self._events.append(Failed(e, fatal=False))
            self._refused = True
            return
        self._refused, self._rejoin, self._joined_topics = False, False, topics
        self._stage = _Stage.WAITING
        self._progress(group)

    def _progress(self, group: Group) -> None:
        """Go on from having joined, as far as the group is."""
        if group.generation < self._seat.round:
            if self._topics != self._joined_topics:
                self._prepare()
            return
        if group.generation > self._seat.round:
            self._miss(group)
            return
        self._seat.generation = group.generation
        if group.phase is Phase.PREPARING:
            self._prepare()
        elif group.phase is Phase.STABLE:
            self._settle(group.members[self._seat.member_id].assignment)
        elif self._seat.leads:
            assignment = self._seat.share_out(group)
            if assignment is not None:
                self._settle(assignment)

    def _settle(self, assignment: bytes) -> None:
        """Take the share, after giving up what is not in it any more."""
        given = frozenset(decode_assignment(assignment).partitions)
        share = frozenset(partition for partition in given if partition[0] in self._topics)
        self._memory = Memory(share, self._seat.generation)
        self._rejoin = share != given  # the subscription changed since: what is not wanted goes back
        gone = self._owned - share
        if gone:
            self._revoke(gone, share)
        else:
            self._take(share)

    def _take(self, share: Partitions) -> None:
        new = share - self._owned
        self._owned, self._stage = share, _Stage.READY
        if self.config.cooperative:
            self._busy_s = self._clock.elapsed_s() + AFTERMATH_S
        self._events.append(Assigned(new, share))

    # --- going ---------------------------------------------------------------------------------------------

    def _miss(self, group: Group) -> None:
        """A generation began without us, as happens to static members, which keep their place; we join again."""
        error = IllegalGenerationError(
            f"Group {group.group_id!r} went on to generation {group.generation} without this consumer, which did not "
            "join in time: its partitions may be others' now. It joins again."
        )
        self._tell_lost(error)
        self._drop(_Stage.JOINING)
        self._seat.leave_generation()

    def _drop_out(self, error: UnknownMemberError | FencedInstanceError) -> None:
        """The group has us no longer: we join anew, or another has taken our place for good."""
        self.fenced = error if isinstance(error, FencedInstanceError) else None
        self._tell_lost(error)
        self._drop(_Stage.JOINING)
        self._seat.forget()
        if self.fenced is not None:
            self._stage = _Stage.FAILED
            self._events.append(Failed(error, fatal=True))

    def _pause(self) -> None:
        """The application does not poll: others get its partitions until it does."""
        error = MaxPollExceededError(
            f"The application did not poll for {self.config.max_poll_interval_ms} ms, so that its consumer left group "
            f"{self.config.group_id!r}: others read on from its last commit. Poll oftener, take fewer records at a "
            "time, or raise `max.poll.interval.ms`."
        )
        self._tell_lost(error, always=True)
        self._drop(_Stage.PAUSED)
        self._seat.leave()

    def _tell_lost(self, error: TidelogError, *, always: bool = False) -> None:
        if self._owned or always:
            self._events.append(Lost(self._owned, error))

    def _drop(self, stage: _Stage) -> None:
        """Own nothing, and go on in another stage."""
        self._owned = self._revoking = frozenset()
        self._share, self._rejoin, self._refused = None, False, False
        self._stage, self._look_s = stage, 0.0

    def _poll_limit_s(self) -> float:
        return self._polled_s + self.config.max_poll_interval_ms / 1000
