"""Leaders a partition, one committer a topic: real processes whose committer is killed, frozen and drained.

And as many leaders as a topic's load needs.
"""

import json
import signal
import threading
from collections import Counter
from contextlib import suppress
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.schema.errors import ErrorCode
from support.cluster_processes import BrokerProcess, ask, metadata, named
from support.logs import read
from support.produce_requests import batch
from support.waiting import eventually

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import ApiKey
from tidelog.check.lake import check_lake
from tidelog.log.lake import Lake

PARTITIONS = 12


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("t", PARTITIONS)
        yield lake


@pytest.fixture
def start(lake):
    brokers = []

    def start(**settings):
        brokers.extend(BrokerProcess(lake.uri, drain_s=2.0, **settings) for _ in range(3))
        for broker in brokers:
            broker.ready()
        brokers.sort(key=lambda broker: broker.id)
        eventually(lambda: all(named(broker) == [1, 2, 3] for broker in brokers), "three brokers know each other")
        return brokers

    yield start
    for broker in brokers:
        broker.__exit__()


@pytest.fixture
def three(start):
    brokers = start(topic_leaders="all")
    eventually(lambda: all(set(leaders(broker).values()) == {1, 2, 3} for broker in brokers), "all lead the topic")
    return brokers


def leaders(broker, name="t"):
    (topic,) = metadata(broker.port, name).topics
    return {one.partition_index: one.leader_id for one in topic.partitions}


def committer(lake, brokers):
    view = ClusterView("", 0, [BrokerNode(broker.id, {}) for broker in brokers])
    found = view.committer(UUID(lake.topic("t").id)).id
    return next(broker for broker in brokers if broker.id == found)


def written_by(lake, led):
    """For each entry, how many brokers lead the partitions that it appends to."""
    folder, counts = "t/_delta_log", []
    for version in range(1, lake.topic("t").state().version + 1):
        lines = lake.storage.get(f"{folder}/{version:020}.json").splitlines()
        adds = [json.loads(line)["add"] for line in lines if line.startswith(b'{"add"')]
        if adds:
            counts.append(len({led[int(add["partitionValues"]["partition"])] for add in adds}))
    return counts


class Load:
    """Idempotent producers that send to every partition until `end`; what each heard of its records."""

    def __init__(self, brokers, producers=2):
        self.acked, self.failed = [], []
        self._sent = Counter()
        self._ending = threading.Event()
        self._address = ",".join(broker.address for broker in brokers)
        self._threads = [threading.Thread(target=self._send, args=(n,), daemon=True) for n in range(producers)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()

    def _send(self, number):
        producer = Producer({"bootstrap.servers": self._address, "enable.idempotence": True, "log_level": 0})

        def report(error, message):
            (self.failed if error else self.acked).append((error or message.partition(), bytes(message.value())))

        while not self._ending.is_set():
            for partition in range(PARTITIONS):
                value = b"%d/%d/%d" % (number, partition, self._sent[number, partition])
                with suppress(BufferError):
                    producer.produce("t", value, partition=partition, on_delivery=report)
                    self._sent[number, partition] += 1
            producer.poll(0.02)
        assert producer.flush(60) == 0

    def acks(self, more):
        known = len(self.acked)
        eventually(lambda: len(self.acked) > known + more, "acks")

    def end(self):
        self._ending.set()
        for thread in self._threads:
            thread.join(90)
        return self._sent


def judged(lake, load):
    """Everything that was sent is there once, in its producer's order."""
    sent = load.end()
    assert not load.failed
    assert len(load.acked) == sum(sent.values())
    for partition in range(PARTITIONS):
        found = [value.split("/") for value in read(lake, "t", partition)]
        for number in (0, 1):
            own = [int(at) for producer, _, at in found if producer == str(number)]
            assert own == list(range(sent[number, partition]))
    assert check_lake(lake).green


def test_entries_hold_what_several_brokers_staged_and_a_killed_committer_takes_nothing_along(lake, three):
    led = leaders(three[0])
    assert led == leaders(three[1]) == leaders(three[2])
    assert set(led.values()) == {1, 2, 3}
    with Load(three) as load:
        load.acks(2_000)
        eventually(lambda: max(written_by(lake, led)) > 1, "an entry of several brokers' segments")
        committer(lake, three).kill()
        load.acks(1_000)
        judged(lake, load)


class Reader:
    """A consumer of all partitions, until as many records have come as are waited for."""

    def __init__(self, brokers):
        address = ",".join(broker.address for broker in brokers)
        config = {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
        self.values, self.errors = [], []
        self._consumer = Consumer(config)
        self._consumer.assign([TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        self._thread.join(60)
        self._consumer.close()

    def _read(self):
        while not self._ending.is_set():
            for message in self._consumer.consume(1_000, 0.1):
                (self.errors if message.error() else self.values).append(message.error() or bytes(message.value()))


def produce_error(broker, partition):
    """What a broker answers to a record for a partition."""
    data = {"index": partition, "records": batch(b"-1/0/0")}
    topics = [{"name": "other", "partition_data": [data]}]
    answer = ask(broker.port, ApiKey.PRODUCE, 9, {"acks": -1, "timeout": 30_000, "topic_data": topics})
    return answer.responses[0].partition_responses[0].error_code


def test_a_loaded_topic_gets_leaders_as_it_needs_them_and_its_clients_go_on(lake, start):
    for name in ("other", "calm"):
        lake.create_topic(name, PARTITIONS)
    brokers = start(topic_leaders_interval_s=1.0, cores={"t": 0.7, "other": 0.7})
    (first,) = set(leaders(brokers[0], "other").values())
    former = next(broker for broker in brokers if broker.id == first)
    assert produce_error(former, 0) is ErrorCode.none  # the broker knows the topic from then on
    with Load(brokers) as load, Reader(brokers) as reader:
        for name in ("t", "other"):
            eventually(lambda name=name: len(set(leaders(brokers[0], name).values())) > 1, f"others lead {name}, too")
        eventually(lambda: len({str(leaders(broker)) for broker in brokers}) == 1, "all brokers know")
        led = leaders(brokers[0], "other")
        moved = next(partition for partition, leader in led.items() if leader != first)
        kept = next(partition for partition, leader in led.items() if leader == first)
        eventually(
            lambda: produce_error(former, moved) is ErrorCode.not_leader_or_follower, "producers are sent to its leader"
        )
        assert produce_error(former, kept) is ErrorCode.none
        load.acks(500)
        judged(lake, load)
        eventually(lambda: len(reader.values) >= len(load.acked), "all is read")
        assert sorted(reader.values) == sorted(value for _, value in load.acked)
        assert not reader.errors
    assert len(set(leaders(brokers[0], "calm").values())) == 1


def test_a_frozen_committer_comes_back_to_what_others_have_committed(lake, three):
    with Load(three) as load:
        load.acks(1_000)
        frozen = committer(lake, three)
        for _ in range(2):
            frozen.send(signal.SIGSTOP)
            load.acks(500)  # the others go on without it
            frozen.send(signal.SIGCONT)
            eventually(lambda: named(frozen) == [1, 2, 3], "it is back")
        load.acks(1_000)
        judged(lake, load)


def test_a_committer_that_drains_is_followed_by_another(lake, three):
    with Load(three) as load:
        load.acks(1_000)
        assert committer(lake, three).end() == 0
        load.acks(1_000)
        judged(lake, load)
