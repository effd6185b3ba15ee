"""Several brokers over one lake: real processes that are killed, frozen and stopped, seen by what clients ask first."""

import signal
from uuid import UUID

import pytest
from confluent_kafka import Producer
from support.cluster_processes import BrokerProcess, ask, metadata, named
from support.logs import read
from support.waiting import eventually

from tidelog.broker.wire.apis import ApiKey
from tidelog.check.lake import check_lake
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.model import BrokerState
from tidelog.log.lake import Lake

TOPICS = [f"t{n}" for n in range(8)]


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        for name in TOPICS:
            lake.create_topic(name, 4)
        yield lake


@pytest.fixture
def start(lake):
    begun = []

    def start(*, at_once=1, **settings):
        new = [BrokerProcess(lake.uri, **{"drain_s": 2.0, **settings}) for _ in range(at_once)]
        begun.extend(new)
        for process in new:
            process.ready()
        return new if at_once > 1 else new[0]

    yield start
    for process in begun:
        process.__exit__()


@pytest.fixture
def three(start):
    brokers = sorted(start(at_once=3), key=lambda broker: broker.id)
    eventually(lambda: all(named(b) == [1, 2, 3] for b in brokers), "three brokers know each other")
    return brokers


def leaders(broker, client_id=""):
    """{(topic, partition): (leader, its epoch)} as a broker says."""
    return {
        (topic.name, one.partition_index): (one.leader_id, one.leader_epoch)
        for topic in metadata(broker.port, *TOPICS, client_id=client_id).topics
        for one in topic.partitions
    }


def test_every_broker_says_the_same(lake, three):
    answers = [metadata(broker.port, *TOPICS) for broker in three]
    assert {answer.cluster_id for answer in answers} == {ClusterLog(lake).cluster_id()}
    assert {answer.controller_id for answer in answers} == {1}
    assert {tuple(sorted((n.node_id, n.host, n.port) for n in answer.brokers)) for answer in answers} == {
        tuple(sorted((broker.id, "127.0.0.1", broker.port) for broker in three))
    }
    assert leaders(three[0]) == leaders(three[1]) == leaders(three[2])
    assert len({leader for leader, _ in leaders(three[0]).values()}) > 1
    by_id = {"topics": [{"name": None, "topic_id": UUID(lake.topic("t0").id)}]}
    leader_by_id = ask(three[1].port, ApiKey.METADATA, 12, by_id).topics[0].partitions[0].leader_id
    assert leader_by_id == leaders(three[0])["t0", 0][0]
    assert check_lake(lake).green


def test_two_of_three_may_be_killed_and_the_next_metadata_names_the_others(three):
    left, first, second = three
    before = leaders(left)
    first.kill()
    eventually(lambda: named(left) == named(second) == [1, 3], "one is gone")
    between = leaders(left)
    second.kill()
    eventually(lambda: named(left) == [1], "two are gone")
    after = leaders(left)
    for place in before:
        assert before[place][1] < between[place][1] < after[place][1]
        if before[place][0] != first.id:
            assert between[place][0] == before[place][0]
        assert after[place][0] == left.id


def test_a_frozen_broker_goes_and_comes_back_under_another_registration(lake, three):
    one, _, frozen = three
    log = ClusterLog(lake)
    old = log.look().brokers[frozen.id].registration
    frozen.send(signal.SIGSTOP)
    eventually(lambda: named(one) == [1, 2], "the frozen one is gone")
    frozen.send(signal.SIGCONT)
    eventually(lambda: named(one) == named(frozen) == [1, 2, 3], "it is back")
    assert log.look().brokers[frozen.id].registration != old


def test_a_given_id_is_refused_while_its_broker_lives_and_had_when_that_was_killed(lake, start):
    first = start(id=7)
    with pytest.raises(RuntimeError, match=f"Broker id 7 is taken by a broker that lives, at 127.0.0.1:{first.port}"):
        start(id=7)
    first.kill()
    again = start(id=7, port=first.port)
    assert (again.id, again.port) == (7, first.port)
    assert named(again) == [7]


