"""Unmodified admin clients against a broker, beside the library's own AdminClient over the same lake."""

import asyncio
import warnings

import confluent_kafka
import pyarrow as pa
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioTopic
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType as AioType
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from support.brokers import running_broker

from tidelog import admin as native
from tidelog.log.lake import Lake

WAIT_S = 30


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def address(lake):
    with running_broker(lake, id=1) as address:
        yield address


@pytest.fixture
def kafka(address):
    return AdminClient({"bootstrap.servers": address})


@pytest.fixture
def own(lake):
    with native.AdminClient({"lake": lake}) as own:
        yield own


def results(futures):
    """{what: its result, or the name of its error}."""
    found = {}
    for what, future in futures.items():
        try:
            found[what] = future.result(WAIT_S)
        except KafkaException as e:
            found[what] = e.args[0].name()
    return found


def bits(topic_id):
    """An id whatever its text: librdkafka writes another base64 than Kafka's programs do."""
    return topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()


def table(partitions):
    return pa.table({"value": [b"v"] * len(partitions), "partition": partitions})


def test_topics_are_created_listed_and_deleted(lake, kafka, own):
    lake.create_topic("there")
    asked = [
        NewTopic("new", 3, 1, config={"retention.ms": "5000"}),
        NewTopic("open", -1, -1),
        NewTopic("there", 1, 1),
        NewTopic("bad name", 1, 1),
        NewTopic("copies", 1, 3),
        NewTopic("wrong", 1, 1, config={"retention.ms": "soon"}),
        NewTopic("placed", 2, replica_assignment=[[1], [1]]),
    ]
    assert results(kafka.create_topics(asked, validate_only=True))["new"] is None
    assert lake.topics() == ["there"]
    assert results(kafka.create_topics(asked)) == {
        "new": None,
        "open": None,
        "there": "TOPIC_ALREADY_EXISTS",
        "bad name": "TOPIC_EXCEPTION",
        "copies": "INVALID_REPLICATION_FACTOR",
        "wrong": "INVALID_CONFIG",
        "placed": None,
    }
    seen, expected = kafka.list_topics(timeout=WAIT_S), own.list_topics()
    assert {name: sorted(topic.partitions) for name, topic in seen.topics.items()} == {
        name: sorted(topic.partitions) for name, topic in expected.topics.items()
    }
    assert (list(seen.brokers), seen.controller_id) == ([1], 1)
    assert {p.leader for topic in seen.topics.values() for p in topic.partitions.values()} == {1}
    assert results(kafka.delete_topics(["new", "there", "missing"])) == {
        "new": None,
        "there": None,
        "missing": "UNKNOWN_TOPIC_OR_PART",
    }
    assert lake.topics() == ["open", "placed"]
    assert sorted(kafka.list_topics(timeout=WAIT_S).topics) == ["open", "placed"]


def test_topics_and_the_cluster_are_described(lake, kafka, own):
    lake.create_topic("t", 2)
    lake.create_topic("__own")
    names = ["t", "__own", "missing"]
    seen = results(
        kafka.describe_topics(TopicCollection(names), include_authorized_operations=True, request_timeout=WAIT_S)
    )
    expected = own.describe_topics(native.TopicCollection(["t", "__own"]), include_authorized_operations=True)
    for name in ("t", "__own"):
        ours = expected[name].result(WAIT_S)
        assert (seen[name].name, bits(seen[name].topic_id), seen[name].is_internal) == (
            name,
            bits(ours.topic_id),
            ours.is_internal,
        )
        assert [p.id for p in seen[name].partitions] == [p.id for p in ours.partitions]
        assert [(p.leader.id, [n.id for n in p.isr]) for p in seen[name].partitions] == [
            (1, [1]) for _ in ours.partitions
        ]
        assert {o.name for o in seen[name].authorized_operations} == {o.name for o in ours.authorized_operations}
    assert seen["missing"] == "UNKNOWN_TOPIC_OR_PART"
    cluster = kafka.describe_cluster(include_authorized_operations=True, request_timeout=WAIT_S).result(WAIT_S)
    ours = own.describe_cluster(include_authorized_operations=True).result(WAIT_S)
    assert ([node.id for node in cluster.nodes], cluster.controller.id) == ([1], 1)
    assert cluster.cluster_id
    assert {o.name for o in cluster.authorized_operations} == {o.name for o in ours.authorized_operations}


def test_configurations_are_told_alike(lake, kafka, own):
    lake.alter_config({"log.retention.ms": "7000"})
    lake.create_topic("t", config={"segment.bytes": "100"})
    seen = results(kafka.describe_configs([ConfigResource(ResourceType.TOPIC, "t")]))
    expected = results(own.describe_configs([native.ConfigResource(native.ResourceType.TOPIC, "t")]))
    ((entries,), (ours,)) = seen.values(), expected.values()
    assert {(e.name, e.value, e.source, e.is_default) for e in entries.values()} == {
        (e.name, e.value, e.source.value, e.is_default) for e in ours.values()
    }
    assert list(entries["retention.ms"].synonyms) == ["log.retention.ms"]
    (broker,) = results(kafka.describe_configs([ConfigResource(ResourceType.BROKER, "1")])).values()
    (ours,) = results(own.describe_configs([native.ConfigResource(native.ResourceType.BROKER, "")])).values()
    assert {name: broker[name].value for name in ours} == {name: entry.value for name, entry in ours.items()}
    assert broker["broker.id"].is_read_only
    assert results(kafka.describe_configs([ConfigResource(ResourceType.TOPIC, "missing")])).popitem()[1] == (
        "UNKNOWN_TOPIC_OR_PART"
    )


