"""What describes a cluster and its partitions, and what such a cluster has no use for: in every version."""

from uuid import UUID

import pyarrow as pa
import pytest
from kio.schema.errors import ErrorCode
from support.broker_requests import Requests
from support.logs import open_lake

from tidelog.broker.admin.partitions import page
from tidelog.broker.admin.topic_facts import TopicFacts
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.broker.wire.messages import encode
from tidelog.log.lake import Lake

NODES = [BrokerNode(n, {"PLAINTEXT": (f"h{n}", 9000 + n)}, f"r{n}") for n in (1, 2, 3)]
THREE = ClusterView("lake", 7, NODES, 2)


def versions(key):
    return range(OFFERED[key].first, OFFERED[key].last + 1)


@pytest.fixture
def three(lake):
    with Requests(lake, lambda: THREE) as requests:
        yield requests


# --- ApiVersions -------------------------------------------------------------------------------------------


def test_the_answer_of_each_version_is_encoded_once(three, monkeypatch):
    encoded = []

    def counted(key, version, answer):
        encoded.append(version)
        return encode(key, version, answer)

    monkeypatch.setattr("tidelog.broker.admin.api_versions.encode", counted)
    client = {"client_software_name": "a", "client_software_version": "1"}
    asked = [*versions(ApiKey.API_VERSIONS), *versions(ApiKey.API_VERSIONS)]
    answers = [three.ask(ApiKey.API_VERSIONS, version, client if version > 2 else {}) for version in asked]
    assert encoded == list(versions(ApiKey.API_VERSIONS))
    assert answers[: len(encoded)] == answers[len(encoded) :]
    for answer in answers:
        listed = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        assert listed[ApiKey.FETCH] == (OFFERED[ApiKey.FETCH].shown, OFFERED[ApiKey.FETCH].last)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("software", "code"),
    [("librdkafka", 0), ("a", 0), ("a-b.c", 0), ("", 42), ("-a", 42), ("a.", 42), ("a b", 42), ("ä", 42), ("a\n", 42)],
)
def test_software_is_named_as_kafka_has_it(three, version, software, code):
    for told in ({"client_software_name": software}, {"client_software_version": software}):
        client = {"client_software_name": "a", "client_software_version": "1"} | told
        answer = three.ask(ApiKey.API_VERSIONS, version, client)
        assert (answer.error_code.value, len(answer.api_keys) > 0) == (code, not code)


# --- DescribeCluster ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CLUSTER))
def test_a_cluster_has_its_brokers(three, version):
    answer = three.ask(ApiKey.DESCRIBE_CLUSTER, version, {"include_cluster_authorized_operations": version > 0})
    assert (answer.error_code, answer.cluster_id, answer.controller_id) == (ErrorCode.none, "lake", 1)
    assert [(b.broker_id, b.host, b.port, b.rack) for b in answer.brokers] == [
        (n, f"h{n}", 9000 + n, f"r{n}") for n in (1, 2, 3)
    ]
    every = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
    assert answer.cluster_authorized_operations == (every if version else -(2**31))


@pytest.mark.parametrize(("kind", "code"), [(1, 0), (2, 114), (3, 115), (0, 115)])
def test_controllers_are_no_endpoints_of_clients(three, kind, code):
    answer = three.ask(ApiKey.DESCRIBE_CLUSTER, 2, {"endpoint_type": kind})
    assert (answer.error_code.value, len(answer.brokers)) == (code, 0 if code else 3)


# --- DescribeTopicPartitions -------------------------------------------------------------------------------


def facts(**partitions):
    return [TopicFacts(name, UUID(int=1), count) for name, count in partitions.items()]


@pytest.mark.parametrize(
    ("cursor", "limit", "parts", "following"),
    [
        (None, 100, [("a", 0, 3), ("b", 0, 1), ("c", 0, 2)], None),
        (None, 2, [("a", 0, 2)], ("a", 2)),
        (("a", 2), 2, [("a", 2, 3), ("b", 0, 1)], ("c", 0)),
        (None, 3, [("a", 0, 3)], ("b", 0)),
        (("a", 3), 2, [("a", 3, 3), ("b", 0, 1), ("c", 0, 1)], ("c", 1)),
        (("aa", 1), 9, [("b", 0, 1), ("c", 0, 2)], None),
        (("c", 1), 9, [("c", 1, 2)], None),
        (("z", 0), 9, [], None),
        (None, 0, [("a", 0, 1)], ("a", 1)),
    ],
)
def test_pages(cursor, limit, parts, following):
    found = page(facts(c=2, a=3, b=1), cursor, limit)
    assert ([(topic.name, first, end) for topic, first, end in found.parts], found.next) == (parts, following)


