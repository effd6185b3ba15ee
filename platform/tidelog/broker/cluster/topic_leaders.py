"""A broker's part in how many brokers lead each topic: it says what topics cost it, and the controller decides."""

import logging
from collections.abc import Callable
from typing import Final

from tidelog.broker.base.load import TopicShares
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.topics import BrokerTopics
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leading import LeadersDecider
from tidelog.cluster.leases import said, seen_load
from tidelog.cluster.loads import WORTH_SAYING, BrokerLoad, TopicLoad
from tidelog.cluster.model import ClusterState, RegisteredBroker
from tidelog.log.lake import Lake
from tidelog.log.storage.leases import Lease

logger = logging.getLogger(__name__)

# Beats between two looks at what topics cost.
BEATS: Final = 10


class OwnLoad:
    """What topics cost this process of late. For the thread that follows the cluster."""

    def __init__(self, shares: TopicShares, topics: BrokerTopics, meter: BrokerMeter) -> None:
        self._shares = shares
        self._topics = topics
        self._meter = meter

    def __call__(self, now_s: float) -> BrokerLoad:
        """That, as of now."""
        self._meter.topic_shares = shares = self._shares.look(now_s)
        topics = []
        for name, cores in sorted(shares.items()):
            known = self._topics.known(name) if cores >= WORTH_SAYING else None
            if known is not None:
                topics.append(TopicLoad(known.topic_id, name, known.partitions, cores))
        return BrokerLoad(self._shares.cores, tuple(topics))


class TopicLeadersByLoad:
    """Has as many brokers lead each topic as its load needs. A broker that is alone has nothing to do.

    `own_load(now_s)`: what topics cost this process of late. Leases say it to the controller, which reads those of the
    others. So nothing is written but what is decided.
    """

    def __init__(
        self,
        lake: Lake,
        log: ClusterLog,
        own_load: Callable[[float], BrokerLoad],
        decider: LeadersDecider,
        every_s: float,
    ) -> None:
        self._lake = lake
        self._log = log
        self._own_load = own_load
        self._decider = decider
        self._every_s = min(every_s, decider.interval_s)
        self._due_s = 0.0
        self._own = BrokerLoad()
        self._decides_as = ""

    def look(self, state: ClusterState, me: RegisteredBroker, lease: Lease, now_s: float) -> bool:
        """Have the lease say what topics cost, if that is due; whether it was."""
        is_alone = len(state.serving) < 2
        if now_s < self._due_s or (is_alone and not self._own.topics):
            return False
        self._due_s = now_s + self._every_s
        self._own = BrokerLoad() if is_alone else self._own_load(now_s)
        lease.says = said(me, self._own)
        return not is_alone

    def decide(self, state: ClusterState, me: RegisteredBroker, now_s: float) -> bool:
        """Decide, where this broker is the controller; whether something changes. Raises StorageError."""
        if state.controller != me or me.registration != self._decides_as:
            self._decider.forget()  # another broker may have decided meanwhile
            self._decides_as = me.registration
        if state.controller != me:
            return False
        storage = self._lake.storage
        loads = [self._own if one == me else seen_load(storage, one) for one in state.serving]
        changes = self._decider.changes(state, loads, now_s, self._lake.clock.now_ms())
        if not changes:
            return False
        for told in self._log.lead(me.registration, changes):
            logger.info("Topic '%s' is led by %s from now on.", told.name or "*", told.leaders or "all brokers")
        return True
