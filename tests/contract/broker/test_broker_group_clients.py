"""Real clients in one group with tidelog's own: librdkafka, aiokafka and Consumer, unmodified, at a broker."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import aiokafka
import confluent_kafka
import pytest
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from confluent_kafka.admin import AdminClient
from support.brokers import running_broker
from support.consumers import consumer
from support.logs import values
from support.nursery import ForkedPython
from support.waiting import eventually

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.model import CommittedOffset, GroupPhase
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

ALL = [0, 1, 2, 3]
QUICK = GroupSettings(min_session_timeout_ms=1_000, initial_rebalance_delay_ms=100)
SESSION_MS = 3_000


class Reader:
    """A consumer of group `g` that a thread polls; what it owns and what it got."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.owned: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError


class ConfluentReader(Reader):
    """confluent-kafka; or, by the same names, tidelog's own consumer."""

    def __init__(self, client) -> None:
        super().__init__()
        self.client = client

    def _run(self) -> None:
        self.client.subscribe(["t"])
        while not self._over.is_set():
            message = self.client.poll(0.05)
            if message is not None and message.error() is None:
                self.got.append(message.value().decode())
            self.owned = sorted(one.partition for one in self.client.assignment())
        self.client.close()
        self.owned = []


class AioReader(Reader):
    """aiokafka."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def _run(self) -> None:
        asyncio.run(self._read())

    async def _read(self) -> None:
        client = aiokafka.AIOKafkaConsumer(
            "t", bootstrap_servers=self._address, group_id="g", auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS, heartbeat_interval_ms=300, metadata_max_age_ms=1_000,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )  # fmt: skip
        await client.start()
        try:
            while not self._over.is_set():
                found = await client.getmany(timeout_ms=50)
                self.got += [record.value.decode() for records in found.values() for record in records]
                self.owned = sorted(one.partition for one in client.assignment())
        finally:
            await client.stop()
            self.owned = []


def librdkafka(address: str, **conf) -> confluent_kafka.Consumer:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    settings = {
        "bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0,
        "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300, "partition.assignment.strategy": "range",
    }  # fmt: skip
    return confluent_kafka.Consumer(settings | given)


@pytest.fixture
def address(lake: Lake) -> Iterator[str]:
    with running_broker(lake, groups=QUICK) as address:
        yield address


@contextmanager
def readers(*made: Reader) -> Iterator[tuple[Reader, ...]]:
    with ExitStack() as stack:
        for one in made:
            stack.enter_context(one)
        yield made


def share_all(*made: Reader) -> bool:
    return all(one.owned for one in made) and sorted(p for one in made for p in one.owned) == ALL


def is_stable(lake: Lake, members: int) -> bool:
    group = GroupLog(lake).group("g")
    return group is not None and group.phase is GroupPhase.STABLE and len(group.members) == members


def test_three_kinds_of_clients_share_a_group(lake: Lake, address: str) -> None:
    one, two = ConfluentReader(librdkafka(address)), AioReader(address)
    three = ConfluentReader(consumer(lake, session_timeout_ms=SESSION_MS))
    with readers(one, two, three):
        eventually(lambda: share_all(one, two, three) and is_stable(lake, 3), "all three have a share")
        eventually(lambda: {*one.got, *two.got, *three.got} >= set("abcdefgh"), "what was there is read")
        for each in (one, two, three):
            each.got.clear()
        lake.topic("t").append(values(*"ijklmnop", partition=ALL * 2))
        eventually(lambda: sorted([*one.got, *two.got, *three.got]) == list("ijklmnop"), "each record is read once")
    assert GroupLog(lake).group("g").members == {}


def test_the_others_take_over_from_one_that_leaves(lake: Lake, address: str) -> None:
    one, two = ConfluentReader(librdkafka(address)), AioReader(address)
    with one:
        with two:
            eventually(lambda: share_all(one, two), "both have a share")
        eventually(lambda: one.owned == ALL, "the share of the one that left")


KILLED = """
import sys
from confluent_kafka import Consumer
one = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "session.timeout.ms": 3000, "log_level": 0,
                "heartbeat.interval.ms": 300, "partition.assignment.strategy": "range"})
one.subscribe(["t"])
while True:
    one.poll(0.05)
    if one.assignment():
        print(len(one.assignment()), flush=True)