def test_a_page_has_at_most_as_many_partitions_as_in_kafka():
    found = page(facts(a=5000), None, 10_000)
    assert (found.parts[0][2], found.next) == (2000, ("a", 2000))


def test_a_cursor_before_the_first_partition_is_refused():
    with pytest.raises(InvalidRequestError):
        page(facts(a=1), ("a", -1), 5)


def test_all_partitions_are_walked_page_by_page(lake, three):
    for name, count in (("a", 5), ("b", 1), ("c", 4)):
        lake.create_topic(name, count, replication_factor=2)
    cursor, seen = None, []
    while True:
        answer = three.ask(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [], "response_partition_limit": 3, "cursor": cursor}
        )
        seen += [(topic.name, p.partition_index) for topic in answer.topics for p in topic.partitions]
        assert sum(len(topic.partitions) for topic in answer.topics) <= 3
        if answer.next_cursor is None:
            break
        cursor = {"topic_name": answer.next_cursor.topic_name, "partition_index": answer.next_cursor.partition_index}
    assert seen == [(name, p) for name, count in (("a", 5), ("b", 1), ("c", 4)) for p in range(count)]


def test_partitions_of_topics_that_are_named(lake, three):
    topic_id = UUID(lake.create_topic("t", 2, replication_factor=2).id)
    asked = {"topics": [{"name": name} for name in ("t", "missing", "bad name")], "response_partition_limit": 9}
    answer = {topic.name: topic for topic in three.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, asked).topics}
    assert {name: topic.error_code.name for name, topic in answer.items()} == {
        "t": "none",
        "missing": "unknown_topic_or_partition",
        "bad name": "invalid_topic_exception",
    }
    assert (answer["t"].topic_id, answer["t"].is_internal) == (topic_id, False)
    first = answer["t"].partitions[0]
    for number, told in enumerate(answer["t"].partitions):
        replicas = tuple(node.id for node in THREE.replicas(topic_id, number, 2))
        assert (told.leader_id, told.replica_nodes, told.isr_nodes) == (replicas[0], replicas, replicas)
    assert (first.eligible_leader_replicas, first.last_known_elr, first.leader_epoch) == ((), (), 7)
    wrong = asked | {"cursor": {"topic_name": "t", "partition_index": -1}}
    assert {t.error_code.name for t in three.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, wrong).topics} == {
        "invalid_request"
    }


# --- DescribeLogDirs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_LOG_DIRS))
def test_the_one_directory_has_the_sizes_of_the_log(lake, requests, version):
    lake.create_topic("t", 2)
    lake.create_topic("empty")
    lake.topic("t").append(pa.table({"value": [b"v"] * 9, "partition": [1] * 9}))
    (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, version, {"topics": None}).results
    assert (directory.error_code, directory.log_dir) == (ErrorCode.none, lake.uri)
    size = lake.describe_topic("t").partitions[1].bytes
    assert size > 0
    assert {t.name: [(p.partition_index, p.partition_size) for p in t.partitions] for t in directory.topics} == {
        "t": [(0, 0), (1, size)],
        "empty": [(0, 0)],
    }
    assert not any(p.offset_lag or p.is_future_key for t in directory.topics for p in t.partitions)


def test_the_sizes_of_some_partitions(lake, requests):
    lake.create_topic("t", 3)
    lake.create_topic("other")
    asked = [{"topic": "t", "partitions": [2, 7, 0]}, {"topic": "missing", "partitions": [0]}]
    (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": asked}).results
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in directory.topics] == [("t", [0, 2])]


