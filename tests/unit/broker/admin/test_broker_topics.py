"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords: in every version, each topic by itself."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pyarrow as pa
import pytest
from kio.schema.errors import ErrorCode
from support.broker_requests import Requests

from tidelog.broker.admin.creation import TopicWish, planned
from tidelog.broker.admin.refusals import RequestTimedOutError
from tidelog.broker.admin.topics import within
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.log.base.errors import TidelogError

THREE = ClusterView("lake", 7, [BrokerNode(n, {"PLAINTEXT": (f"h{n}", n)}) for n in (1, 2, 3)], 1)


def versions(key):
    return range(OFFERED[key].first, OFFERED[key].last + 1)


def new(name, partitions=-1, factor=-1, assignments=(), **configs):
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": factor,
        "assignments": [{"partition_index": p, "broker_ids": ids} for p, ids in assignments],
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }


def outcomes(topics):
    return {topic.name: topic.error_code.name for topic in topics}


# --- CreateTopics ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_topics_are_created_and_described_in_the_answer(lake, requests, version):
    lake.alter_config({"num.partitions": "4"})
    asked = [new("a", 2, 1, retention_ms="1000"), new("b")]
    a, b = requests.ask(ApiKey.CREATE_TOPICS, version, {"topics": asked, "timeout": 1000}).topics
    assert (a.name, a.error_code, b.name, b.error_code) == ("a", ErrorCode.none, "b", ErrorCode.none)
    described = lake.describe_topic("a")
    assert (len(described.partitions), described.config) == (2, {"retention.ms": "1000"})
    assert len(lake.describe_topic("b").partitions) == 4
    if version >= 5:
        assert [(one.num_partitions, one.replication_factor) for one in (a, b)] == [(2, 1), (4, 1)]
        configs = {one.name: (one.value, one.config_source, one.read_only, one.is_sensitive) for one in a.configs}
        assert configs["retention.ms"] == ("1000", 1, False, False)
        assert configs["cleanup.policy"] == ("delete", 5, False, False)
    if version >= 7:
        assert a.topic_id == UUID(described.id)


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_every_topic_of_a_request_is_in_the_answer(lake, requests, version):
    lake.create_topic("there")
    lake.create_topic("a.b")
    asked = [
        new("good"),
        new("there"),
        new("bad name"),
        new(""),
        new("x" * 250),
        new("a_b"),
        new("none", 0),
        new("negative", -2),
        new("many", 10_001),
        new("copies", 1, 2),
        new("no-copies", 1, 0),
        new("unknown-key", no_such_key="1"),
        new("refused-key", flush_ms="1"),
        new("bad-value", retention_ms="soon"),
        new("no-value", retention_ms=None),
        new("twice"),
        new("twice", 3),
        new("__consumer_offsets"),
    ]
    told = outcomes(requests.ask(ApiKey.CREATE_TOPICS, version, {"topics": asked, "timeout": 1000}).topics)
    assert told == {
        "good": "none",
        "there": "topic_already_exists",
        "bad name": "invalid_topic_exception",
        "": "invalid_topic_exception",
        "x" * 250: "invalid_topic_exception",
        "a_b": "invalid_topic_exception",
        "none": "invalid_partitions",
        "negative": "invalid_partitions",
        "many": "invalid_partitions",
        "copies": "invalid_replication_factor",
        "no-copies": "invalid_replication_factor",
        "unknown-key": "invalid_config",
        "refused-key": "invalid_config",
        "bad-value": "invalid_config",
        "no-value": "invalid_config",
        "twice": "invalid_request",
        "__consumer_offsets": "invalid_topic_exception",
    }
    assert lake.topics(internal=True) == ["a.b", "good", "there"]


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_TOPICS))
def test_what_is_only_validated_is_not_created(lake, requests, version):
    lake.create_topic("there")
    asked = [new("good", 2), new("there"), new("bad-value", retention_ms="soon")]
    told = requests.ask(ApiKey.CREATE_TOPICS, version, {"topics": asked, "timeout": 1000, "validate_only": True}).topics
    assert outcomes(told) == {"good": "none", "there": "topic_already_exists", "bad-value": "invalid_config"}
    assert lake.topics() == ["there"]
    if version >= 7:
        assert (told[0].topic_id, told[0].num_partitions) == (None, 2)


def test_a_message_says_what_to_do(requests):
    (told,) = requests.ask(ApiKey.CREATE_TOPICS, 7, {"topics": [new("t", 1, 3)], "timeout": 1000}).topics
    assert "only 1 broker(s) are running" in told.error_message


