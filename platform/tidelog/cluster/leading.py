"""How many brokers should lead a topic's partitions, by what the topic costs them. Pure; time comes with the calls.

More leaders cost more: the records of a topic then come in more and smaller requests, files and entries. So one leads
while it can, and others join where one would be busy.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.cluster.loads import BrokerLoad
from tidelog.cluster.model import ALL, ClusterState, LeadersChange, TopicLeaders

# A leader takes this part of a core for a topic at most, else others join; there are fewer again once each of the
# fewer would take that part at most.
JOIN_ABOVE: Final = 0.6
LEAVE_BELOW: Final = 0.3
# A broker that takes more of a core in all, for several topics, is relieved of what costs it most of those that are not
# busy by themselves, if another one takes less than that.
BUSY: Final = 0.85
IDLE: Final = 0.5
# Leaders leave once they were not needed for as many times the least time between two changes.
PATIENCE: Final = 4


def wanted_leaders(leaders: int, cores: float, most: int, *, relieve: bool = False) -> int:
    """How many should lead a topic, `most` at most, that takes `cores` of those that lead it now.

    `relieve`: one of them has too much to do in all, so that one more joins where it would not leave again.
    """
    fits = max(1, math.ceil(cores / LEAVE_BELOW))
    if cores > JOIN_ABOVE * leaders:
        return min(most, 2 * leaders, math.ceil(cores / JOIN_ABOVE))
    if relieve and fits > leaders:
        return min(most, leaders + 1)
    return min(leaders, fits)


@dataclass(slots=True)
class _Noted:
    """A topic as the decider knows it. `told`: what the log says, and since when it has seen that.

    `fewer_s`: since when fewer leaders would do without a break; `fewer`: the most of them that were needed meanwhile.
    """

    told: TopicLeaders | None
    since_s: float
    fewer_s: float | None = None
    fewer: int = 1


@dataclass(slots=True)
class LeadersDecider:
    """Decides for a cluster, as long as its broker is the controller.

    `most`: the most leaders of a topic, None for as many as run; `ALL`: all lead each topic, whatever it costs.
    `interval_s`: the least time between two changes of a topic. A decider that has just begun waits as long, too: it
    does not know when the one before changed what.
    """

    most: int | None
    interval_s: float
    _noted: dict[str, _Noted] = field(default_factory=dict)

    def changes(
        self, state: ClusterState, loads: Iterable[BrokerLoad], now_s: float, now_ms: int
    ) -> list[LeadersChange]:
        """What to change by now. `loads`: of the brokers that serve."""
        if self.most == ALL:
            return list(self._all_lead(state, now_ms))
        topics = _topics(loads)
        usual = state.leaders.get("")
        changes = [] if usual is None else [LeadersChange(usual, TopicLeaders("", "", 1, now_ms))]
        names = {told.topic: told.name for told in state.leaders.values() if told.topic}
        names |= {topic: one.name for topic, one in topics.items()}
        self._noted = {topic: one for topic, one in self._noted.items() if topic in names}
        for topic, name in sorted(names.items()):
            wanted = self._wanted(state, topic, topics.get(topic, _Topic(name)), now_s)
            told = state.leaders.get(topic)
            if wanted is not None:
                changes.append(LeadersChange(told, TopicLeaders(topic, name, wanted, now_ms)))
        return changes

    def forget(self) -> None:
        """Begin again: all changes wait."""
        self._noted = {}

    def _all_lead(self, state: ClusterState, now_ms: int) -> Iterable[LeadersChange]:
        for topic, told in state.leaders.items():
            if topic:
                yield LeadersChange(told, TopicLeaders(topic, told.name, 1, now_ms))
        if state.leaders_of("") != ALL:
            yield LeadersChange(None, TopicLeaders("", "", ALL, now_ms))

    def _wanted(self, state: ClusterState, topic: str, load: "_Topic", now_s: float) -> int | None:
        """Another number of leaders, if that is due."""
        told = state.leaders.get(topic)
        noted = self._noted.get(topic)
        if noted is None or noted.told != told:
            noted = self._noted[topic] = _Noted(told, now_s)
        bound = len(state.serving) if self.most is None else min(self.most, len(state.serving))
        most = bound if load.partitions is None else max(1, min(bound, load.partitions))
        leaders = min(most, 1 if told is None else told.leaders)
        wanted = wanted_leaders(leaders, load.cores, most, relieve=load.relieve)
        if told is not None and self.most is not None and told.leaders > self.most:  # it was bounded since
            return wanted
        if wanted >= leaders:
            noted.fewer_s = None
            return wanted if wanted > leaders and now_s - noted.since_s >= self.interval_s else None
        noted.fewer = wanted if noted.fewer_s is None else max(noted.fewer, wanted)
        noted.fewer_s = now_s if noted.fewer_s is None else noted.fewer_s
        return noted.fewer if now_s - max(noted.fewer_s, noted.since_s) >= PATIENCE * self.interval_s else None


@dataclass(slots=True)
class _Topic:
    """What a topic takes of all brokers. `partitions`: None where no broker says how many it has."""

    name: str
    partitions: int | None = None
    cores: float = 0.0
    relieve: bool = False


def _topics(loads: Iterable[BrokerLoad]) -> Mapping[str, _Topic]:
    """{id: what it takes} of all topics that brokers name."""
    brokers = list(loads)
    topics: dict[str, _Topic] = {}
    for share in [share for load in brokers for share in load.topics]:
        topic = topics.setdefault(share.topic, _Topic(share.name))
        topic.name = share.name
        topic.partitions = max(topic.partitions or 0, share.partitions)
        topic.cores += share.cores
    if any(load.cores < IDLE for load in brokers):
        for load in brokers:
            costs = [(one.cores, one.topic) for one in load.topics if one.cores <= JOIN_ABOVE]
            if load.cores > BUSY and costs:
                topics[max(costs)[1]].relieve = True
    return topics
