"""What is done to groups from outside while their members live, and after they were killed: real processes."""

import signal
import subprocess
import sys

import pytest
from support.logs import values
from support.nursery import ForkedPython

from tidelog.admin import AdminClient, ConsumerGroupState, ConsumerGroupTopicPartitions, NewTopic
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake

MEMBER = """
import sys
import tidelog

consumer = tidelog.Consumer({
    "lake": sys.argv[1], "group.id": "g", "client.id": sys.argv[2], "auto.offset.reset": "earliest",
    "session.timeout.ms": 2000, "heartbeat.interval.ms": 300,
})
consumer.subscribe(["t"])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(1.0)
"""


@pytest.fixture
def address(tmp_path):
    with Lake(str(tmp_path / "lake")) as lake:
        lake.create_topic("t", 2)
        lake.topic("t").append(values("0", "1", "2", partition=[0, 0, 1]))
    return str(tmp_path / "lake")


@pytest.fixture
def member(address):
    """Start a member; it is killed at the end."""
    started = []

    def start(name):
        process = ForkedPython(
            [sys.executable, "-c", MEMBER, address, name], stdout=subprocess.PIPE, text=True, stderr=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout.readline() == "assigned\n", process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def changes(admin):
    """Alter an offset of the group and delete it: what becomes of each."""
    wanted = [ConsumerGroupTopicPartitions("g", [TopicPartition("t", 0, 1)])]
    for ask in (admin.alter_consumer_group_offsets, lambda _: admin.delete_consumer_groups(["g"])):
        try:
            yield ask(wanted)["g"].result()
        except KafkaException as e:
            yield e.args[0].code()


def test_members_in_the_way_live_or_are_cleared_away(address, member):
    with AdminClient({"lake": address}) as admin:
        process = member("till")
        group = admin.describe_consumer_groups(["g"])["g"].result()
        assert group.state is ConsumerGroupState.STABLE
        (only,) = group.members
        assert only.client_id == "till"
        assert len(only.assignment.topic_partitions) == 2

        assert list(changes(admin)) == [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP]
        assert len(admin.describe_consumer_groups(["g"])["g"].result().members) == 1

        process.send_signal(signal.SIGKILL)
        process.wait()
        altered, deleted = changes(admin)
        assert altered.topic_partitions[0].offset == 1
        assert deleted is None
        assert admin.list_consumer_groups().result().valid == []


def test_of_two_who_create_a_topic_one_succeeds(address):
    """Two clients, each with a lake of its own."""
    with AdminClient({"lake": address}) as one, AdminClient({"lake": address}) as other:
        futures = [client.create_topics([NewTopic("new", 3)])["new"] for client in (one, other)]
        errors = [future.exception() for future in futures]
        assert sorted(error is None for error in errors) == [False, True]
        (lost,) = (error for error in errors if error is not None)
        assert lost.args[0] == KafkaError.TOPIC_ALREADY_EXISTS
        assert list(one.list_topics().topics) == list(other.list_topics().topics) == ["new", "t"]