def test_a_process_that_begins_again_at_its_address_has_its_id_at_once(lake, three):
    three[1].kill()
    with BrokerProcess(lake.uri, port=three[1].port) as again:
        assert again.id == 2
        assert named(again) == [1, 2, 3]


def test_a_broker_that_is_stopped_sends_clients_away_and_is_gone(lake, three):
    one, _, stopped = three
    assert stopped.end() == 0
    state = ClusterLog(lake).look()
    assert state.brokers[stopped.id].state is BrokerState.GONE
    eventually(lambda: named(one) == [1, 2], "the others name themselves")


def test_racks_decide_for_clients_that_name_one(start):
    in_a, in_b = start(rack="a"), start(rack="b")
    eventually(lambda: named(in_a) == named(in_b) == [1, 2], "both know each other")
    assert {leader for leader, _ in leaders(in_b, "app,zone=a").values()} == {in_a.id}
    assert {leader for leader, _ in leaders(in_a, "app,zone=b").values()} == {in_b.id}
    assert {node.node_id: node.rack for node in metadata(in_a.port).brokers} == {1: "a", 2: "b"}


def test_a_producer_goes_on_when_its_leader_is_killed(lake, three):
    leader = next(b for b in three if b.id == leaders(three[0])["t0", 0][0])
    others = [b for b in three if b is not leader]
    acked, failed = [], []

    def report(error, message):
        (failed if error else acked).append(error or int(message.value()))

    producer = Producer({"bootstrap.servers": ",".join(b.address for b in three), "enable.idempotence": True})
    sent = 0

    def send_and_poll():
        nonlocal sent
        producer.produce("t0", b"%d" % sent, partition=0, on_delivery=report)
        sent += 1
        producer.poll(0.01)
        return acked

    eventually(send_and_poll, "a first ack")
    producer.flush(30)
    leader.kill()
    known = len(acked)
    eventually(lambda: len(send_and_poll()) > known, "the next ack")
    assert producer.flush(60) == 0
    assert not failed
    assert sorted(acked) == list(range(sent))
    stored = [value for partition in lake.offsets("t0") for value in read(lake, "t0", partition)]
    assert sorted(map(int, stored)) == list(range(sent))
    eventually(lambda: all(named(b) == sorted(b.id for b in others) for b in others), "its death is known")


def test_an_unregistered_broker_is_forgotten(lake, three):
    three[2].kill()
    eventually(lambda: named(three[0]) == [1, 2], "it is gone")
    assert ask(three[0].port, ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 3}).error_code == 0
    assert list(ClusterLog(lake).look().brokers) == [1, 2]
    assert ask(three[0].port, ApiKey.UNREGISTER_BROKER, 0, {"broker_id": 3}).error_code == 102


def test_acks_all_waits_for_as_many_brokers_as_the_topic_asks_for(lake, three, start):
    lake.create_topic("safe", config={"min.insync.replicas": "2"}, replication_factor=3)
    for broker in three[1:]:
        broker.kill()
    (left,) = three[:1]
    eventually(lambda: named(left) == [left.id], "the broker that is left knows that it is alone")
    landed = {}

    def note(error, message):
        landed[message.value()] = error and error.name()

    address = {"bootstrap.servers": f"127.0.0.1:{left.port}"}
    impatient = Producer({**address, "retries": 0})
    impatient.produce("safe", b"refused", on_delivery=note)
    impatient.flush(30)
    leader_only = Producer({**address, "acks": 1})
    leader_only.produce("safe", b"acks=1", on_delivery=note)
    leader_only.flush(30)
    assert landed == {b"refused": "NOT_ENOUGH_REPLICAS", b"acks=1": None}
    patient = Producer(address)
    patient.produce("safe", b"patient", on_delivery=note)
    start()
    patient.flush(30)
    assert landed[b"patient"] is None
    assert read(lake, "safe") == ["acks=1", "patient"]