def plan(wish, view=THREE, default=1):
    """(partitions, factor) of the plan, or the code of the refusal."""
    try:
        made = planned(wish, view, default)
    except TidelogError as e:
        return e.kafka_code
    return made.partitions, made.factor


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (TopicWish("t"), (None, 1)),
        (TopicWish("t", 5, 3), (5, 3)),
        (TopicWish("t", 5, 4), 38),
        (TopicWish("t", 5, 0), 38),
        (TopicWish("t", 5, -2), 38),
        (TopicWish("t", 0, 1), 37),
        (TopicWish("t", -2, 1), 37),
        (TopicWish("t", assignments={0: [1, 2], 1: [3, 1]}), (2, 2)),
        (TopicWish("t", 2, -1, {0: [1], 1: [2]}), 42),
        (TopicWish("t", -1, 1, {0: [1], 1: [2]}), 42),
        (TopicWish("t", assignments={1: [1], 2: [2]}), 39),
        (TopicWish("t", assignments={0: [1], 2: [2]}), 39),
        (TopicWish("t", assignments={0: [1, 1]}), 39),
        (TopicWish("t", assignments={0: [4]}), 39),
        (TopicWish("t", assignments={0: []}), 39),
        (TopicWish("t", assignments={0: [1], 1: [1, 2]}), 39),
        (TopicWish("t", config={"retention.ms": None}), 40),
    ],
)
def test_what_a_wish_becomes(wish, expected):
    assert plan(wish) == expected


def test_a_default_factor_above_the_running_brokers_is_refused():
    assert plan(TopicWish("t"), default=3) == (None, 3)
    assert plan(TopicWish("t"), default=4) == 38


def test_internal_topics_make_do_with_the_brokers_that_run():
    assert plan(TopicWish("__t"), default=4) == (None, 3)
    assert plan(TopicWish("__t", factor=4)) == 38


def test_a_factor_stays_with_its_topic(lake):
    with Requests(lake, lambda: THREE) as requests:
        asked = [new("t", 1, 3), new("assigned", assignments=[(0, [3, 1]), (1, [1, 2])])]
        requests.ask(ApiKey.CREATE_TOPICS, 7, {"topics": asked, "timeout": 1000})
        lake.alter_topic("t", 2, {"retention.ms": "5"})
        requests.loop.run_until_complete(requests.broker._topics.look("t"))
        topics = requests.ask(ApiKey.METADATA, 12, {"topics": None}).topics
        assert {topic.name: [len(p.replica_nodes) for p in topic.partitions] for topic in topics} == {
            "t": [3, 3],
            "assigned": [2, 2],
        }
        assert lake.topic_config("t").overrides == {"retention.ms": "5"}


def test_a_partition_that_is_assigned_twice_is_refused(requests):
    asked = [new("t", assignments=[(0, [1]), (0, [1])])]
    told = requests.ask(ApiKey.CREATE_TOPICS, 7, {"topics": asked, "timeout": 1000}).topics
    assert outcomes(told) == {"t": "invalid_replica_assignment"}


def test_work_that_takes_longer_than_the_request_goes_on():
    async def run():
        done = asyncio.Event()
        began = asyncio.Event()

        async def work():
            began.set()
            await done.wait()
            return "done"

        task = asyncio.ensure_future(work())
        with pytest.raises(RequestTimedOutError, match="it goes on"):
            await within(timedelta(milliseconds=1), task)
        assert began.is_set()
        done.set()
        assert await task == "done"
        assert await within(timedelta(milliseconds=-1), work()) == "done"

    asyncio.run(run())


# --- DeleteTopics ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_TOPICS))
def test_topics_are_deleted_and_gone_at_once(lake, requests, version):
    for name in ("a", "b", "c"):
        lake.create_topic(name)
    requests.ask(ApiKey.METADATA, 9, {"topics": None})
    requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]})  # from now on it is followed
    names = ["a", "missing", "bad name", "c", "c"]
    asked = {"topic_names": names} if version < 6 else {"topics": [{"name": name} for name in names]}
    told = outcomes(requests.ask(ApiKey.DELETE_TOPICS, version, {**asked, "timeout": 1000}).responses)
    assert told == {
        "a": "none",
        "missing": "unknown_topic_or_partition",
        "bad name": "invalid_topic_exception",
        "c": "invalid_request",
    }
    assert lake.topics() == ["b", "c"]
    asked = {"topics": [{"name": "a"}], "allow_auto_topic_creation": False}
    (gone,) = requests.ask(ApiKey.METADATA, 9, asked).topics
    assert gone.error_code is ErrorCode.unknown_topic_or_partition


def test_a_broker_that_is_told_so_deletes_no_topic(lake):
    lake.create_topic("a")
    with Requests(lake, deletes_topics=False) as requests:
        asked = {"topics": [{"name": "a"}], "timeout": 1000}
        (told,) = requests.ask(ApiKey.DELETE_TOPICS, 6, asked).responses
    assert told.error_code is ErrorCode.topic_deletion_disabled
    assert lake.topics() == ["a"]


