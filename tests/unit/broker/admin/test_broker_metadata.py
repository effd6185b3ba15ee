"""Metadata: brokers, and topics with those that lead them, in every version."""

from uuid import UUID, uuid4

import pytest
from kio.schema.errors import ErrorCode
from support.broker_requests import Requests
from support.logs import open_lake

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import OFFERED, ApiKey

VERSIONS = range(OFFERED[ApiKey.METADATA].first, OFFERED[ApiKey.METADATA].last + 1)
THREE = ClusterView("lake", 7, [BrokerNode(n, {"PLAINTEXT": (f"h{n}", 9000 + n)}, f"r{n}") for n in (1, 2, 3)], 1)


def named(answer):
    return {topic.name: topic for topic in answer.topics}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_names_brokers_and_partitions(lake, requests, version):
    topic_id = UUID(lake.create_topic("t", 3).id)
    answer = requests.ask(ApiKey.METADATA, version, {"topics": [{"name": "t"}]})
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", 9092)
    (topic,) = answer.topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.none)
    assert [(p.partition_index, p.leader_id, p.replica_nodes, p.isr_nodes) for p in topic.partitions] == [
        (p, 1, (1,), (1,)) for p in range(3)
    ]
    if version >= 1:
        assert answer.controller_id == 1
        assert topic.is_internal is False
    if version >= 7:
        assert {p.leader_epoch for p in topic.partitions} == {0}
    if version >= 10:
        assert topic.topic_id == topic_id


@pytest.mark.parametrize("version", VERSIONS)
def test_which_list_means_all_topics(lake, requests, version):
    for name in ("a", "b", "__mine"):
        lake.create_topic(name)
    every, none = ("a", "b", "__mine"), ()
    assert sorted(named(requests.ask(ApiKey.METADATA, version, {"topics": []}))) == sorted(
        every if version == 0 else none
    )
    if version >= 1:
        answer = named(requests.ask(ApiKey.METADATA, version, {"topics": None}))
        assert sorted(answer) == sorted(every)
        assert [name for name in answer if answer[name].is_internal] == ["__mine"]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 4])
def test_a_topic_is_created_on_the_way_only_where_client_and_lake_allow_it(lake, requests, version):
    def ask(name, allow):
        return named(
            requests.ask(ApiKey.METADATA, version, {"topics": [{"name": name}], "allow_auto_topic_creation": allow})
        )[name]

    assert ask("new", False).error_code is ErrorCode.unknown_topic_or_partition
    lake.alter_config({"num.partitions": "2"})
    assert len(ask("new", True).partitions) == 2
    lake.alter_config({"auto.create.topics.enable": "false"})
    assert ask("other", True).error_code is ErrorCode.unknown_topic_or_partition
    assert lake.topics() == ["new"]


def test_the_oldest_clients_create_topics_by_asking(lake, requests):
    assert named(requests.ask(ApiKey.METADATA, 3, {"topics": [{"name": "t"}]}))["t"].error_code is ErrorCode.none
    assert lake.topics() == ["t"]


def test_a_name_that_is_none_says_so_beside_the_others(lake, requests):
    lake.create_topic("good")
    answer = named(requests.ask(ApiKey.METADATA, 12, {"topics": [{"name": n} for n in ("good", "bad name", "good")]}))
    assert answer["good"].error_code is ErrorCode.none
    assert answer["bad name"].error_code is ErrorCode.invalid_topic_exception
    assert len(answer) == 2


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id(lake, requests, version):
    topic_id, strange = UUID(lake.create_topic("t").id), uuid4()
    wanted = [{"topic_id": topic_id, "name": None}, {"topic_id": strange, "name": None}]
    found, missing = requests.ask(ApiKey.METADATA, version, {"topics": wanted}).topics
    assert (found.name, found.topic_id, found.error_code) == ("t", topic_id, ErrorCode.none)
    assert (missing.name, missing.topic_id) == (None, strange)
    assert missing.error_code is ErrorCode.unknown_topic_id
    lake.delete_topic("t")
    again = UUID(lake.create_topic("t").id)
    requests.loop.run_until_complete(requests.broker._topics.look("t"))
    gone, there = requests.ask(
        ApiKey.METADATA, version, {"topics": [{"topic_id": i, "name": None} for i in (topic_id, again)]}
    ).topics
    assert (gone.error_code, there.name) == (ErrorCode.unknown_topic_id, "t")


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("topic", [{"name": None}, {"name": "t", "topic_id": uuid4()}])
def test_ids_are_refused_where_kafka_has_them_in_the_format_only(requests, version, topic):
    (answer,) = requests.ask(ApiKey.METADATA, version, {"topics": [topic]}).topics
    assert answer.error_code is ErrorCode.invalid_request


