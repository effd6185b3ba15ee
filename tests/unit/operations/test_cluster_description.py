"""A cluster as it is described: the brokers that serve, the controller, and those that are not reached."""

import socket

import pytest
from support.logs import memory_lake

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leases import lease_of, said
from tidelog.cluster.loads import BrokerLoad, TopicLoad
from tidelog.cluster.model import (
    ALL,
    BrokerState,
    ClusterState,
    LeadersChange,
    Listener,
    RegisteredBroker,
    TopicLeaders,
    UnknownBrokerError,
)
from tidelog.log.base.errors import LakeNotFoundError
from tidelog.log.lake import Lake
from tidelog.operations.cluster import ClusterDescription, LedTopic, describe_cluster

RUNNING, DRAINING, GONE = BrokerState.RUNNING, BrokerState.DRAINING, BrokerState.GONE


def cluster(*states, silent=()):
    """Brokers 1, 2, 3 … in these states; `silent`: the ids of those that are not reached."""
    brokers = {number: RegisteredBroker(number, f"r{number}", state=state) for number, state in enumerate(states, 1)}
    return ClusterDescription("id", ClusterState(brokers, 7), {f"r{number}": "refused" for number in silent})


def ids(brokers):
    return [broker.id for broker in brokers]


@pytest.mark.parametrize(
    ("described", "live", "serving", "controller"),
    [
        (cluster(), [], [], None),
        (cluster(RUNNING, RUNNING), [1, 2], [1, 2], 1),
        (cluster(GONE, RUNNING, DRAINING), [2, 3], [2], 2),
        (cluster(GONE, DRAINING), [2], [2], 2),
        (cluster(RUNNING, RUNNING, silent=[1]), [2], [2], 2),
        (cluster(RUNNING, DRAINING, silent=[1]), [2], [], None),
    ],
)
def test_which_brokers_serve(described, live, serving, controller):
    assert ids(described.live) == live
    assert ids(described.serving) == serving
    assert (described.controller and described.controller.id) == controller


def test_states_in_words():
    described = cluster(RUNNING, DRAINING, GONE, RUNNING, silent=[1])
    assert [described.state_of(broker) for broker in described.brokers] == ["silent", "draining", "gone", "running"]


def test_a_broker_that_is_not_there():
    assert cluster(RUNNING).broker(1).id == 1
    with pytest.raises(UnknownBrokerError, match="has the id 2"):
        cluster(RUNNING).broker(2)


def test_brokers_are_tried():
    lake, _, _ = memory_lake()
    lake.ensure_lake()
    assert describe_cluster(lake) == ClusterDescription(None, ClusterState())
    log = ClusterLog(lake)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        for number, place in enumerate((server, taken), 1):
            listener = Listener("PLAINTEXT", *place.getsockname())
            log.register(RegisteredBroker(number, f"r{number}", (listener,)), any_id=False)
        log.register(RegisteredBroker(3, "r3", (listener,)), any_id=False)
        log.gone("r3")
        described = describe_cluster(lake)
    assert described.cluster_id == log.cluster_id()
    assert set(described.silent) == {"r2"}
    assert ids(described.serving) == [1]


def test_topics_say_how_many_lead_them_what_they_cost_and_since_when():
    lake, _, _ = memory_lake()
    lake.ensure_lake()
    log = ClusterLog(lake)
    for number, cores in ((1, 0.5), (2, 0.25)):
        broker = log.register(RegisteredBroker(number, f"r{number}"), any_id=False)
        lease = lease_of(lake.storage, broker)
        lease.says = said(broker, BrokerLoad(1.0, (TopicLoad("a", "busy", 3, cores), TopicLoad("b", "calm", 3, 0.05))))
        lease.renew()
    told = [TopicLeaders("a", "busy", 8, 7), TopicLeaders("c", "silent", 2, 9)]
    log.lead("r1", [LeadersChange(None, one) for one in told])
    described = describe_cluster(lake).topics
    assert described == [
        LedTopic("busy", 2, 0.75, 7), LedTopic("calm", 1, 0.1, None), LedTopic("silent", 2, 0.0, 9)
    ]  # fmt: skip
    log.lead("r1", [LeadersChange(None, TopicLeaders("", "", ALL, 11))])
    assert describe_cluster(lake).topics[1] == LedTopic("calm", 2, 0.1, 11)


def test_no_lake_has_no_cluster():
    with Lake("memory://none", create=None) as lake, pytest.raises(LakeNotFoundError):
        describe_cluster(lake)
