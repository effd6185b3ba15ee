"""Any broker serves what another one leads; one that drains sends producers where Metadata would send them."""

from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from support.broker_fetches import fetch
from support.broker_requests import Requests
from support.produce_requests import batch, read_back

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.wire.apis import ApiKey


def view(*ids, own):
    """Brokers, each in a zone of its own, as `own` sees them."""
    nodes = [BrokerNode(n, {"PLAINTEXT": (f"host{n}", 9000 + n)}, f"zone{n}") for n in ids]
    return lambda: ClusterView("c", 7, nodes, own)


def produce(requests, version=9, **sender):
    topic = {"name": "t", "partition_data": [{"index": 0, "records": batch(b"x")}]}
    return requests.ask(ApiKey.PRODUCE, version, {"acks": -1, "timeout": 30_000, "topic_data": [topic]}, **sender)


@pytest.mark.parametrize("own", [1, 2, 3])
def test_any_broker_creates_appends_and_reads(lake, own):
    with Requests(lake, view(1, 2, 3, own=own)) as requests:
        asked = {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}], "timeout": 1000}
        (created,) = requests.ask(ApiKey.CREATE_TOPICS, 5, asked).topics
        assert created.error_code is ErrorCode.none
        (found,) = produce(requests).responses[0].partition_responses
        assert found.error_code is ErrorCode.none
        assert fetch(requests, {"t": {0: 0}}, 11)["t", 0].records
    assert read_back(lake) == {0: [b"x"]}


def test_producers_go_to_the_leaders_of_a_topic_that_has_another_number_of_them(lake):
    topic = lake.create_topic("t", 1)
    before = replace(view(1, 2, 3, own=1)(), usual_leaders=1)
    others = [node.id for node in before.nodes if node.id != before.leader(UUID(topic.id), 0).id]
    seen = [replace(before, node_id=others[0])]
    with Requests(lake, lambda: seen[-1]) as requests:

        def code():
            (found,) = produce(requests).responses[0].partition_responses
            return found.error_code

        assert code() is ErrorCode.none
        seen.append(replace(seen[-1], epoch=8, leaders={UUID(topic.id): 2}))
        assert code() is ErrorCode.none  # not all brokers know yet
        lake.clock.pass_s(2.0)
        assert code() is ErrorCode.not_leader_or_follower
        seen.append(replace(seen[-1], node_id=seen[-1].leader(UUID(topic.id), 0).id))
        assert code() is ErrorCode.none


@pytest.mark.parametrize("client_id", ["app", "app,zone=zone1", "app,zone=zone2", "app,zone=zone3"])
@pytest.mark.parametrize("others", range(4))
def test_the_leader_that_a_refusal_names_is_metadatas(lake, client_id, others):
    for name in [*(f"other{at}" for at in range(others)), "t"]:  # the topic gets another id each time
        lake.create_topic(name)
    with Requests(lake, view(1, 2, own=3)) as requests:
        answer = produce(requests, 10, client_id=client_id)
        (refused,) = answer.responses[0].partition_responses
        named = {"topics": [{"name": "t", "topic_id": None}]}
        told = requests.ask(ApiKey.METADATA, 12, named, client_id=client_id)
    (partition,) = told.topics[0].partitions
    assert refused.error_code is ErrorCode.not_leader_or_follower
    assert refused.current_leader.leader_id == partition.leader_id
    assert refused.current_leader.leader_epoch == partition.leader_epoch == 7
    (endpoint,) = answer.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) in {(n.node_id, n.host, n.port) for n in told.brokers}
    assert endpoint.node_id == partition.leader_id
    assert read_back(lake) == {0: []}
