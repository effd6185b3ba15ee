"""AdminClient: topics, configurations, records and offsets."""

import threading

import pyarrow as pa
import pytest
from support.logs import START_MS, Calls, FakeClock, memory_lake, values

from tidelog import admin
from tidelog.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DeletedRecords,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    TopicCollection,
    Uuid,
)
from tidelog.clients.admin.answers import TimedFuture
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.partitions import OFFSET_END, TopicPartition
from tidelog.log.lake import Lake


def outcomes(futures):
    """What each future gave: a value, or the name of its error's code."""
    found = {}
    for key, future in futures.items():
        error = future.exception()
        found[key] = error.args[0].name() if isinstance(error, KafkaException) else error or future.result()
    return found


# --- topics ------------------------------------------------------------------------------------------------


def test_topics_are_created_each_with_its_own_outcome(client, lake):
    lake.alter_config({"num.partitions": "3"})
    new = [
        NewTopic("plain"),
        NewTopic("full", 2, 1, config={"retention.ms": 1000}),
        NewTopic("copied", 1, replication_factor=2),
        NewTopic("placed", replica_assignment=[[0]]),
        NewTopic("bad/name"),
        NewTopic("none", 0),
        NewTopic("odd", config={"retention.ms": "soon"}),
    ]
    expected = {
        "plain": None,
        "full": None,
        "copied": "INVALID_REPLICATION_FACTOR",
        "placed": "INVALID_REPLICA_ASSIGNMENT",
        "bad/name": "TOPIC_EXCEPTION",
        "none": "INVALID_PARTITIONS",
        "odd": "INVALID_CONFIG",
    }
    assert outcomes(client.create_topics(new, validate_only=True)) == expected
    assert lake.topics() == []
    assert outcomes(client.create_topics(new)) == expected
    assert lake.topics() == ["full", "plain"]
    assert len(lake.describe_topic("plain").partitions) == 3
    assert len(lake.describe_topic("full").partitions) == 2
    assert lake.describe_topic("full").config == {"retention.ms": "1000"}


@pytest.mark.parametrize("validate_only", [True, False])
def test_a_topic_that_is_there_or_collides(client, lake, validate_only):
    lake.create_topic("a.b")
    made = client.create_topics([NewTopic("a.b"), NewTopic("a_b")], validate_only=validate_only)
    assert outcomes(made) == {"a.b": "TOPIC_ALREADY_EXISTS", "a_b": "TOPIC_EXCEPTION"}


def test_topics_are_deleted(client, lake):
    lake.create_topic("a")
    assert outcomes(client.delete_topics(["a", "b"])) == {"a": None, "b": "UNKNOWN_TOPIC_OR_PART"}
    assert lake.topics() == []


def test_partitions_are_added(client, lake):
    lake.create_topic("a", 2)
    for new, expected in (
        (NewPartitions("a", 1), "INVALID_PARTITIONS"),
        (NewPartitions("a", 2), "INVALID_PARTITIONS"),
        (NewPartitions("a", 3, [[0]]), "INVALID_REPLICA_ASSIGNMENT"),
        (NewPartitions("b", 3), "UNKNOWN_TOPIC_OR_PART"),
        (NewPartitions("a", 5), None),
    ):
        assert list(outcomes(client.create_partitions([new], validate_only=True)).values()) == [expected]
        assert len(lake.offsets("a")) == 2
    assert outcomes(client.create_partitions([NewPartitions("a", 5)])) == {"a": None}
    assert len(lake.offsets("a")) == 5


def test_a_lake_looks_like_a_cluster_of_one_broker(client, lake):
    lake.create_topic("a", 2)
    found = client.list_topics()
    assert (str(found), found.controller_id, list(found.brokers)) == (lake.uri, 0, [0])
    assert list(found.topics) == ["a"]
    assert [(p.id, p.leader, p.replicas, p.isrs) for p in found.topics["a"].partitions.values()] == [
        (0, 0, [0], [0]),
        (1, 0, [0], [0]),
    ]
    missing = client.list_topics("b", timeout=5).topics
    assert list(missing) == ["b"]
    assert missing["b"].error == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert client.cluster_id(timeout=1) == lake.uri
    described = client.describe_cluster().result()
    assert (described.cluster_id, described.controller.id, len(described.nodes)) == (lake.uri, 0, 1)
    topics = client.describe_topics(TopicCollection(["a", "b"]))
    assert outcomes({"b": topics["b"]}) == {"b": "UNKNOWN_TOPIC_OR_PART"}
    topic = topics["a"].result()
    assert (topic.name, topic.is_internal, [p.id for p in topic.partitions]) == ("a", False, [0, 1])
    assert topic.topic_id == Uuid.of(lake.describe_topic("a").id)


