"""Whether enough brokers run for records that ask for acks=all (`min.insync.replicas`).

A record is as safe as the lake's store makes it, however many brokers run: the replicas of a partition are the brokers
that would serve it, and those in sync are the ones that run.
"""

from typing import Final

from tidelog.broker.base.cluster_view import ClusterView
from tidelog.log.base.errors import TidelogError

# What a producer asks for that waits for all replicas in sync.
ACKS_ALL: Final = -1


class NotEnoughReplicasError(TidelogError, kafka_code=19, retriable=True):
    """Fewer replicas are in sync than `min.insync.replicas` asks for; nothing was appended."""


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
