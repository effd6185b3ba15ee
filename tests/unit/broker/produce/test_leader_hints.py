"""When a broker sends producers to another one, and to which."""

from uuid import UUID

import pytest

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.produce.leader_hints import better_leader

TOPIC = UUID(int=5)
NODES = [BrokerNode(n, {"PLAINTEXT": (f"host{n}", 9092)}, rack) for n, rack in ((1, "a"), (2, "b"), (3, "c"))]
PARTITION = 3
LEADER = ClusterView("c", 1, NODES).leader(TOPIC, PARTITION).id
OTHERS = [node for node in NODES if node.id != LEADER]


@pytest.mark.parametrize(
    ("nodes", "own", "rack", "races_cost", "age_s", "expected"),
    [
        # Where races are cheap, every broker that runs takes what it is sent.
        (NODES, OTHERS[0].id, None, False, 1e6, None),
        (NODES, LEADER, None, False, 1e6, None),
        # Where they are dear, only for some time after brokers have come or gone.
        (NODES, OTHERS[0].id, None, True, 9.9, None),
        (NODES, OTHERS[0].id, None, True, 10.0, LEADER),
        (NODES, LEADER, None, True, 1e6, None),
        # Metadata names a broker in the client's rack.
        (NODES, OTHERS[0].id, OTHERS[0].rack, True, 1e6, None),
        (NODES, LEADER, OTHERS[0].rack, True, 1e6, OTHERS[0].id),
        # A broker that drains runs no more, as the others see it.
        ([n for n in NODES if n.id == LEADER], OTHERS[0].id, None, False, 0.0, LEADER),
        (OTHERS, LEADER, OTHERS[1].rack, False, 0.0, OTHERS[1].id),
    ],
)
def test_better_leader(nodes, own, rack, races_cost, age_s, expected):
    view = ClusterView("c", 1, nodes, own)
    found = better_leader(view, TOPIC, PARTITION, rack, races_cost=races_cost, epoch_age_s=age_s)
    assert (found and found.id) == expected


@pytest.mark.parametrize(
    ("own", "age_s", "expected"), [(OTHERS[0].id, 1.9, None), (OTHERS[0].id, 2.0, LEADER), (LEADER, 1e6, None)]
)
def test_producers_follow_where_another_number_of_brokers_leads(own, age_s, expected):
    view = ClusterView("c", 1, NODES, own)
    found = better_leader(view, TOPIC, PARTITION, None, races_cost=False, epoch_age_s=age_s, moved=True)
    assert (found and found.id) == expected