def test_configurations_are_changed(lake, kafka):
    lake.create_topic("t", config={"segment.bytes": "100"})

    def change(*changes, kind=ResourceType.TOPIC, name="t", **options):
        entries = [ConfigEntry(key, value, incremental_operation=operation) for key, operation, value in changes]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        return results(kafka.incremental_alter_configs([resource], **options)).popitem()[1]

    operations = AlterConfigOpType
    assert change(("retention.ms", operations.SET, "6"), validate_only=True) is None
    assert lake.topic_config("t").overrides == {"segment.bytes": "100"}
    assert (
        change(
            ("retention.ms", operations.SET, "6"),
            ("segment.bytes", operations.DELETE, None),
            ("cleanup.policy", operations.APPEND, "compact"),
        )
        is None
    )
    assert lake.topic_config("t").overrides == {"cleanup.policy": "delete,compact", "retention.ms": "6"}
    assert change(("cleanup.policy", operations.SUBTRACT, "delete")) is None
    assert lake.topic_config("t").cleanup_policy == ("compact",)
    assert change(("retention.ms", operations.SET, "soon")) == "INVALID_CONFIG"
    assert change(("no.such.key", operations.SET, "1")) == "INVALID_CONFIG"
    assert change(("retention.ms", operations.SET, "1"), name="missing") == "UNKNOWN_TOPIC_OR_PART"
    # librdkafka can't name the cluster-wide default: a single broker has no dynamic configuration of its own
    assert change(("num.partitions", operations.SET, "4"), kind=ResourceType.BROKER, name="1") == "INVALID_REQUEST"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        replaced = kafka.alter_configs([ConfigResource(ResourceType.TOPIC, "t", set_config={"retention.ms": "9"})])
    assert results(replaced).popitem()[1] is None
    assert lake.topic_config("t").overrides == {"retention.ms": "9"}


def test_partitions_are_added(lake, kafka, own):
    lake.create_topic("t", 2)
    lake.create_topic("u", 2)
    asked = [NewPartitions("t", 5), NewPartitions("u", 1), NewPartitions("missing", 5)]
    assert results(kafka.create_partitions(asked)) == {
        "t": None,
        "u": "INVALID_PARTITIONS",
        "missing": "UNKNOWN_TOPIC_OR_PART",
    }
    seen = {name: len(topic.partitions) for name, topic in kafka.list_topics(timeout=WAIT_S).topics.items()}
    assert seen == {name: len(topic.partitions) for name, topic in own.list_topics().topics.items()} == {"t": 5, "u": 2}


def test_records_are_deleted(lake, kafka):
    lake.create_topic("t", 3)
    lake.topic("t").append(table([0, 0, 0, 1, 1, 2]))
    asked = [
        TopicPartition("t", 0, 2),
        TopicPartition("t", 1, confluent_kafka.OFFSET_END),
        TopicPartition("t", 2, 5),
    ]
    told = {p.partition: result for p, result in results(kafka.delete_records(asked)).items()}
    assert (told[0].low_watermark, told[1].low_watermark, told[2]) == (2, 2, "OFFSET_OUT_OF_RANGE")
    assert lake.offsets("t") == {0: (2, 3), 1: (2, 2), 2: (0, 1)}


def test_what_others_change_is_seen_soon(lake, kafka, tmp_path):
    lake.create_topic("t", 1)
    assert len(kafka.list_topics("t", timeout=WAIT_S).topics["t"].partitions) == 1
    with Lake(tmp_path / "lake") as other:
        other.alter_topic("t", partitions=4)
    for _ in range(100):  # the broker is notified by the file system; each try is a request
        if len(kafka.list_topics("t", timeout=WAIT_S).topics["t"].partitions) == 4:
            break
    else:
        pytest.fail("the broker never saw the new partitions")


def test_aiokafkas_admin_client(lake, address):
    lake.create_topic("there")

    async def run():
        client = AIOKafkaAdminClient(bootstrap_servers=address)
        await client.start()
        try:
            await client.create_topics([AioTopic("a", 2, 1), AioTopic("b", 1, 1, topic_configs={"retention.ms": "5"})])
            assert sorted(await client.list_topics()) == ["a", "b", "there"]
            (described,) = await client.describe_topics(["a"])
            assert [p["leader"] for p in described["partitions"]] == [1, 1]
            cluster = await client.describe_cluster()
            assert [broker["node_id"] for broker in cluster["brokers"]] == [1]
            await client.alter_configs([AioResource(AioType.TOPIC, "a", {"retention.ms": "7"})])
            (answer,) = await client.describe_configs([AioResource(AioType.TOPIC, "a")])
            (resource,) = answer.resources
            assert {row[0]: row[1] for row in resource[4]}["retention.ms"] == "7"
            await client.delete_topics(["b"])
        finally:
            await client.close()

    asyncio.run(run())
    assert lake.topics() == ["a", "there"]
    assert lake.topic_config("a").overrides == {"retention.ms": "7"}
