"""What an answer says of the brokers that run: another one to go to, or that too few of them do.

Any broker may take any record, and a record is as safe as the lake's store makes it: both are advice, never safety.
"""

from typing import Final
from uuid import UUID

from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode

# How long old routes are good after brokers have come or gone, where they matter at all.
GRACE_S: Final = 10.0
# And after another number of brokers leads a topic: by then all of them know.
MOVED_GRACE_S: Final = 2.0
# What a producer asks for that waits for all replicas in sync.
ACKS_ALL: Final = -1


class NotEnoughReplicasError(TidelogError, kafka_code=KafkaCode.NOT_ENOUGH_REPLICAS, retriable=True):
    """Fewer replicas are in sync than `min.insync.replicas` asks for; nothing was appended."""


def better_leader(
    view: ClusterView,
    topic: UUID,
    partition: int,
    rack: str | None,
    *,
    races_cost: bool,
    epoch_age_s: float,
    moved: bool = False,
) -> BrokerNode | None:
    """The broker that should take a client's records of this partition instead of this one; None: take them here.

    It is the one that Metadata names to a client of this `rack`. Only a broker that drains sends clients away, and one
    that does not lead in two cases: on a store where lost races for the next entry are dear (`races_cost`), once the
    view of the cluster is `GRACE_S` old; and where another number of brokers leads the topic than when its producers
    may have come here (`moved`), once all brokers know, as else no load would move.
    """
    leaves = not view.serves or (races_cost and epoch_age_s >= GRACE_S) or (moved and epoch_age_s >= MOVED_GRACE_S)
    leader = view.leader(topic, partition, rack) if leaves else None
    return None if leader is None or leader.id == view.node_id else leader


def too_few_in_sync(
    view: ClusterView, topic: str, min_insync_replicas: int, replication_factor: int
) -> NotEnoughReplicasError | None:
    """Why records with acks=all are refused now; None where they are taken.

    More replicas than the factor can't be in sync, so that a larger minimum counts as the factor. Source: Kafka's
    `Partition.effectiveMinIsr`.
    """
    if view.in_sync(min_insync_replicas, replication_factor):
        return None
    running = min(len(view.nodes), replication_factor)
    return NotEnoughReplicasError(
        f"Topic '{topic}' has {running} of its {replication_factor} replicas in sync, fewer than"
        f" min.insync.replicas={min_insync_replicas}: records with acks=all are not taken. Start more brokers, lower"
        " min.insync.replicas, or produce with acks=1."
    )
