"""A member's seat in its group: its id and generation, and the requests by which it takes, keeps and leaves it."""

from collections.abc import Mapping
from contextlib import suppress

from tidelog.groups.member.events import GroupDoor, MemberConfig, PartitionCounts
from tidelog.groups.member.failure_detector import Watchman
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.leader import is_shared_out, share_out, topics_of
from tidelog.groups.member.voice import Memory, as_member
from tidelog.groups.model import Group, Phase, TopicPartition
from tidelog.groups.rules.members import check_member, join, leave, sync
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import (
    FencedInstanceError,
    IllegalGenerationError,
    RebalanceInProgressError,
    StorageUnavailableError,
    UnknownMemberError,
)


class Seat:
    """Where a membership stands with its group. It decides nothing: `Membership` does.

    `member_id`: "" before the first join. `known`: the group has us under it. `generation`: the last one that we take
    part in, else -1. `round`: the generation that we have joined for.
    """

    def __init__(
        self, log: GroupDoor, leases: Leases, partition_counts: PartitionCounts, config: MemberConfig,
        clock: Clock, ids: Ids,
    ) -> None:  # fmt: skip
        self._log = log
        self._leases = leases
        self._partition_counts = partition_counts
        self._config = config
        self._clock = clock
        self._ids = ids
        self._group_id = config.group_id
        self._heartbeat_s = config.heartbeat_interval_ms / 1000
        self._counter = 0
        self.beat_due_s = 0.0
        self.vacate()

    def vacate(self) -> None:
        """Be nobody in the group: whoever joins next does so under a new id."""
        self.member_id = ""
        self.known = False
        self.round = 0
        self._watchman: Watchman | None = None
        self._counts_due_s = 0.0
        self.leave_generation()

    def leave_generation(self) -> None:
        """Take part in no generation; the place in the group stays."""
        self.generation = -1
        self.leads = False
        self._counts: Mapping[str, int] | None = None  # what the share-out that we lead rests on

    # --- looking -------------------------------------------------------------------------------------------

    def look(self) -> Group:
        """The group as it is now. Raises UnknownMemberError and FencedInstanceError when it no longer has us."""
        group = self._log.group(self._group_id) or Group(self._group_id)
        check_member(group, self.member_id, self._config.instance_id)
        self.leads = group.leader == self.member_id
        return group

    def partitions_changed(self, group: Group) -> bool:
        """Whether the share-out no longer fits the partitions that there are; the leader looks at every heartbeat."""
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
        """Watch over the others when that is due; returns when it is due again, 0 when somebody was evicted."""
        if self._watchman is None:
            return self._clock.elapsed_s() + self._heartbeat_s
        if self._clock.elapsed_s() >= self._watchman.due_at() and self._watchman.step(group):
            return 0.0
        return self._watchman.due_at()

    # --- requests ------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Show a sign of life."""
        self._counter += 1
        self._leases.renew(self._group_id, self.member_id, self._counter)
        self.beat_due_s = self._clock.elapsed_s() + self._heartbeat_s

    def join(self, topics: frozenset[str], owned: frozenset[TopicPartition], memory: Memory) -> Group:
        """Join, or join again; returns the group after it. Raises what the rule `join` does."""
        self.member_id = self.member_id or f"{self._config.instance_id or self._config.client_id}-{self._ids.new()}"
        self.beat()
        member = as_member(self._config, self.member_id, topics, owned, self.generation, memory)
        known, now_ms = self.known, self._clock.now_ms()
        group = self._log.decide(
            self._group_id, lambda view: join(view, self._group_id, member, known=known, now_ms=now_ms)
        )
        self.known = True
        self.leads = group.leader == self.member_id
        self.round = group.generation + (group.phase is Phase.PREPARING)
        self._counts = None
        if self._watchman is None:
            self._watchman = Watchman(
                self._log, self._leases, self._group_id, self._clock,
                member_id=self.member_id, every_s=self._heartbeat_s,
            )  # fmt: skip
        return group

    def share_out(self, group: Group) -> bytes | None:
        """Work out everybody's share, hand it in, and return ours; None when the group has gone on meanwhile."""
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
        """Be nobody in the group, which has us no longer, and clear the lease away."""
        member_id = self.member_id
        self.vacate()
        if member_id:
            # nobody reads the lease of who is no member, so that one left behind does no harm
            with suppress(StorageUnavailableError):
                self._leases.drop(self._group_id, member_id)

    def leave(self) -> None:
        """Be nobody in the group and tell it so, unless static: then it notices when the session is over."""
        member_id = self.member_id if self.known and self._config.instance_id is None else ""
        self.forget()
        if member_id:
            now_ms = self._clock.now_ms()
            with suppress(UnknownMemberError):  # evicted already: as good as left
                self._log.decide(self._group_id, lambda view: leave(view, self._group_id, member_id, now_ms=now_ms))
