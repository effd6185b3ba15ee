"""Leaders by load in a cluster with a made-up clock: what leases say, which broker decides, and what each deals."""

from uuid import UUID

import pytest
from support.logs import memory_lake, open_lake

from tidelog.broker.cluster.links import Link
from tidelog.broker.cluster.membership import ANY_ID, BrokerMembership
from tidelog.broker.cluster.topic_leaders import TopicLeadersByLoad
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leading import LeadersDecider
from tidelog.cluster.leases import seen_load
from tidelog.cluster.loads import BrokerLoad, TopicLoad
from tidelog.cluster.model import Listener, RegisteredBroker

TOPIC = UUID(int=9)
INTERVAL_S = 2.0


class World:
    """Brokers over a lake in memory. `cores`: what the topic takes of each."""

    def __init__(self, brokers: int = 3) -> None:
        self.lake, self.storage, self.clock = memory_lake()
        self.cores: dict[int, float] = {}
        self.members = [self._member(number) for number in range(1, brokers + 1)]
        for member in self.members:
            member.join(lambda _: Link.ANSWERS)

    def _member(self, number: int) -> BrokerMembership:
        lake = open_lake(self.storage, self.clock)

        def own_load(_: float) -> BrokerLoad:
            cores = self.cores.get(number, 0.0)
            return BrokerLoad(cores, (TopicLoad(str(TOPIC), "t", 12, cores),) if cores else ())

        def leading(log: ClusterLog) -> TopicLeadersByLoad:
            return TopicLeadersByLoad(lake, log, own_load, LeadersDecider(None, INTERVAL_S), 5.0)

        wanted = RegisteredBroker(ANY_ID, "", (Listener("PLAINTEXT", "h", number),), None, self.clock.now_ms())
        return BrokerMembership(lake, wanted, leading)

    def run(self, seconds: float) -> None:
        for _ in range(int(seconds / 0.25)):
            self.clock.pass_s(0.25)
            for member in self.members:
                member.step(lambda _: Link.ANSWERS)

    def leaders(self, member: BrokerMembership) -> list[int]:
        return [member.view.leader(TOPIC, partition).id for partition in range(12)]

    @property
    def version(self) -> int:
        log = ClusterLog(self.lake)
        log.look()
        return log.version


def test_a_loaded_topic_gets_leaders_and_all_brokers_deal_alike():
    world = World()
    world.run(3)
    assert [len(set(world.leaders(member))) for member in world.members] == [1, 1, 1]
    epoch = world.members[0].view.epoch
    world.cores = {2: 0.5, 3: 0.5}
    world.run(8)
    first = world.leaders(world.members[0])
    assert sorted(map(first.count, set(first))) == [6, 6]
    assert [world.leaders(member) for member in world.members] == [first] * 3
    assert {member.view.epoch for member in world.members} == {epoch + 1}
    version = world.version
    world.run(30)
    assert world.version == version


def test_leaders_leave_and_the_log_says_nothing_more_of_the_topic():
    world = World()
    world.cores = {2: 1.0}
    world.run(8)
    world.cores = {}
    world.run(20)
    assert len(set(world.leaders(world.members[1]))) == 1
    assert ClusterLog(world.lake).look().leaders == {}


def test_the_next_controller_decides_when_the_first_is_gone():
    world = World()
    world.run(3)
    world.members.pop(0).leave()
    world.cores = {2: 1.0, 3: 0.3}
    world.run(8)
    assert len(set(world.leaders(world.members[0]))) == 2


def test_leases_say_what_is_worth_it_and_idle_brokers_write_no_entry():
    world = World()
    world.run(1)
    version = world.version
    world.run(60)
    assert world.version == version
    world.cores = {2: 0.2}
    world.run(4)
    loads = [seen_load(world.storage, member.me) for member in world.members]
    assert [load.cores for load in loads] == [0.0, 0.2, 0.0]
    world.cores = {}
    world.run(4)
    assert seen_load(world.storage, world.members[1].me) == BrokerLoad()


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_broker_that_is_alone_measures_nothing(brokers):
    world = World(brokers)
    world.cores = {1: 1.0}
    world.run(10)
    assert bool(seen_load(world.storage, world.members[0].me).topics) == (brokers > 1)
