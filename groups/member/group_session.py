"""A member's place in its group: its id and generation, and the requests by which it joins, stays and leaves."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from tidelog.groups.consumer_protocol import (
    NO_GENERATION,
    Subscription,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from tidelog.groups.member.events import (
    COOPERATIVE,
    AssignableTopics,
    GroupDoor,
    MemberConfig,
    PartitionCounts,
    no_assignable_topics,
)
from tidelog.groups.member.failure_detector import FailureDetector
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.leader import is_shared_out, share_out, topics_of
from tidelog.groups.model import (
    ConsumerGroup,
    Decision,
    EpochGroup,
    Group,
    GroupPhase,
    GroupView,
    Member,
    TopicPartition,
)
from tidelog.groups.rules.members import check_member, join, leave, other_protocol, sync
from tidelog.groups.rules.migration import seen_by
from tidelog.groups.rules.modern.joining import ClassicGroupError, join_among_modern
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    FencedInstanceError,
    IllegalGenerationError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    StorageUnavailableError,
    UnknownMemberError,
)
from tidelog.log.storage.leases import Lease


class GroupSession:
    """A membership's place in its group, and its requests to the group's log. It decides nothing: `Membership` does.

    `member_id`: "" before the first join. `known`: the group has us under it. `generation`: the last one that we take
    part in, else -1. `round`: the generation that we have joined for.
    """

    def __init__(
        self, log: GroupDoor, leases: Leases, partition_counts: PartitionCounts, config: MemberConfig,
        clock: Clock, ids: Ids, assignable: AssignableTopics = no_assignable_topics,
    ) -> None:  # fmt: skip
        self._assignable = assignable
        self._log = log
        self._leases = leases
        self._partition_counts = partition_counts
        self._config = config
        self._clock = clock
        self._ids = ids
        self._group_id = config.group_id
        self._heartbeat_s = config.heartbeat_interval_ms / 1000
        # The last share, and its generation: `sticky` builds on it after all is given up.
        self._sticky: tuple[frozenset[TopicPartition], int] = (frozenset(), NO_GENERATION)
        self.beat_due_s = 0.0
        self.reset()

    def reset(self) -> None:
        """Have no place in the group: the next join is under a new id."""
        self.member_id = ""
        self._lease: Lease | None = None
        self.known = False
        self.round = 0
        self._detector: FailureDetector | None = None
        self._counts_due_s = 0.0
        self.leave_generation()

    def leave_generation(self) -> None:
        """Take part in no generation; the place in the group stays."""
        self.generation = -1
        self.leads = False
        # Whether the group is of the type consumer, as of the last look; its members, where it is.
        self.among_modern = False
        self._modern: ConsumerGroup | None = None
        self._counts: Mapping[str, int] | None = None  # the partition counts that our share-out rests on

    def remember(self, share: frozenset[TopicPartition]) -> None:
        """Keep the share of this generation, for `sticky` to build on."""
        self._sticky = (share, self.generation)

    # --- looking -------------------------------------------------------------------------------------------

    def look(self) -> Group:
        """The group as it is now. Raises UnknownMemberError and FencedInstanceError when it no longer has us."""
        group = self._log.group(self._group_id) or Group(self._group_id)
        self._modern, self.among_modern = None, isinstance(group, ConsumerGroup)
        if isinstance(group, ConsumerGroup):
            check_member(group, self.member_id, self._config.instance_id)
            member = group.members[self.member_id]
            if not member.is_classic:
                raise other_protocol(group, self.member_id)
            self._modern, self.leads = group, False
            return seen_by(group, member)
        if isinstance(group, EpochGroup):  # it was evicted, and those that came have another protocol
            raise other_protocol(group, self.member_id)
        check_member(group, self.member_id, self._config.instance_id)
        self.leads = group.leader == self.member_id
        return group

    def partitions_changed(self, group: Group) -> bool:
        """Whether the share-out no longer fits the topics' partitions; the leader looks at every heartbeat."""
        now_s = self._clock.elapsed_s()
        if not self.leads or now_s < self._counts_due_s:
            return False
        self._counts_due_s = now_s + self._heartbeat_s
        counts = dict(self._partition_counts(topics_of(group)))
        if self._counts is None:  # a static leader that came back did not share out itself
            self._counts = counts
            return not is_shared_out(group, counts)
        return counts != self._counts

    def watch(self, group: Group) -> float:
        """Watch over the others when that is due; returns when it is due again, 0 when a member was evicted."""
        if self._detector is None:
            return self._clock.elapsed_s() + self._heartbeat_s
        if self._clock.elapsed_s() >= self._detector.due_at() and self._detector.step(self._modern or group):
            return 0.0
        return self._detector.due_at()

    # --- requests ------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Send a heartbeat."""
        if self._lease is None:
            self._lease = self._leases.of_member(self._group_id, self.member_id)
        self._lease.renew()
        self.beat_due_s = self._clock.elapsed_s() + self._heartbeat_s

    def join(self, topics: frozenset[str], owned: frozenset[TopicPartition]) -> Group:
        """Join, or join again; returns the group after it. Raises what the rule `join` does."""
        self.member_id = self.member_id or f"{self._config.instance_id or self._config.client_id}-{self._ids.new()}"
        self.beat()
        member = self._as_member(topics, owned)
        was_known, now_ms = self.known, self._clock.now_ms()
        group = None
        while group is None:
            try:
                group = self._log.decide(
                    self._group_id, lambda view: join(view, self._group_id, member, rejoins=was_known, now_ms=now_ms)
                )
                self.among_modern = False
            except InconsistentProtocolError:
                if not isinstance(self._log.group(self._group_id), ConsumerGroup):
                    raise
                group, self.among_modern = self._joined_among_modern(member), True
        self.known = True
        self.leads = group.leader == self.member_id
        self.round = group.generation + (group.phase is GroupPhase.PREPARING)
        self._counts = None
        if self._detector is None:
            self._detector = FailureDetector(
                self._log, self._leases, self._group_id, self._clock,
                member_id=self.member_id, every_s=self._heartbeat_s,
            )  # fmt: skip
        return group

    def _joined_among_modern(self, member: Member) -> Group | None:
        """Join a group of the type consumer; None where it is a classic one by now. Raises as `join_among_modern`."""
        facts: dict[str, AssignableTopic | None] = {}

        def rule(view: GroupView) -> Decision[Group]:
            return join_among_modern(view, facts, self._group_id, member, rejoins=self.known)

        while True:
            try:
                return self._log.decide(self._group_id, rule)
            except MissingTopicsError as e:
                facts |= self._assignable(e.names)
            except ClassicGroupError:
                return None

    def _as_member(self, topics: Iterable[str], owned: Iterable[TopicPartition]) -> Member:
        """The member as its group is to know it. Source: `ConsumerCoordinator.metadata`."""
        config, generation = self._config, self.generation
        listed, held = tuple(topics), tuple(owned)

        def metadata(strategy: str) -> bytes:
            user_data = None
            if strategy == "sticky" and self._sticky[1] != NO_GENERATION:
                user_data = encode_sticky_user_data(*self._sticky)
            elif strategy == COOPERATIVE:
                user_data = encode_cooperative_user_data(generation)
            return encode_subscription(Subscription(listed, user_data, held, generation))

        return Member(
            member_id=self.member_id,
            client_id=config.client_id,
            host=config.host,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            protocols=tuple((strategy, metadata(strategy)) for strategy in config.strategies),
            instance_id=config.instance_id,
        )

    def share_out(self, group: Group) -> bytes | None:
        """Work out every member's share, hand them in, and return ours; None when the group has gone on meanwhile."""
        counts = dict(self._partition_counts(topics_of(group)))
        shares = share_out(group, counts)
        member_id, generation, instance_id = self.member_id, self.generation, self._config.instance_id
        try:
            assignment = self._log.decide(
                self._group_id,
                lambda view: sync(
                    view, self._group_id, member_id, generation, instance_id=instance_id, assignments=shares
                ),
            )
        except (RebalanceInProgressError, IllegalGenerationError, UnknownMemberError, FencedInstanceError):
            return None  # the next look says which, and what follows
        self._counts = counts
        return assignment

    def forget(self) -> None:
        """Have no place in the group, which has removed us, and delete the lease."""
        lease = self._lease
        self.reset()
        if lease is not None:
            # the lease of an id that is no member is never read, so that one left behind does no harm
            with suppress(StorageUnavailableError):
                lease.release()

    def leave(self) -> None:
        """Leave the group by a request, unless static: then it notices when the session is over."""
        member_id = self.member_id if self.known and self._config.instance_id is None else ""
        self.forget()
        if member_id:
            now_ms = self._clock.now_ms()
            with suppress(UnknownMemberError):  # evicted already: as good as left
                self._log.decide(self._group_id, lambda view: leave(view, self._group_id, member_id, now_ms=now_ms))
