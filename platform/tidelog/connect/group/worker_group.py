"""A worker's membership in the group that shares connectors and tasks out."""

from collections.abc import Iterable

from tidelog.connect.group.units import Unit, topic_of, unit_of
from tidelog.connect.runtime.worker_settings import WorkerSettings
from tidelog.groups.member.events import COOPERATIVE, Assigned, Failed, Lost, MemberConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.connector_health import CLIENT


class WorkerGroup:
    """The membership, with units in place of partitions. All calls come from the worker's thread.

    It is a consumer group as any other, with the assignor cooperative-sticky: what stays with a worker goes on running
    while other units move. `revoking`: what the worker has to end before it calls `revoked`.
    """

    def __init__(self, lake: Lake, settings: WorkerSettings, worker_id: str) -> None:
        config = MemberConfig(
            group_id=settings.group_id,
            client_id=CLIENT,
            host=worker_id,
            strategies=(COOPERATIVE,),
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
        )
        self._topics: frozenset[str] = frozenset()
        self._membership = Membership(
            GroupLog(lake), Leases(lake.storage), self._counts, config, clock=lake.clock, ids=lake.ids
        )
        self.revoking: frozenset[Unit] = frozenset()
        self.failure: Exception | None = None
        self._assigned = False

    def _counts(self, topics: Iterable[str]) -> dict[str, int]:
        """One partition for each unit that is known here; others are gone, or will be known in a moment."""
        return {topic: 1 for topic in topics if topic in self._topics}

    @property
    def generation(self) -> int:
        """The group's generation that the worker takes part in, -1 for none."""
        return self._membership.generation

    @property
    def rebalancing(self) -> bool:
        """Whether the worker waits to learn what it is to run."""
        return not self._assigned or bool(self.revoking) or self._membership.generation < 0

    @property
    def owned(self) -> frozenset[Unit]:
        """The units that are this worker's to run."""
        return frozenset(unit_of(topic) for topic, _ in self._membership.owned) - self.revoking

    def share(self, units: Iterable[Unit]) -> None:
        """What there is to share out, as the worker knows it now."""
        topics = frozenset(map(topic_of, units))
        if topics != self._topics:
            self._topics = topics
            self._membership.subscribe(topics)

    def step(self) -> None:
        """Do what is due: heartbeats, looking, leading. Call it often; the worker is alive as long as it does."""
        self._membership.polled()
        for event in self._membership.step():
            if isinstance(event, Revoke):
                self.revoking |= {unit_of(topic) for topic, _ in event.partitions}
            elif isinstance(event, Assigned):
                self._assigned = True
            elif isinstance(event, Lost):
                self._assigned = False
                self.revoking = frozenset()
            elif isinstance(event, Failed) and event.fatal:
                self.failure = event.error

    def revoked(self) -> None:
        """What was to be ended has ended."""
        self.revoking = frozenset()
        self._membership.revoked()

    def due_s(self) -> float:
        """Seconds until `step` has something to do."""
        return self._membership.due_s()

    def leave(self) -> None:
        """Leave, so that others take over at once."""
        self._membership.leave()
