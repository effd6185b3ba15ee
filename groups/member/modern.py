"""A consumer's membership in a group of the type consumer (KIP-848), with no broker in between, as an engine.

It is stepped as a `Membership` is, and gives the same events. Each look decides a heartbeat over the group's log, by
the rule that brokers go by: one that changes nothing writes nothing, and what another member has written is seen at
once.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto

from tidelog.groups.config import MEMBER_SESSIONS, GroupConfig
from tidelog.groups.member.events import (
    AssignableTopics,
    Assigned,
    Event,
    Failed,
    GroupDoor,
    Lost,
    ModernConfig,
    Revoke,
)
from tidelog.groups.member.failure_detector import FailureDetector
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import (
    BUSY_LOOK_S,
    CALM_LOOK_S,
    RETRY_S,
    WATCHED_BUSY_LOOK_S,
    WATCHED_CALM_LOOK_S,
)
from tidelog.groups.member.polling import PollLimit
from tidelog.groups.model import AnyGroup, Assignment, ConsumerGroup, Decision, GroupView, TopicPartition
from tidelog.groups.rules.members import check_member
from tidelog.groups.rules.modern.heartbeat import GOES_AWAY, JOINS, LEAVES, Heartbeat, HeartbeatAnswer, heartbeat
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    GroupNotFoundError,
    InconsistentProtocolError,
    InvalidConfigError,
    MaxPollExceededError,
    StorageUnavailableError,
    TidelogError,
    UnknownMemberError,
    UnreleasedInstanceError,
)
from tidelog.log.storage.leases import Lease
from tidelog.transactions.ports import GroupIdentity

# Between renewals of the member's lease, and a third of its session at most.
BEAT_S = 3.0
# Between looks at the topics that the group subscribes to, by its first member.
REFRESH_S = 3.0


class _Stage(Enum):
    IDLE = auto()  # has no subscription
    PAUSED = auto()  # left because the application did not poll; waits for it
    OUT = auto()  # is to join
    IN = auto()  # is a member
    REVOKING = auto()  # is a member, and waits for the application to give partitions up
    FENCED = auto()  # another consumer has its static id, for good


_AT_REST = frozenset({_Stage.IDLE, _Stage.PAUSED, _Stage.FENCED})


class ModernMembership:
    """One consumer in one group of the type consumer. `watched` and `trouble` are as a `Membership` has them."""

    def __init__(
        self,
        log: GroupDoor,
        leases: Leases,
        assignable: AssignableTopics,
        config: ModernConfig,
        *,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.config = config
        self._log = log
        self._leases = leases
        self._assignable = assignable
        self._clock = clock
        self._ids = ids
        self._id = ids.new()
        self._stage = _Stage.IDLE
        self._epoch = JOINS
        self._topics: frozenset[str] = frozenset()
        self._said: frozenset[str] | None = None  # the topics that the group knows
        self._held: Assignment = frozenset()
        self._revoking: Assignment = frozenset()
        self._events: list[Event] = []
        self._detector: FailureDetector | None = None
        self._lease: Lease | None = None
        self._session_ms = GroupConfig().consumer_session_timeout_ms
        self._beat_s = self._look_s = self._refresh_s = 0.0
        self._looked_s = float("-inf")
        self._poll_limit = PollLimit(config.group_id, config.max_poll_interval_ms, clock)
        self._leads = self._settled = False
        self._refused = ""
        self._fenced: FencedInstanceError | None = None
        self.watched = False
        self.trouble: TidelogError | None = None

    # --- what the client sees ------------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The id in the group; "" while it is no member."""
        return self._id if self._epoch > JOINS else ""

    @property
    def generation(self) -> int:
        """The member's epoch; -1 while it is no member."""
        return self._epoch if self._epoch > JOINS else -1

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that are this member's to read."""
        return _places(self._held)

    @property
    def leads(self) -> bool:
        """Whether it is the first member, which watches over the others and the topics."""
        return self._leads

    @property
    def fenced(self) -> FencedInstanceError | None:
        """Why the member is out for good: another consumer has its static id; None while it is not."""
        return self._fenced

    def identity(self) -> GroupIdentity:
        """The identity to commit with. Raises UnknownMemberError, FencedInstanceError."""
        if self._fenced is not None:
            raise self._fenced
        if self._epoch <= JOINS:
            raise UnknownMemberError(
                f"This consumer is no member of group {self.config.group_id!r}: it has not joined yet, or has lost its"
                " place. What it read since its last commit comes again, here or elsewhere. Poll until it is assigned."
            )
        return GroupIdentity(self.config.group_id, self._id, self._epoch, self.config.instance_id)

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics from now on, all of them; the next step tells the group."""
        self._topics = frozenset(topics)
        if self._topics != self._said:
            self._look_s = 0.0
        if self._stage is _Stage.IDLE:
            self._stage = _Stage.OUT
            self._poll_limit.polled()

    def polled(self) -> None:
        """The application is alive: it polled. Within `max_poll_interval_ms` it must do so again."""
        self._poll_limit.polled()
        if self._stage is _Stage.PAUSED:
            self._stage, self._look_s = _Stage.OUT, 0.0

    def revoked(self) -> None:
        """The application has given up what the last `Revoke` named."""
        if self._stage is _Stage.REVOKING:
            self._held -= self._revoking
            self._revoking = frozenset()
            self._stage, self._look_s = _Stage.IN, 0.0

    def leave(self) -> None:
        """Be no member any more; a static one is away for a session at most. Raises as `GroupDoor.decide` does."""
        if self._stage is not _Stage.FENCED:
            self._go(_Stage.IDLE)

    def wake(self) -> None:
        """The group's log may have something new: a step looks soon, at once if the last look was a while ago."""
        self._look_s = min(self._look_s, self._looked_s + BUSY_LOOK_S)

    def due_s(self) -> float:
        """Seconds until `step` has something to do, 0 for now, infinity while there is nothing to wait for."""
        if self._events:
            return 0.0
        if self._stage in _AT_REST:
            return math.inf
        times = [self._look_s]
        if self._epoch > JOINS:
            times += [self._beat_s, self._poll_limit.at_s]
        return max(0.0, min(times) - self._clock.elapsed_s())

    def step(self) -> list[Event]:
        """Do what is due; returns what happened, in order, each event once. Raises as `Membership.step`."""
        try:
            if self._step():
                self.trouble = None
        except TidelogError as e:
            if not e.retriable:
                raise
            self.trouble = e
            self._look_s = self._clock.elapsed_s() + RETRY_S * (0.5 + self._ids.fraction())
            self._beat_s = min(self._beat_s, self._look_s)
        events, self._events = self._events, []
        return events

    # --- what is due ---------------------------------------------------------------------------------------

    def _step(self) -> bool:
        if self._stage in _AT_REST:
            return True
        looks = self._clock.elapsed_s() >= self._look_s
        if looks:
            self._look()
        if self._epoch > JOINS and self._clock.elapsed_s() >= self._beat_s:
            self._beat()
        self._poll_limit.stepped(self._session_ms)
        if self._epoch > JOINS and self._poll_limit.is_over():
            self._lose(self._poll_limit.overdue())
            self._go(_Stage.PAUSED)
        return looks

    def _look(self) -> None:
        """See what the group is now, and do this member's part in it."""
        self._looked_s = self._clock.elapsed_s()
        try:
            if self._stage is _Stage.REVOKING:
                self._see(self._log.group(self.config.group_id))
            else:
                self._heartbeat()
        except (UnknownMemberError, FencedMemberEpochError) as e:
            self._begin_again(e)
            return
        except FencedInstanceError as e:
            self._end(e)
            return
        except UnreleasedInstanceError as e:
            self._end(FencedInstanceError(str(e)))
            return
        except (GroupNotFoundError, InconsistentProtocolError, InvalidConfigError) as e:  # the group can't take it now
            if self._epoch > JOINS:  # it was removed, and the group was deleted, or has turned back
                self._begin_again(e)
                return
            if str(e) != self._refused:
                self._refused = str(e)
                self._events.append(Failed(e, fatal=False))
        self._look_s = self._clock.elapsed_s() + self._pause_s()

    def _see(self, group: AnyGroup | None) -> None:
        """While the application gives up: only whether it still is a member."""
        if group is not None:
            check_member(group, self._id, self.config.instance_id)
        if not isinstance(group, ConsumerGroup):
            raise UnknownMemberError(f"Group {self.config.group_id!r} has removed this consumer.")
        self._watch(group)

    def _heartbeat(self) -> None:
        now_s = self._clock.elapsed_s()
        if self._epoch == JOINS:
            self._beat()
        request = self._request(refresh=self._epoch == JOINS or (self._leads and now_s >= self._refresh_s))
        answer, group = self._decided(request)
        if request.refresh:
            self._refresh_s = now_s + REFRESH_S
        self._epoch, self._said, self._refused = answer.epoch, self._topics, ""
        member = group.members[self._id]
        self._session_ms = member.session_timeout_ms
        self._leads = min(group.members) == self._id
        self._settled = group.is_reconciled(member)  # what others wait for they look for themselves
        self._take(member.assigned)
        self._watch(group)

    def _request(self, *, refresh: bool) -> Heartbeat:
        config = self.config
        return Heartbeat(
            group_id=config.group_id,
            member_id=self._id,
            epoch=self._epoch,
            client_id=config.client_id,
            host=config.host,
            instance_id=config.instance_id,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            topics=self._topics,
            regex="",
            assignor=config.assignor,
            owned=frozenset((one.topic_id, one.partition) for one in self._held),
            refresh=refresh,
        )

    def _decided(self, request: Heartbeat) -> tuple[HeartbeatAnswer, ConsumerGroup]:
        """A heartbeat, decided over the log; topics that the rule asks for are looked at."""
        facts: dict[str, AssignableTopic | None] = {}
        if request.refresh:
            facts |= self._assignable(self._topics)
        while True:
            try:
                answer = self._answer(_rule(request, facts, self._clock.now_ms()), request)
                break
            except MissingTopicsError as e:
                facts |= self._assignable(e.names)
        group = answer.group
        if not isinstance(group, ConsumerGroup):
            raise UnknownMemberError(f"Group {self.config.group_id!r} is not of the type consumer any more.")
        return answer, group

    def _answer(self, rule: Callable[[GroupView], Decision[HeartbeatAnswer]], request: Heartbeat) -> HeartbeatAnswer:
        """A look is enough where nothing changes, as at most heartbeats."""
        if request.epoch != JOINS:
            seen = rule(self._log.written(self.config.group_id))
            if seen.group is None:
                return seen.response
        return self._log.decide(self.config.group_id, rule)

    def _take(self, assigned: Assignment) -> None:
        """Give up what is not assigned any more; then take what is new."""
        self._stage = _Stage.IN
        gone, new = self._held - assigned, assigned - self._held
        if gone:
            self._revoking, self._stage = gone, _Stage.REVOKING
            self._events.append(Revoke(_places(gone)))
        elif new:
            self._held = assigned
            self._events.append(Assigned(_places(new), _places(assigned)))

    def _watch(self, group: ConsumerGroup) -> None:
        """Watch over the others when that is due."""
        if self._detector is None:
            self._detector = FailureDetector(
                self._log, self._leases, self.config.group_id, self._clock, member_id=self._id, every_s=BEAT_S
            )
        if self._clock.elapsed_s() >= self._detector.due_at():
            self._detector.step(group)

    def _pause_s(self) -> float:
        if not self.watched:
            return CALM_LOOK_S if self._settled else BUSY_LOOK_S
        pause_s = WATCHED_CALM_LOOK_S if self._settled else WATCHED_BUSY_LOOK_S
        due_s = self._detector.due_at() - self._clock.elapsed_s() if self._detector is not None else pause_s
        return max(BUSY_LOOK_S, min(pause_s, due_s, REFRESH_S if self._leads else pause_s))

    def _beat(self) -> None:
        if self._lease is None:
            self._lease = self._leases.of_member(self.config.group_id, self._id)
        self._lease.renew()
        self._beat_s = self._clock.elapsed_s() + min(BEAT_S, self._session_ms / 3000)

    # --- going ---------------------------------------------------------------------------------------------

    def _lose(self, error: TidelogError) -> None:
        """The group goes on without it: it owns nothing, and is to join again."""
        held, self._held, self._revoking = self._held, frozenset(), frozenset()
        if not isinstance(error, MaxPollExceededError):
            self._epoch = JOINS
        if held:
            self._events.append(Lost(_places(held), error))

    def _begin_again(self, error: TidelogError) -> None:
        self._lose(error)
        self._stage, self._look_s = _Stage.OUT, self._looked_s + BUSY_LOOK_S

    def _end(self, error: FencedInstanceError) -> None:
        self._lose(error)
        self._fenced, self._stage = error, _Stage.FENCED
        self._events.append(Failed(error, fatal=True))
        self._forget()

    def _go(self, stage: _Stage) -> None:
        """Leave by a heartbeat."""
        was_in = self._epoch > JOINS
        epoch, self._epoch = (LEAVES if self.config.instance_id is None else GOES_AWAY), JOINS
        self._stage, self._held, self._revoking, self._said = stage, frozenset(), frozenset(), None
        self._detector = None
        if was_in:
            request = Heartbeat(
                group_id=self.config.group_id, member_id=self._id, epoch=epoch, instance_id=self.config.instance_id
            )
            try:
                self._log.decide(self.config.group_id, _rule(request, {}, self._clock.now_ms()))
            except (UnknownMemberError, GroupNotFoundError):  # evicted already: as good as left
                pass
            except FencedInstanceError as e:
                if stage is not _Stage.IDLE:  # it is not to come back
                    self._end(e)
            if epoch == LEAVES:
                self._forget()

    def _forget(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            with suppress(StorageUnavailableError):  # the lease of an id that is no member is never read
                lease.release()


def _rule(
    request: Heartbeat, facts: dict[str, AssignableTopic | None], now_ms: int
) -> Callable[[GroupView], Decision[HeartbeatAnswer]]:
    """The heartbeat over a group, in the session that the group is configured with."""

    def rule(view: GroupView) -> Decision[HeartbeatAnswer]:
        session_ms = _session_ms(view)
        return heartbeat(view, facts, replace(request, session_timeout_ms=session_ms), now_ms=now_ms)

    return rule


def _session_ms(view: GroupView) -> int:
    try:
        config = GroupConfig.parse(view.config)
    except InvalidConfigError:  # a newer program has set what this one does not know
        config = GroupConfig()
    return MEMBER_SESSIONS.bounded(config.consumer_session_timeout_ms)


def _places(partitions: Assignment) -> frozenset[TopicPartition]:
    return frozenset((one.topic, one.partition) for one in partitions)
