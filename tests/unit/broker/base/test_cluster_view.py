"""The view of a cluster: leaders, coordinators, racks, replicas, what a client's id says."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView, rack_of
from tidelog.broker.wire.endpoints import Endpoint

TOPICS = [UUID(int=n) for n in range(200)]
ids = st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=6)


def view(*nodes: int | tuple[int, str], me: int = 0) -> ClusterView:
    made = [BrokerNode(n, {}) if isinstance(n, int) else BrokerNode(n[0], {}, n[1]) for n in nodes]
    return ClusterView("c", 1, sorted(made, key=lambda node: node.id), me)


PLACES = [(topic, partition) for topic in TOPICS for partition in (0, 1, 7)]


def test_when_a_broker_goes_only_its_own_partitions_get_another_leader():
    before = view(1, 2, 3)
    after = replace(view(1, 3), known=(1, 2, 3))
    for place in PLACES:
        if (leader := before.leader(*place).id) != 2:
            assert after.leader(*place).id == leader


def test_partitions_are_spread_over_the_brokers():
    leads = [view(1, 2, 3).leader(*place).id for place in PLACES]
    assert all(150 < leads.count(broker) < 250 for broker in (1, 2, 3))


def test_a_topic_has_one_committer_and_topics_are_spread_over_them():
    three = view(1, 2, 3)
    commits = [three.committer(topic).id for topic in TOPICS]
    assert all(40 < commits.count(broker) < 100 for broker in (1, 2, 3))
    for topic, committer in zip(TOPICS, commits, strict=True):
        for gone in {1, 2, 3} - {committer}:
            left = replace(view(*({1, 2, 3} - {gone})), known=(1, 2, 3))
            assert left.committer(topic).id == committer


@given(ids, st.integers(1, 8))
def test_as_many_brokers_lead_a_topic_as_are_said(brokers, leaders):
    few = replace(view(*brokers), leaders={TOPICS[0]: leaders}, usual_leaders=1)
    lead = [few.leader(TOPICS[0], partition).id for partition in range(12)]
    assert len(set(lead)) == min(leaders, len(brokers))
    assert few.committer(TOPICS[0]).id in lead
    assert {few.leader(TOPICS[1], partition).id for partition in range(12)} == {few.committer(TOPICS[1]).id}


def test_as_many_lead_in_each_rack():
    racks = replace(view((1, "a"), (2, "b"), (3, "b"), (4, "b")), usual_leaders=2)
    for topic in TOPICS[:20]:
        assert {racks.leader(topic, partition, "a").id for partition in range(12)} == {1}
        near = {racks.leader(topic, partition, "b").id for partition in range(12)}
        assert len(near) == 2
        assert near < {2, 3, 4}


@given(ids, st.integers(1, 8))
def test_the_leader_is_the_first_replica_and_none_is_there_twice(brokers, factor):
    for place in PLACES[:20]:
        replicas = [node.id for node in view(*brokers).replicas(*place, factor)]
        assert replicas[0] == view(*brokers).leader(*place).id
        assert len(set(replicas)) == len(replicas) == min(factor, len(brokers))


def test_a_client_gets_a_leader_in_its_rack_where_there_is_one():
    racks = view((1, "a"), (2, "b"), (3, "b"))
    assert {racks.leader(*place, "a").id for place in PLACES} == {1}
    assert {racks.leader(*place, "b").id for place in PLACES} == {2, 3}
    assert {racks.leader(*place, "elsewhere").id for place in PLACES} == {1, 2, 3}
    for place in PLACES:
        assert racks.replicas(*place, 2, "b")[0] is racks.leader(*place, "b")


@pytest.mark.parametrize(
    ("rack", "asked", "preferred"),
    [("a", 2, 1), ("a", 3, 1), ("a", 1, -1), ("", 2, -1), (None, 2, -1), ("elsewhere", 2, -1)],
)
def test_a_consumer_is_sent_to_its_rack_once(rack, asked, preferred):
    racks = view((1, "a"), (2, "b"), (3, "b"))
    assert racks.preferred_read_replica(*PLACES[0], rack, asked) == preferred


def test_consumers_go_to_each_partitions_leader_in_their_rack():
    racks = view((1, "a"), (2, "b"), (3, "b"))
    for place in PLACES:
        assert racks.preferred_read_replica(*place, "b", 1) == racks.leader(*place, "b").id


@pytest.mark.parametrize(
    ("running", "least", "factor", "enough"),
    [(3, 2, 3, True), (2, 2, 3, True), (1, 2, 3, False), (1, 1, 3, True), (1, 2, 1, True)],
)
def test_in_sync_replicas_are_the_brokers_that_run(running, least, factor, enough):
    assert view(*range(running)).in_sync(least, factor) is enough


def test_a_broker_that_is_not_among_those_that_run_serves_no_more():
    assert view(1, 2, me=2).serves
    assert not view(1, 3, me=2).serves


def test_the_controller_is_the_lowest_id():
    assert view(3, 1, 2).controller.id == 1


def test_groups_and_transactions_are_spread_too():
    three = view(1, 2, 3)
    for kind in ("group", "transaction"):
        found = [three.coordinator(kind, f"g{n}").id for n in range(300)]
        assert all(60 < found.count(broker) < 150 for broker in (1, 2, 3))
    names = [f"x{n}" for n in range(50)]
    assert [three.coordinator("group", n).id for n in names] != [three.coordinator("transaction", n).id for n in names]


@pytest.mark.parametrize(
    ("client_id", "rack"),
    [
        ("zone=eu-1a", "eu-1a"),
        ("orders,zone=eu-1a", "eu-1a"),
        ("orders, zone=eu-1a,x=y", "eu-1a"),
        ("zone=", None),
        ("timezone=utc", None),
        ("orders", None),
        ("", None),
        (None, None),
    ],
)
def test_a_client_id_may_name_its_rack(client_id, rack):
    assert rack_of(client_id) == rack


def test_endpoints_are_those_of_the_listener():
    one = BrokerNode(1, {"A": ("a", 1), "B": ("b", 2)}, "x")
    view = ClusterView("c", 1, (one, BrokerNode(2, {"B": ("c", 3)})))
    a, *b = Endpoint(1, "a", 1, "x"), Endpoint(1, "b", 2, "x"), Endpoint(2, "c", 3, None)
    assert [view.reachable(name) for name in "ABC"] == [[a], b, []]
    assert [view.endpoints({2}, name) for name in "ABC"] == [[], b[1:], []]
    assert view.endpoints(set(), "A") == []


def test_racks_that_clients_make_up_are_kept_as_one():
    racks = view((1, "a"), (2, "b"))
    assert len({racks.leader(*PLACES[0], f"made-up-{number}").id for number in range(100)}) == 1
    assert len(racks._dealt) == 1


def test_what_clients_ask_for_takes_a_bounded_memory(monkeypatch):
    """Groups of one run each, topics that come and go: a view that never changes must not keep them all."""
    monkeypatch.setattr("tidelog.broker.base.cluster_view.MOST_RANKED", 100)
    monkeypatch.setattr("tidelog.broker.base.cluster_view.MOST_DEALT", 100)
    seen = view(1, 2, 3)
    found = [seen.coordinator("group", f"console-{number}") for number in range(1_000)]
    leaders = [seen.leader(UUID(int=number), 0) for number in range(1_000)]
    assert len(seen._ranked) <= 100
    assert len(seen._dealt) <= 100
    assert leaders == [seen.leader(UUID(int=number), 0) for number in range(1_000)]
    assert found == [seen.coordinator("group", f"console-{number}") for number in range(1_000)]
