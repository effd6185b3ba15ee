"""When a broker sends producers to another one. Any broker may take any record: it is advice, never safety."""

from typing import Final
from uuid import UUID

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView

# How long old routes are good after brokers have come or gone, where they matter at all.
GRACE_S: Final = 10.0


def better_leader(
    view: ClusterView, topic: UUID, rack: str | None, *, races_cost: bool, epoch_age_s: float
) -> BrokerNode | None:
    """The broker that should take a client's records of this topic instead of this one; None: take them here.

    It is the one that Metadata names to a client of this `rack`. Only a broker that drains sends clients away, and on a
    store where lost races for the next entry are dear (`races_cost`) also one that does not lead, once the view of the
    cluster is `GRACE_S` old.
    """
    leaves = not view.serves or (races_cost and epoch_age_s >= GRACE_S)
    leader = view.leader(topic, rack) if leaves else None
    return None if leader is None or leader.id == view.node_id else leader