def test_brokers_count_the_partitions_that_they_serve_and_no_others(lake):
    places = {(f"t{number}", partition) for number in range(3) for partition in range(4)}
    for number in range(3):
        lake.create_topic(f"t{number}", 4, replication_factor=2)
    counted = []
    for node in NODES:
        with Requests(lake, lambda node=node: ClusterView("lake", 7, NODES, node.id)) as requests:
            (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
            counted += [(topic.name, one.partition_index) for topic in directory.topics for one in topic.partitions]
    assert sorted(counted) == sorted(2 * list(places))


def test_a_broken_topic_hides_no_sizes(lake):
    lake.create_topic("broken")
    lake.create_topic("good")
    lake.storage.put("broken/_delta_log/00000000000000000001.json", b"{torn")
    with Requests(open_lake(lake.storage, lake.clock)) as requests:
        (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
    assert [topic.name for topic in directory.topics] == ["good"]


def test_a_disk_says_how_much_room_it_has(tmp_path):
    with Lake(tmp_path / "lake") as lake, Requests(lake) as requests:
        (directory,) = requests.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, {"topics": None}).results
    assert 0 < directory.usable_bytes <= directory.total_bytes


# --- replicas and leaders ----------------------------------------------------------------------------------


def test_no_reassignment_goes_on(lake, requests):
    lake.create_topic("t")
    answer = requests.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None})
    assert (answer.error_code, answer.topics) == (ErrorCode.none, ())


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_PARTITION_REASSIGNMENTS))
def test_a_reassignment_is_refused_unless_it_is_so_already(lake, three, version):
    topic_id = UUID(lake.create_topic("t", 3, replication_factor=2).id)
    now = {number: [node.id for node in THREE.replicas(topic_id, number, 2)] for number in range(4)}
    (other,) = {1, 2, 3} - set(now[1])
    replicas = {0: now[0][::-1], 1: [other], 2: None, 3: now[3]}
    asked = [
        {"name": "t", "partitions": [{"partition_index": p, "replicas": ids} for p, ids in replicas.items()]},
        {"name": "missing", "partitions": [{"partition_index": 0, "replicas": [1]}]},
    ]
    answer = three.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, {"topics": asked, "timeout": 1000})
    told = {(topic.name, p.partition_index): p for topic in answer.responses for p in topic.partitions}
    assert {key: p.error_code.name for key, p in told.items()} == {
        ("t", 0): "none",
        ("t", 1): "invalid_replica_assignment",
        ("t", 2): "no_reassignment_in_progress",
        ("t", 3): "unknown_topic_or_partition",
        ("missing", 0): "unknown_topic_or_partition",
    }
    assert "follows from those that run" in told["t", 1].error_message


@pytest.mark.parametrize("version", versions(ApiKey.ELECT_LEADERS))
def test_no_election_is_needed(lake, requests, version):
    lake.create_topic("t", 2)
    asked = [{"topic": "t", "partitions": [0, 1, 2]}, {"topic": "missing", "partitions": [0]}]
    answer = requests.ask(ApiKey.ELECT_LEADERS, version, {"topic_partitions": asked, "timeout": 1000})
    assert {
        (topic.topic, p.partition_id): p.error_code.name
        for topic in answer.replica_election_results
        for p in topic.partition_result
    } == {
        ("t", 0): "election_not_needed",
        ("t", 1): "election_not_needed",
        ("t", 2): "unknown_topic_or_partition",
        ("missing", 0): "unknown_topic_or_partition",
    }
    every = requests.ask(ApiKey.ELECT_LEADERS, version, {"topic_partitions": None, "timeout": 1000})
    assert every.replica_election_results == ()


def test_an_unknown_kind_of_election_is_refused(requests):
    answer = requests.ask(ApiKey.ELECT_LEADERS, 2, {"election_type": 2, "topic_partitions": None, "timeout": 1})
    assert answer.error_code is ErrorCode.invalid_request


# --- quorum, features, registrations -----------------------------------------------------------------------


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_QUORUM))
def test_the_brokers_are_the_quorum(three, version):
    asked = [
        {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}, {"partition_index": 1}]},
        {"topic_name": "t", "partitions": [{"partition_index": 0}]},
    ]
    answer = three.ask(ApiKey.DESCRIBE_QUORUM, version, {"topics": asked})
    parts = {(topic.topic_name, p.partition_index): p for topic in answer.topics for p in topic.partitions}
    first = parts.pop(("__cluster_metadata", 0))
    assert (first.error_code, first.leader_id, first.leader_epoch, first.high_watermark) == (ErrorCode.none, 1, 7, 7)
    assert [(voter.replica_id, voter.log_end_offset) for voter in first.current_voters] == [(1, 7), (2, 7), (3, 7)]
    assert {p.error_code.name for p in parts.values()} == {"unknown_topic_or_partition"}
    if version >= 2:
        assert [(node.node_id, node.listeners[0].port) for node in answer.nodes] == [(1, 9001), (2, 9002), (3, 9003)]


@pytest.mark.parametrize("version", versions(ApiKey.UPDATE_FEATURES))
def test_no_feature_can_be_changed(requests, version):
    update = {"feature": "metadata.version", "max_version_level": 20, "upgrade_type": 1}
    answer = requests.ask(ApiKey.UPDATE_FEATURES, version, {"feature_updates": [update], "timeout": 1000})
    assert answer.error_code.value == 95
    assert "metadata.version" in answer.error_message
    if version < 2:
        assert [(one.feature, one.error_code.value) for one in answer.results] == [("metadata.version", 95)]
    assert requests.ask(ApiKey.UPDATE_FEATURES, version, {"timeout": 1000}).error_code is ErrorCode.none


@pytest.mark.parametrize(("broker", "error"), [(3, "invalid_request"), (4, "broker_id_not_registered")])
def test_a_broker_that_runs_stays_registered(three, broker, error):
    answer = three.ask(ApiKey.UNREGISTER_BROKER, 0, {"broker_id": broker})
    assert (answer.error_code.name, bool(answer.error_message)) == (error, True)