def test_a_topic_is_deleted_by_id_and_no_other_that_has_its_name_since(lake, requests):
    first = UUID(lake.create_topic("t").id)
    requests.ask(ApiKey.METADATA, 12, {"topics": [{"topic_id": first, "name": None}]})
    lake.delete_topic("t")
    second = UUID(lake.create_topic("t").id)

    def delete(**topic):
        (told,) = requests.ask(ApiKey.DELETE_TOPICS, 6, {"topics": [topic], "timeout": 1000}).responses
        return told.error_code.name

    # the broker has not seen that the topic is another one now
    assert delete(topic_id=first, name=None) == "unknown_topic_id"
    assert delete(topic_id=uuid4(), name=None) == "unknown_topic_id"
    assert delete(topic_id=second, name="t") == "invalid_request"
    assert delete(topic_id=None, name=None) == "invalid_request"
    assert lake.topics() == ["t"]
    assert delete(topic_id=second, name=None) == "none"
    assert lake.topics() == []


# --- CreatePartitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_PARTITIONS))
@pytest.mark.parametrize("validate_only", [False, True])
def test_topics_grow(lake, requests, version, validate_only):
    for name in ("a", "b", "c", "d", "e", "f"):
        lake.create_topic(name, 2)
    requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]})
    asked = [
        {"name": "a", "count": 4, "assignments": None},
        {"name": "b", "count": 2, "assignments": None},
        {"name": "c", "count": 1, "assignments": None},
        {"name": "d", "count": 3, "assignments": [{"broker_ids": [1]}]},
        {"name": "e", "count": 4, "assignments": [{"broker_ids": [1]}]},
        {"name": "f", "count": 3, "assignments": [{"broker_ids": [9]}]},
        {"name": "missing", "count": 3, "assignments": None},
    ]
    answer = requests.ask(
        ApiKey.CREATE_PARTITIONS, version, {"topics": asked, "timeout": 1000, "validate_only": validate_only}
    )
    assert outcomes(answer.results) == {
        "a": "none",
        "b": "invalid_partitions",
        "c": "invalid_partitions",
        "d": "none",
        "e": "invalid_replica_assignment",
        "f": "invalid_replica_assignment",
        "missing": "unknown_topic_or_partition",
    }
    grown = {name: len(lake.describe_topic(name).partitions) for name in ("a", "b", "c", "d", "e", "f")}
    assert grown == dict.fromkeys("abcdef", 2) | ({} if validate_only else {"a": 4, "d": 3})
    (seen,) = requests.ask(ApiKey.METADATA, 9, {"topics": [{"name": "a"}]}).topics
    assert len(seen.partitions) == grown["a"]


def test_a_topic_that_is_to_grow_twice_in_a_request_stays(lake, requests):
    lake.create_topic("t")
    asked = [{"name": "t", "count": n, "assignments": None} for n in (2, 3)]
    answer = requests.ask(ApiKey.CREATE_PARTITIONS, 3, {"topics": asked, "timeout": 1000})
    assert outcomes(answer.results) == {"t": "invalid_request"}
    assert len(lake.describe_topic("t").partitions) == 1


# --- DeleteRecords -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_RECORDS))
def test_records_are_deleted_partition_by_partition(lake, requests, version):
    lake.create_topic("t", 3)
    lake.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    lake.topic("t").append(pa.table({"value": [b"v"] * 9, "partition": [0, 1, 2] * 3}))
    asked = [
        {
            "name": "t",
            "partitions": [{"partition_index": p, "offset": o} for p, o in ((0, 2), (1, -1), (2, 9), (7, 0))],
        },
        {"name": "compacted", "partitions": [{"partition_index": 0, "offset": -1}]},
        {"name": "missing", "partitions": [{"partition_index": 0, "offset": -1}]},
    ]
    topics = requests.ask(ApiKey.DELETE_RECORDS, version, {"topics": asked, "timeout": 1000}).topics
    assert {
        (topic.name, p.partition_index): (p.error_code.name, p.low_watermark)
        for topic in topics
        for p in topic.partitions
    } == {
        ("t", 0): ("none", 2),
        ("t", 1): ("none", 3),
        ("t", 2): ("offset_out_of_range", -1),
        ("t", 7): ("unknown_topic_or_partition", -1),
        ("compacted", 0): ("policy_violation", -1),
        ("missing", 0): ("unknown_topic_or_partition", -1),
    }
    assert lake.offsets("t") == {0: (2, 3), 1: (3, 3), 2: (0, 3)}
