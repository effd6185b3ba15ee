"""AdminClient: consumer groups, and the members that block requests."""

import pytest
from support.admin_groups import SESSION_MS, stable_group
from support.logs import Calls, FakeClock, memory_lake, values

from tidelog.admin import (
    AdminClient,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
)
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import CommittedOffset, Decision
from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit


@pytest.fixture
def lake():
    lake = memory_lake()[0]
    for topic in ("t", "u"):
        lake.create_topic(topic, 2)
        lake.topic(topic).append(values("0", "1", "2", "3", partition=[0, 0, 0, 1]))
    return lake


def commit(lake, group_id, offsets):
    GroupLog(lake).commit_offsets(group_id, {place: CommittedOffset(n) for place, n in offsets.items()})


def request(group_id, *partitions):
    return [ConsumerGroupTopicPartitions(group_id, list(partitions) or None)]


def refusal(futures):
    (future,) = futures.values()
    error = future.exception()
    assert isinstance(error, KafkaException)
    return error.args[0]


def shown(answer):
    return [(p.topic, p.partition, p.offset, p.error) for p in answer.topic_partitions]


def test_offsets_that_wait_for_a_transaction_are_told_or_refused(client, lake):
    commit(lake, "g", {("t", 0): 1})
    producer = TransactionManager(lake, "x", LoggedOffsets(GroupLog(lake)))
    producer.init()
    producer.begin()
    producer.add_offsets(GroupIdentity("g"), {("t", 0): OffsetToCommit(3)})
    asked = client.list_consumer_group_offsets(request("g"))
    assert shown(asked["g"].result()) == [("t", 0, 1, None)]
    error = refusal(client.list_consumer_group_offsets(request("g"), require_stable=True))
    assert (error, error.retriable()) == (KafkaError.UNSTABLE_OFFSET_COMMIT, True)
    producer.commit()
    asked = client.list_consumer_group_offsets(request("g"), require_stable=True)
    assert shown(asked["g"].result()) == [("t", 0, 3, None)]


# --- looking -----------------------------------------------------------------------------------------------


def test_groups_are_listed_by_state_and_type(client, lake):
    assert client.list_consumer_groups().result().valid == []
    commit(lake, "simple", {("t", 0): 1})
    stable_group(lake, "busy", {"m": [("t", 0)]})

    def listed(**wanted):
        return [one.group_id for one in client.list_consumer_groups(**wanted).result().valid]

    assert listed() == ["busy", "simple"]
    assert listed(states={ConsumerGroupState.EMPTY}) == ["simple"]
    assert listed(states={ConsumerGroupState.STABLE}) == ["busy"]
    assert listed(types={ConsumerGroupType.CLASSIC}) == ["busy", "simple"]
    assert listed(types={ConsumerGroupType.CONSUMER}) == []
    one = client.list_consumer_groups(states={ConsumerGroupState.EMPTY}).result().valid[0]
    assert (one.is_simple_consumer_group, one.type) == (True, ConsumerGroupType.CLASSIC)
    with pytest.raises(TypeError):
        client.list_consumer_groups(states=[ConsumerGroupState.EMPTY])
    with pytest.raises(TypeError):
        client.list_consumer_groups(types={"classic"})