def test_operations_are_told_when_asked(lake):
    with Requests(lake) as requests:
        lake.create_topic("t")
        asked = {
            "topics": None,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
        }
        answer = requests.ask(ApiKey.METADATA, 9, asked)
        # read 3, write 4, create 5, delete 6, alter 7, describe 8, cluster action 9, configurations 10 and 11, 12
        assert answer.topics[0].topic_authorized_operations == sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
        assert answer.cluster_authorized_operations == sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
        quiet = requests.ask(ApiKey.METADATA, 9, {"topics": None})
        assert {quiet.cluster_authorized_operations, quiet.topics[0].topic_authorized_operations} == {-(2**31)}


def test_replicas_follow_from_the_brokers_that_run(lake):
    # Each broker leads one of 60, whatever the id: of 12, one in forty ids left a broker without.
    topic_id = UUID(lake.create_topic("t", 60, replication_factor=2).id)
    lake.create_topic("open")
    with Requests(lake, lambda: THREE) as requests:
        answer = requests.ask(ApiKey.METADATA, 9, {"topics": None})
        assert [(b.node_id, b.host, b.port, b.rack) for b in answer.brokers] == [
            (n, f"h{n}", 9000 + n, f"r{n}") for n in (1, 2, 3)
        ]
        for partition in named(answer)["t"].partitions:
            replicas = THREE.replicas(topic_id, partition.partition_index, 2)
            assert partition.replica_nodes == partition.isr_nodes == tuple(node.id for node in replicas)
            leader = THREE.leader(topic_id, partition.partition_index)
            assert (partition.leader_id, partition.leader_epoch) == (leader.id, 7)
        assert {partition.leader_id for partition in named(answer)["t"].partitions} == {1, 2, 3}
        assert len(named(answer)["open"].partitions[0].replica_nodes) == 1


def test_a_client_in_a_zone_is_led_to_the_broker_there(lake):
    lake.create_topic("t")
    with Requests(lake, lambda: THREE) as requests:
        for n in (1, 2, 3):
            answer = requests.ask(ApiKey.METADATA, 9, {"topics": None}, client_id=f"app,zone=r{n}")
            assert answer.topics[0].partitions[0].leader_id == n


@pytest.mark.parametrize(("version", "error"), [(5, "leader_not_available"), (6, "listener_not_found")])
def test_a_leader_without_the_clients_listener_is_no_leader(lake, version, error):
    lake.create_topic("t")
    view = ClusterView("lake", 1, [BrokerNode(1, {"INSIDE": ("h", 1)}), BrokerNode(2, {"OUTSIDE": ("h", 2)})], 1)
    with Requests(lake, lambda: view) as requests:
        for listener in ("INSIDE", "OUTSIDE"):
            answer = requests.ask(ApiKey.METADATA, version, {"topics": None}, listener=listener)
            (broker,) = answer.brokers
            (partition,) = answer.topics[0].partitions
            reachable = view.leader(UUID(lake.describe_topic("t").id), 0).id == broker.node_id
            assert partition.leader_id == (broker.node_id if reachable else -1)
            assert partition.error_code.name == ("none" if reachable else error)


def test_a_broken_topic_hides_no_other(lake, requests):
    lake.create_topic("broken")
    good = UUID(lake.create_topic("good").id)
    lake.storage.put("broken/_delta_log/00000000000000000001.json", b"{torn")
    with Requests(open_lake(lake.storage, lake.clock)) as fresh:
        answer = named(fresh.ask(ApiKey.METADATA, 12, {"topics": None}))
        assert answer["good"].error_code is ErrorCode.none
        assert answer["broken"].error_code is ErrorCode.corrupt_message
        wanted = {"topics": [{"topic_id": good, "name": None}]}
        assert named(fresh.ask(ApiKey.METADATA, 12, wanted))["good"].error_code is ErrorCode.none
        assert named(fresh.ask(ApiKey.METADATA, 12, {"topics": [{"name": "broken"}]}))["broken"].error_code
        assert named(fresh.ask(ApiKey.METADATA, 12, {"topics": [{"name": "good"}]}))["good"].partitions


def test_a_large_answer_is_encoded_once_for_as_long_as_it_says_the_same(lake, requests):
    lake.create_topic("large", 500)
    first = requests.ask(ApiKey.METADATA, 12, {"topics": None})
    kept = dict(requests.broker.handlers[ApiKey.METADATA]._kept)
    assert len(kept) == 1
    assert requests.ask(ApiKey.METADATA, 12, {"topics": None}) == first
    assert requests.broker.handlers[ApiKey.METADATA]._kept == kept
    lake.alter_topic("large", partitions=501)
    assert len(requests.ask(ApiKey.METADATA, 12, {"topics": None}).topics[0].partitions) == 501
    for version in range(14):
        requests.ask(ApiKey.METADATA, version, {"topics": None if version else []})
    for n in range(20):
        requests.ask(ApiKey.METADATA, 12, {"topics": None}, client_id=f"zone={n}")
    assert len(requests.broker.handlers[ApiKey.METADATA]._kept) == 16