"""


def test_the_others_take_over_from_one_that_is_killed(lake: Lake, address: str) -> None:
    one = ConfluentReader(librdkafka(address))
    with one:
        eventually(lambda: one.owned == ALL, "all is the first one's")
        with ForkedPython([sys.executable, "-c", KILLED, address], stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout.readline().strip() == b"2"
                eventually(lambda: len(one.owned) == 2, "both have a share")
            finally:
                other.send_signal(signal.SIGKILL)
        eventually(lambda: one.owned == ALL, "the share of the one that was killed")


def test_cooperative_members_keep_what_they_do_not_give_up(lake: Lake, address: str) -> None:
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    one = ConfluentReader(librdkafka(address, **strategy))
    two = ConfluentReader(consumer(lake, session_timeout_ms=SESSION_MS, **strategy))
    with one:
        eventually(lambda: one.owned == ALL, "all is the first one's")
        before = set(one.owned)
        with two:
            eventually(lambda: share_all(one, two), "both have a share")
            assert set(one.owned) < before
        eventually(lambda: one.owned == ALL, "all is the first one's again")


def test_a_static_member_comes_back_without_a_round(lake: Lake, address: str) -> None:
    other = ConfluentReader(librdkafka(address, group_instance_id="other"))
    with other:
        with ConfluentReader(librdkafka(address, group_instance_id="one")) as one:
            eventually(lambda: share_all(one, other) and is_stable(lake, 2), "both have a share")
            mine = one.owned
        generation = GroupLog(lake).group("g").generation
        with ConfluentReader(librdkafka(address, group_instance_id="one")) as again:
            eventually(lambda: again.owned == mine, "it has the same share")
            assert GroupLog(lake).group("g").generation == generation


def test_offsets_are_the_same_for_all_clients(lake: Lake, address: str) -> None:
    kafka = librdkafka(address)
    place = confluent_kafka.TopicPartition("t", 1, 2, metadata="by librdkafka", leader_epoch=0)
    kafka.commit(offsets=[place], asynchronous=False)
    found = GroupLog(lake).offsets("g")["t", 1]
    # confluent-kafka for Python sends the end mark of its text along
    assert (found.offset, found.metadata.rstrip("\0"), found.leader_epoch) == (2, "by librdkafka", 0)
    GroupLog(lake).commit_offsets("g", {("t", 2): CommittedOffset(1, "by tidelog", 3)})
    (one,) = kafka.committed([confluent_kafka.TopicPartition("t", 2)], timeout=10)
    assert (one.offset, one.metadata, one.leader_epoch) == (1, "by tidelog", 3)
    kafka.close()

    async def by_aiokafka() -> list[int | None]:
        client = aiokafka.AIOKafkaConsumer(bootstrap_servers=address, group_id="g", enable_auto_commit=False)
        client.assign([aiokafka.TopicPartition("t", number) for number in ALL])
        await client.start()
        await client.commit({aiokafka.TopicPartition("t", 3): 1})
        found = [await client.committed(aiokafka.TopicPartition("t", number)) for number in ALL]
        await client.stop()
        return found

    assert asyncio.run(by_aiokafka()) == [None, 2, 1, 1]


def test_what_operators_do(lake: Lake, address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    with ConfluentReader(librdkafka(address, client_id="me")) as one:
        eventually(lambda: one.owned == ALL, "all is its")
        listed = admin.list_consumer_groups().result(10)
        assert [(group.group_id, group.state.name) for group in listed.valid] == [("g", "STABLE")]
        description = admin.describe_consumer_groups(["g"])["g"].result(10)
        (member,) = description.members
        assert (member.client_id, len(member.assignment.topic_partitions)) == ("me", 4)
        assert description.partition_assignor == "range"
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            admin.delete_consumer_groups(["g"])["g"].result(10)
        assert refused.value.args[0].name() == "NON_EMPTY_GROUP"
    wanted = confluent_kafka.ConsumerGroupTopicPartitions("g", [confluent_kafka.TopicPartition("t", 0, 1)])
    admin.alter_consumer_group_offsets([wanted])["g"].result(10)
    asked = admin.list_consumer_group_offsets([confluent_kafka.ConsumerGroupTopicPartitions("g")])["g"].result(10)
    assert 1 in [one.offset for one in asked.topic_partitions if one.partition == 0]
    admin.delete_consumer_groups(["g"])["g"].result(10)
    assert admin.list_consumer_groups().result(10).valid == []
