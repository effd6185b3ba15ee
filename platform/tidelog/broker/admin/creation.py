"""CreateTopics, and topics that are created on the way: what a new topic is to be, decided from the request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.broker.admin.refusals import InvalidReplicaAssignmentError, InvalidReplicationFactorError
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.log.base.errors import InvalidConfigError, InvalidPartitionsError
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.operations.topics import create_topic


@dataclass(frozen=True, slots=True)
class TopicWish:
    """A topic that a client wants, as Kafka's request words it: -1 for a number that is left open.

    `assignments`: {partition: ids of its replicas}, given instead of the two numbers.
    """

    name: str
    partitions: int = -1
    factor: int = -1
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    config: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """A topic to create; `partitions` None: the lake's default."""

    name: str
    partitions: int | None
    factor: int
    config: Mapping[str, str]


def planned(wish: TopicWish, view: ClusterView, default_factor: int) -> TopicPlan:
    """What is to be created. Raises what Kafka refuses a wish for.

    Assigned replicas say how many partitions there are and how many brokers serve each. Which of them do follows from
    the brokers that run: all reach the same storage. Source: Kafka's `ReplicationControlManager.createTopic`.
    """
    missing = sorted(name for name, value in wish.config.items() if value is None)
    if missing:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(missing)}")
    config = {name: value for name, value in wish.config.items() if value is not None}
    if wish.assignments:
        if wish.factor != -1 or wish.partitions != -1:
            what = "replication factor" if wish.factor != -1 else "number of partitions"
            raise InvalidRequestError(
                f"A manual partition assignment was specified, but {what} was not set to -1. Give one of both."
            )
        return TopicPlan(wish.name, len(wish.assignments), assigned_factor(wish.assignments, view), config)
    if wish.factor < -1 or wish.factor == 0:
        raise InvalidReplicationFactorError(
            "Replication factor was set to an invalid non-positive value. Give 1 or more, or -1 for the default."
        )
    if wish.partitions < -1 or wish.partitions == 0:
        raise InvalidPartitionsError(
            "Number of partitions was set to an invalid non-positive value. Give 1 or more, or -1 for the default."
        )
    factor = default_factor if wish.factor == -1 else wish.factor
    if wish.factor == -1 and names.is_internal(wish.name):
        factor = min(factor, len(view.nodes))  # they must be there from the first broker on
    require_brokers(factor, view)
    return TopicPlan(wish.name, None if wish.partitions == -1 else wish.partitions, factor, config)


def require_brokers(factor: int, view: ClusterView) -> None:
    """Refuse a replication factor that the running brokers can't reach."""
    if factor > len(view.nodes):
        raise InvalidReplicationFactorError(
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be"
            f" reached because only {len(view.nodes)} broker(s) are running. Start more, or give a lower one; what is"
            " stored is as safe as the lake's storage in any case."
        )


def assigned_factor(assignments: Mapping[int, Sequence[int]], view: ClusterView, first: int = 0) -> int:
    """The replication factor of partitions whose replicas are given; refuses what contradicts itself.

    `first`: the number that the first of the partitions has.
    """
    if sorted(assignments) != list(range(first, first + len(assignments))):
        raise InvalidReplicaAssignmentError(
            f"partitions should be a consecutive {first}-based integer sequence, not {sorted(assignments)}"
        )
    running = {node.id for node in view.nodes}
    factors = {len(replicas) for replicas in assignments.values()}
    for partition, replicas in assignments.items():
        if not replicas:
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment of partition {partition} has no replicas."
            )
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment of partition {partition} includes a broker twice: {list(replicas)}."
            )
        for unknown in sorted(set(replicas) - running):
            raise InvalidReplicaAssignmentError(
                f"The manual partition assignment includes broker {unknown}, but no such broker is running."
            )
    if len(factors) > 1:
        raise InvalidReplicaAssignmentError(
            "The manual partition assignment has partitions with different numbers of replicas."
        )
    return factors.pop()


def create(lake: Lake, plan: TopicPlan, *, validate_only: bool = False) -> None:
    """Create a topic, or only check that it could be. Raises as `Lake.create_topic` does."""
    create_topic(lake, plan.name, plan.partitions, plan.config, plan.factor, validate_only=validate_only)


def create_on_the_way(lake: Lake, name: str, view: ClusterView, default_factor: int) -> bool:
    """Create a topic that a client asked about, where the lake's `auto.create.topics.enable` allows that."""
    if not lake.config().auto_create_topics_enable:
        return False
    create(lake, planned(TopicWish(name), view, default_factor))
    return True