def test_a_group_is_described_with_its_members(client, lake):
    stable_group(lake, "g", {"b": [("t", 1)], "a": [("t", 0), ("u", 0)]})
    commit(lake, "simple", {("t", 0): 1})
    described = client.describe_consumer_groups(["g", "simple", "none"], include_authorized_operations=True)
    group = described["g"].result()
    operations = sorted(operation.name for operation in group.authorized_operations)
    assert operations == ["ALTER_CONFIGS", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ"]
    assert (group.group_id, group.partition_assignor, group.state) == ("g", "range", ConsumerGroupState.STABLE)
    assert not group.is_simple_consumer_group
    assert group.coordinator.host == lake.uri
    assert [(m.member_id, m.client_id, m.host, m.group_instance_id) for m in group.members] == [
        ("a", "client-of-a", "here", None),
        ("b", "client-of-b", "here", None),
    ]
    assert [(p.topic, p.partition) for p in group.members[0].assignment.topic_partitions] == [("t", 0), ("u", 0)]
    simple = described["simple"].result()
    assert (simple.state, simple.members, simple.is_simple_consumer_group) == (ConsumerGroupState.EMPTY, [], True)
    assert refusal({"none": described["none"]}) == KafkaError.GROUP_ID_NOT_FOUND


def test_the_older_list_of_groups(client, lake):
    stable_group(lake, "g", {"a": [("t", 0)]})
    (group,) = client.list_groups()
    assert (group.id, group.state, group.protocol_type, group.protocol) == ("g", "Stable", "consumer", "range")
    assert [(m.id, m.client_id, m.client_host) for m in group.members] == [("a", "client-of-a", "here")]
    assert group.members[0].metadata != b""
    assert group.members[0].assignment != b""
    assert [found.id for found in client.list_groups("other", timeout=5)] == ["other"]


def test_offsets_are_told(client, lake):
    commit(lake, "g", {("u", 0): 2, ("t", 1): 1})
    every = client.list_consumer_group_offsets(request("g"))["g"].result()
    assert shown(every) == [("t", 1, 1, None), ("u", 0, 2, None)]
    some = client.list_consumer_group_offsets(request("g", TopicPartition("t", 0), TopicPartition("t", 1)))
    assert shown(some["g"].result()) == [("t", 0, -1001, None), ("t", 1, 1, None)]
    assert shown(client.list_consumer_group_offsets(request("none"))["none"].result()) == []


# --- changing ----------------------------------------------------------------------------------------------


def test_offsets_are_altered(client, lake):
    wanted = request("g", TopicPartition("t", 0, 2, metadata="why", leader_epoch=4), TopicPartition("t", 1, 0))
    answer = client.alter_consumer_group_offsets(wanted)["g"].result()
    assert shown(answer) == [("t", 0, 2, None), ("t", 1, 0, None)]
    found = GroupLog(lake).offsets("g")
    assert (found["t", 0].offset, found["t", 0].metadata, found["t", 0].leader_epoch) == (2, "why", 4)
    # all or none, and never past the end
    wrong = request("g", TopicPartition("t", 0, 1), TopicPartition("t", 1, 9))
    assert refusal(client.alter_consumer_group_offsets(wrong)) == KafkaError.OFFSET_OUT_OF_RANGE
    assert GroupLog(lake).offsets("g")["t", 0].offset == 2


def test_a_group_is_deleted(client, lake):
    commit(lake, "g", {("t", 0): 1})
    deleted = client.delete_consumer_groups(["g", "none"])
    assert deleted["g"].result() is None
    assert refusal({"none": deleted["none"]}) == KafkaError.GROUP_ID_NOT_FOUND
    assert GroupLog(lake).groups() == []


def test_offsets_are_deleted_where_no_member_reads(client, lake):
    # a member of this group always shows life: each look at the lake finds its lease changed
    log = stable_group(lake, "g", {"m": [("t", 0)]})
    offsets = {("t", 0): CommittedOffset(1), ("u", 0): CommittedOffset(1)}
    log.decide("g", lambda view: Decision(response=None, offsets=offsets))
    keep_alive(lake, "g", "m")
    answer = client.delete_consumer_group_offsets(request("g", TopicPartition("t", 0), TopicPartition("u", 0)))
    stays, goes = answer["g"].result().topic_partitions
    assert stays.error == KafkaError.GROUP_SUBSCRIBED_TO_TOPIC
    assert goes.error is None
    assert list(GroupLog(lake).offsets("g")) == [("t", 0)]


# --- members -----------------------------------------------------------------------------------------------


def keep_alive(lake, group_id, member):
    """Renew the member's heartbeat whenever a caller sleeps on the lake's clock."""
    lease, sleep = Leases(lake.storage).of_member(group_id, member), lake.clock.sleep
    lease.count = 1  # as `stable_group` wrote it

    def beat_and_sleep(seconds):
        lease.renew()
        sleep(seconds)

    lake.clock.sleep = beat_and_sleep


CHANGES = {
    "alter": (
        lambda c: c.alter_consumer_group_offsets(request("g", TopicPartition("t", 0, 1))),
        KafkaError.UNKNOWN_MEMBER_ID,
    ),
    "delete": (lambda c: c.delete_consumer_groups(["g"]), KafkaError.NON_EMPTY_GROUP),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_group_with_a_living_member_is_left_alone(client, lake, change):
    ask, expected = CHANGES[change]
    stable_group(lake, "g", {"alive": [("t", 0)], "dead": [("t", 1)]})
    keep_alive(lake, "g", "alive")
    started_s = lake.clock.elapsed_s()
    assert refusal(ask(client)) == expected
    assert lake.clock.elapsed_s() - started_s < SESSION_MS / 1000  # one heartbeat is enough
    assert "alive" in GroupLog(lake).group("g").members


@pytest.mark.parametrize("change", CHANGES)
def test_a_group_whose_members_are_all_dead_is_cleared_first(client, lake, change):
    ask, _ = CHANGES[change]
    stable_group(lake, "g", {"one": [("t", 0)], "two": [("t", 1)]})
    started_s = lake.clock.elapsed_s()
    (future,) = ask(client).values()
    future.result()
    assert lake.clock.elapsed_s() - started_s >= SESSION_MS / 1000
    group = GroupLog(lake).group("g")
    assert group is None or not group.members


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.describe_consumer_groups([]), ValueError),
        (lambda c: c.describe_consumer_groups("g"), TypeError),
        (lambda c: c.delete_consumer_groups([3]), TypeError),
        (lambda c: c.list_consumer_group_offsets(request("")), ValueError),
        (lambda c: c.list_consumer_group_offsets([]), ValueError),
        (lambda c: c.list_consumer_group_offsets(["g"]), TypeError),
        (lambda c: c.list_consumer_group_offsets([*request("g"), *request("g")]), ValueError),
        (lambda c: c.list_consumer_group_offsets(request("g", TopicPartition("t", 0, 3))), ValueError),
        (lambda c: c.list_consumer_group_offsets(request("g"), require_stable=1), TypeError),
        (lambda c: c.alter_consumer_group_offsets(request("g")), ValueError),
        (lambda c: c.alter_consumer_group_offsets(request("g", TopicPartition("t", 0))), ValueError),
        (lambda c: c.alter_consumer_group_offsets(request("g", TopicPartition("t", -1, 3))), ValueError),
        (lambda c: c.delete_consumer_group_offsets(request("g")), ValueError),
    ],
)
def test_wrong_arguments_are_refused_at_once(client, call, error):
    with pytest.raises(error):
        call(client)


def test_a_group_id_that_is_too_long(client):
    assert refusal(client.describe_consumer_groups(["g" * 250])) == KafkaError.INVALID_GROUP_ID


def test_the_clock_is_a_fake_one(lake):
    assert isinstance(lake.clock, FakeClock)  # else the tests above would wait for real


def test_listing_many_groups_looks_at_their_table_once(client, lake):
    """A look is a request on an object store: as many as tables, not as groups."""
    for number in range(20):
        commit(lake, f"g{number:02d}", {("t", 0): 1})
    with AdminClient({"lake": Lake(lake.uri, storage=lake.storage, clock=lake.clock, ids=lake.ids)}) as fresh:
        fresh.list_consumer_groups().result()
        calls = Calls()
        lake.storage.hook = calls
        assert len(fresh.list_consumer_groups().result().valid) == 20
        assert len(calls.take()) <= 2