def test_a_topics_id_is_shown_as_kafka_shows_it():
    shown = Uuid.of("ffffffff-ffff-ffff-0000-000000000002")
    assert (shown.get_most_significant_bits(), shown.get_least_significant_bits()) == (-1, 2)
    assert str(shown) == "__________8AAAAAAAAAAg"
    assert str(Uuid(1, 2)) == "AAAAAAAAAAEAAAAAAAAAAg"  # as confluent-kafka shows it


# --- configurations ----------------------------------------------------------------------------------------


def configs(client, resource):
    return client.describe_configs([resource])[resource].result()


def test_configurations_tell_who_set_them(client, lake):
    lake.alter_config({"log.retention.ms": "7"})
    lake.create_topic("a", config={"segment.bytes": "1000"})
    topic = configs(client, ConfigResource("topic", "a"))
    assert {(e.name, e.value, e.source, e.is_default) for e in topic.values() if e.name in TOLD} == {
        ("segment.bytes", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG, False),
        ("retention.ms", "7", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, False),
        ("cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG, True),
    }
    broker = configs(client, ConfigResource(ResourceType.BROKER, "0"))
    assert broker["log.retention.ms"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert broker["num.partitions"].source is ConfigSource.DEFAULT_CONFIG
    missing = [ConfigResource("topic", "b"), ConfigResource("group", "g")]
    assert list(outcomes(client.describe_configs(missing)).values()) == ["UNKNOWN_TOPIC_OR_PART", "INVALID_REQUEST"]


TOLD = ("segment.bytes", "retention.ms", "cleanup.policy")
SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


@pytest.mark.parametrize(
    ("operation", "key", "value", "expected"),
    [
        (SET, "retention.ms", "9", {"cleanup.policy": "compact", "retention.ms": "9"}),
        (DELETE, "cleanup.policy", None, {"retention.ms": "5"}),
        (APPEND, "cleanup.policy", "delete", {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        (APPEND, "cleanup.policy", "compact", {"cleanup.policy": "compact", "retention.ms": "5"}),
        (SUBTRACT, "cleanup.policy", "compact", {"cleanup.policy": "", "retention.ms": "5"}),
        (APPEND, "retention.ms", "9", "INVALID_CONFIG"),
        (SET, "retention.ms", "x", "INVALID_CONFIG"),
        (APPEND, "nope", "x", "INVALID_CONFIG"),
    ],
)
def test_configurations_change_by_one_key(client, lake, operation, key, value, expected):
    before = {"cleanup.policy": "compact", "retention.ms": "5"}
    lake.create_topic("a", config=before)
    entry = ConfigEntry(key, value, incremental_operation=operation)
    resource = ConfigResource("topic", "a", incremental_configs=[entry])
    refused = expected if isinstance(expected, str) else None
    for validate_only in (True, False):
        assert outcomes(client.incremental_alter_configs([resource], validate_only=validate_only)) == {
            resource: refused
        }
        assert lake.describe_topic("a").config == (before if refused or validate_only else expected)


def test_alter_configs_replaces_everything(client, lake):
    lake.create_topic("a", config={"cleanup.policy": "compact", "retention.ms": "5"})
    resource = ConfigResource("topic", "a", set_config={"segment.bytes": "1000"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        assert outcomes(client.alter_configs([resource], validate_only=True)) == {resource: None}
    assert lake.describe_topic("a").config == {"cleanup.policy": "compact", "retention.ms": "5"}
    with pytest.warns(DeprecationWarning, match="resets"):
        assert outcomes(client.alter_configs([resource])) == {resource: None}
    assert lake.describe_topic("a").config == {"segment.bytes": "1000"}


def test_the_lakes_configuration_is_the_brokers(client, lake):
    entry = ConfigEntry("num.partitions", "4", incremental_operation=SET)
    resource = ConfigResource("broker", "0", incremental_configs=[entry])
    assert outcomes(client.incremental_alter_configs([resource], broker=0)) == {resource: None}
    assert lake.config().num_partitions == 4


def test_a_resource_is_a_kind_and_a_name():
    assert ConfigResource("topic", "a") == ConfigResource(ResourceType.TOPIC, "a") == ConfigResource(2, "a")
    assert ConfigResource(admin.RESOURCE_BROKER, "a").restype is ResourceType.BROKER
    assert ConfigResource("topic", "a") != ConfigResource("broker", "a")
    assert sorted([ConfigResource("broker", "a"), ConfigResource("topic", "b"), ConfigResource("topic", "a")]) == [
        ConfigResource("topic", "a"),
        ConfigResource("topic", "b"),
        ConfigResource("broker", "a"),
    ]
    resource = ConfigResource("topic", "a", {"x": "1"})
    resource.set_config("x", "2", overwrite=False)
    resource.set_config("y", "3")
    resource.set_config("y", "4")
    assert (resource.set_config_dict, len(resource)) == ({"x": "1", "y": "4"}, 2)
    resource.add_incremental_config(ConfigEntry("z", "5"))
    assert str(resource.incremental_configs[0]) == 'z="5"'


# --- records and offsets -----------------------------------------------------------------------------------


def test_records_are_deleted_by_partition(client, lake):
    lake.create_topic("a", 2)
    lake.topic("a").append(values("0", "1", "2", "x", partition=[0, 0, 0, 1]))
    before = [TopicPartition("a", 0, 2), TopicPartition("a", 1, OFFSET_END)]
    done = client.delete_records(before)
    assert outcomes(done) == {before[0]: DeletedRecords(2), before[1]: DeletedRecords(1)}
    assert lake.offsets("a") == {0: (2, 3), 1: (1, 1)}
    # one wrong partition does not keep the others
    before = [TopicPartition("a", 0, 3), TopicPartition("a", 1, 9), TopicPartition("b", 0, 0)]
    assert list(outcomes(client.delete_records(before)).values()) == [
        DeletedRecords(3),
        "OFFSET_OUT_OF_RANGE",
        "UNKNOWN_TOPIC_OR_PART",
    ]


def at(*after_start_ms):
    return pa.array([START_MS + ms for ms in after_start_ms], pa.timestamp("ms", "UTC"))


EARLIEST, LATEST, NEWEST = OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp()


@pytest.mark.parametrize(
    ("spec", "offset", "time"),
    [
        (EARLIEST, 1, -1),
        (LATEST, 5, -1),
        (NEWEST, 2, START_MS + 50),
        (OffsetSpec.for_timestamp(0), 1, START_MS + 40),
        (OffsetSpec.for_timestamp(START_MS + 41), 2, START_MS + 50),
        (OffsetSpec.for_timestamp(START_MS + 51), -1, -1),
    ],
)
def test_offsets_are_found(client, lake, spec, offset, time):
    # offset:  0 (deleted) 1  2 | 3  4
    # time:    90         40 50 | 45 50
    lake.create_topic("a")
    lake.topic("a").append(values("0", "1", "2", timestamp=at(90, 40, 50)))
    lake.topic("a").append(values("3", "4", timestamp=at(45, 50)))
    lake.delete_records("a", {0: 1})
    partition = TopicPartition("a", 0)
    assert outcomes(client.list_offsets({partition: spec})) == {partition: ListOffsetsResultInfo(offset, time)}


def test_offsets_of_an_empty_and_of_no_partition(client, lake):
    lake.create_topic("a")
    asked = {TopicPartition("a", 0): NEWEST, TopicPartition("a", 1): LATEST, TopicPartition("b", 0): LATEST}
    assert list(outcomes(client.list_offsets(asked)).values()) == [
        ListOffsetsResultInfo(-1, -1),
        "UNKNOWN_TOPIC_OR_PART",
        "UNKNOWN_TOPIC_OR_PART",
    ]


@pytest.mark.parametrize("spec", [LATEST, OffsetSpec.earliest(), NEWEST, OffsetSpec.for_timestamp(START_MS)])
def test_offsets_of_many_partitions_take_as_many_looks_at_the_log_as_of_one(spec):
    def looks(partitions):
        lake, storage, _ = memory_lake()
        lake.create_topic("a", partitions=partitions)
        everywhere = list(range(partitions))
        lake.topic("a").append(values(*["v"] * partitions, partition=everywhere, timestamp=[START_MS] * partitions))
        with AdminClient({"lake": lake}) as client:
            storage.hook = calls = Calls()
            found = outcomes(client.list_offsets({TopicPartition("a", p): spec for p in everywhere}))
            storage.hook = lambda *_: None
        assert {type(one) for one in found.values()} == {ListOffsetsResultInfo}
        return len([path for _, path in calls.seen if "_delta_log" in path])

    assert 0 < looks(32) == looks(1)


# --- arguments, time, and the end --------------------------------------------------------------------------

TP = TopicPartition("a", 0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: c.create_topics([]), ValueError),
        (lambda c: c.create_topics(["a"]), TypeError),
        (lambda c: c.create_topics([NewTopic("a"), NewTopic("a", 2)]), ValueError),
        (lambda c: c.create_topics([NewTopic("a")], validate_only="x"), TypeError),
        (lambda c: c.create_topics([NewTopic("a")], request_timeout=-2), ValueError),
        (lambda c: c.create_topics([NewTopic("a")], operation_timeout=3601), ValueError),
        (lambda c: c.create_topics([NewTopic("a")], nope=1), TypeError),
        (lambda c: NewTopic(3), TypeError),
        (lambda c: NewTopic("a", "3"), TypeError),
        (lambda c: NewPartitions("a", None), TypeError),
        (lambda c: c.delete_topics("a"), TypeError),
        (lambda c: c.delete_topics([3]), TypeError),
        (lambda c: c.describe_topics(["a"]), TypeError),
        (lambda c: c.describe_configs(["a"]), TypeError),
        (lambda c: ConfigResource("foo", "a"), ValueError),
        (lambda c: ConfigResource("topic", None), ValueError),
        (lambda c: c.incremental_alter_configs([ConfigResource("topic", "a")]), ValueError),
        (lambda c: c.incremental_alter_configs([ConfigResource("topic", "a")], broker=7), ValueError),
        (lambda c: c.delete_records([TP]), ValueError),
        (lambda c: c.delete_records([("a", 0)]), TypeError),
        (lambda c: c.create_acls([]), ValueError),
        (lambda c: c.delete_acls(["a"]), TypeError),
        (lambda c: c.describe_cluster(include_authorized_operations=1), TypeError),
        (lambda c: c.list_offsets({TP: 3}), TypeError),
        (lambda c: c.list_offsets({TopicPartition("a"): LATEST}), ValueError),
        (lambda c: c.list_offsets({TP: LATEST}, isolation_level=1), TypeError),
        (lambda c: OffsetSpec.for_timestamp(-5), ValueError),
    ],
)
def test_wrong_arguments_are_refused_at_once(client, call, error):
    with pytest.raises(error):
        call(client)


def test_a_request_keeps_to_its_time(lake, client, monkeypatch):
    stuck = threading.Event()
    monkeypatch.setattr(Lake, "delete_topic", lambda *_: stuck.wait(20))
    late = client.delete_topics(["a"], request_timeout=0)["a"]
    for ask in (late.result, late.exception):
        with pytest.raises(KafkaException) as caught:
            ask()
        assert caught.value.args[0] == KafkaError._TIMED_OUT
    with pytest.raises(TimeoutError):  # the caller's own patience is another matter
        client.delete_topics(["b"], request_timeout=30)["b"].result(timeout=0)
    stuck.set()


def test_an_answer_in_time_and_one_that_raises_a_timeout_of_its_own():
    clock = FakeClock()
    answer = TimedFuture(clock, 5)
    answer.set_result("done")
    clock.pass_s(6)
    assert answer.result() == "done"
    own = TimedFuture(clock, 5)
    own.set_exception(TimeoutError("the store's"))
    with pytest.raises(TimeoutError, match="the store's"):
        own.result()


def test_a_closed_client_says_so(lake):
    client = AdminClient({"lake": lake})
    client.close()
    with pytest.raises(RuntimeError, match="AdminClient closed"):
        client.list_topics()
    assert lake.topics() == []  # and the caller's lake is open
    assert client.poll(0) == client.poll(timeout=0) == client.poll() == 0
