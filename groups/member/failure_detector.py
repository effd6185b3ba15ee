"""Failure detection: an observer of a group evicts members that fell silent, or keep a rebalance waiting too long."""

from tidelog.groups.member.events import GroupDoor
from tidelog.groups.member.heartbeats import HeartbeatTimers, Leases, RebalanceTimer
from tidelog.groups.model import AnyGroup, AnyMember, ConsumerGroup, GroupPhase
from tidelog.groups.rules.members import evict_late, evict_silent
from tidelog.groups.rules.migration import is_to_give_up
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import StorageUnavailableError

# Where no member leads a group, the first three by id are watched by all others, should the very first be gone.
_FIRST = 3


class FailureDetector:
    """Watches members of one group for one observer. Not for several threads at once.

    `member_id`: the observer, which does not watch itself; None for an observer outside, which watches all members. A
    leader watches all others, the others watch the leader; a member that has joined a round also watches those that
    have not. Where no member leads, the first by id watches all, and the others the first few. Looks come every
    `every_s` seconds, and oftener where sessions are short.
    """

    def __init__(
        self, log: GroupDoor, leases: Leases, group_id: str, clock: Clock, *, member_id: str | None, every_s: float
    ) -> None:
        self._log = log
        self._leases = leases
        self._group_id = group_id
        self._clock = clock
        self._member_id = member_id
        self._every_s = every_s
        self._heartbeats = HeartbeatTimers()
        self._gap_s = max(1.0, 4 * every_s)
        self._rebalance = RebalanceTimer(self._gap_s)
        self._revocations: dict[str, RebalanceTimer] = {}
        self._due_s = 0.0

    def due_at(self) -> float:
        """When to look next, on the elapsed clock."""
        return self._due_s

    def step(self, group: AnyGroup) -> bool:
        """Look at the watched members, and evict those that must go. Returns whether any went. Raises StorageError.

        `group`: as the observer saw it just now.
        """
        now_s = self._clock.elapsed_s()
        watched = self._watched(group)
        self._heartbeats.keep(member.member_id for member in watched)
        for member in watched:
            self._look(member)
        sessions = [member.session_timeout_ms / 1000 for member in watched]
        next_s = min([self._every_s, *(session / 4 for session in sessions)])
        self._due_s = now_s + next_s
        gone = self._evict_silent() | self._evict_late(group) | self._evict_who_keep(group)
        expiry_s = self._heartbeats.due_s()
        if expiry_s is not None and expiry_s > now_s:
            self._due_s = min(self._due_s, expiry_s)
        for name in gone:
            self._leases.of_member(self._group_id, name).release()
        return bool(gone)

    def _watched(self, group: AnyGroup) -> list[AnyMember]:
        others = [member for name, member in group.members.items() if name != self._member_id]
        me = group.members.get(self._member_id or "")
        if isinstance(group, ConsumerGroup) and me is not None:
            first = sorted(group.members)
            return others if first[0] == self._member_id else [one for one in others if one.member_id in first[:_FIRST]]
        if me is None or group.leader == self._member_id:
            return others
        joins = group.phase is GroupPhase.PREPARING and me.joined
        return [member for member in others if member.member_id == group.leader or (joins and not member.joined)]

    def _look(self, member: AnyMember) -> None:
        try:
            counter = self._leases.counter(self._group_id, member.member_id)
        except StorageUnavailableError:
            return  # not seen, so this time does not count
        self._heartbeats.look(member, counter, self._clock.elapsed_s())

    def _evict_silent(self) -> frozenset[str]:
        silent = self._heartbeats.silent()
        if not silent:
            return frozenset()
        now_ms = self._clock.now_ms()
        return self._log.decide(self._group_id, lambda view: evict_silent(view, self._group_id, silent, now_ms=now_ms))

    def _evict_late(self, group: AnyGroup) -> frozenset[str]:
        """A member that joined waits for the longest rebalance timeout, then the round goes on without the others."""
        me = group.members.get(self._member_id or "")
        joining = group.phase is GroupPhase.PREPARING and me is not None and me.joined
        sharing = group.phase is GroupPhase.COMPLETING and me is not None and group.leader != self._member_id
        waited_s = self._rebalance.look((group.phase, group.generation), self._clock.elapsed_s())
        timeout_s = max((member.rebalance_timeout_ms for member in group.members.values()), default=0) / 1000
        if not (joining or sharing) or waited_s < timeout_s:
            return frozenset()
        now_ms, generation = self._clock.now_ms(), group.generation
        return self._log.decide(
            self._group_id, lambda view: evict_late(view, self._group_id, generation, now_ms=now_ms)
        )

    def _evict_who_keep(self, group: AnyGroup) -> frozenset[str]:
        """Of a group of the type consumer: members that did not give up in time what is to be others'."""
        members = group.members if isinstance(group, ConsumerGroup) else {}
        first = min(members, default=None) == self._member_id or self._member_id is None
        keep = {name: one for name, one in members.items() if first and is_to_give_up(group, one)}
        self._revocations = {name: self._revocations.get(name) or RebalanceTimer(self._gap_s) for name in keep}
        now_s = self._clock.elapsed_s()
        late = {
            name: member.epoch
            for name, member in keep.items()
            if self._revocations[name].look(member.epoch, now_s) >= member.rebalance_timeout_ms / 1000
        }
        if not late:
            return frozenset()
        now_ms = self._clock.now_ms()
        return self._log.decide(self._group_id, lambda view: evict_silent(view, self._group_id, late, now_ms=now_ms))


class ExternalFailureDetector:
    """Watches a group from outside: when all its members were killed, no member is left to notice.

    For commands that need a group without members, and for upkeep. Step it until the group is empty, or long enough:
    members that live stay.
    """

    def __init__(self, log: GroupDoor, leases: Leases, group_id: str, clock: Clock, every_s: float = 1.0) -> None:
        self._log = log
        self._group_id = group_id
        self._clock = clock
        self._detector = FailureDetector(log, leases, group_id, clock, member_id=None, every_s=every_s)

    def due_s(self) -> float:
        """Seconds until the next step is worth while."""
        return max(0.0, self._detector.due_at() - self._clock.elapsed_s())

    def step(self) -> AnyGroup | None:
        """Look once, and evict the members that are due; returns the group after it. Raises StorageError."""
        group = self._log.group(self._group_id)
        if group is not None and self._detector.step(group):
            return self._log.group(self._group_id)
        return group
