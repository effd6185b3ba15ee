"""Topics as requests describe them: their ids, partitions, and the brokers that serve them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.calls import Call, Peer
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.wire.errors import LISTENER_NOT_FOUND, TOPIC_AUTHORIZATION_FAILED
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.rights import Right
from tidelog.operations.topics import read_topics


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as clients see it, or (`error`, a code of Kafka's) why it can't be had.

    `factor`: the replication factor that it was created with, None where that was left open.
    """

    name: str | None
    id: UUID | None = None
    partitions: int = 0
    factor: int | None = None
    error: int = 0

    @property
    def is_internal(self) -> bool:
        """Whether it is one of tidelog's own."""
        return self.name is not None and names.is_internal(self.name)


@dataclass(frozen=True, slots=True)
class Placement:
    """The brokers of a partition, by id; `leader` is -1 where `error` says why clients can't reach it."""

    partition: int
    leader: int
    epoch: int
    replicas: Sequence[int]
    error: int = 0

    def fields(self) -> dict[str, Any]:
        """The partition, in the names of Kafka's answers."""
        return {
            "error_code": self.error,
            "partition_index": self.partition,
            "leader_id": self.leader,
            "leader_epoch": self.epoch,
            "replica_nodes": self.replicas,
            "isr_nodes": self.replicas,
        }


def facts_of(name: str, state: TopicState) -> TopicFacts:
    """What the state of a topic that exists says."""
    return TopicFacts(name, UUID(state.topic_id), state.partitions, state.replication_factor)


def placement(
    view: ClusterView, topic: TopicFacts, partition: int, default_factor: int, listener: str, rack: str | None = None
) -> Placement:
    """Where clients of a listener, in a rack, find a partition: the brokers that would serve it, all in sync."""
    assert topic.id is not None
    leader = view.leader(topic.id, partition, rack)
    replicas = [node.id for node in view.replicas(topic.id, partition, topic.factor or default_factor, rack)]
    if listener not in leader.addresses:
        return Placement(partition, -1, view.epoch, replicas, LISTENER_NOT_FOUND)
    return Placement(partition, leader.id, view.epoch, replicas)


def survey(lake: Lake) -> list[TopicFacts]:
    """All topics, internal ones too, sorted by name. One that can't be opened is among them, and says why."""
    return [
        TopicFacts(name, error=state.kafka_code) if isinstance(state, TidelogError) else facts_of(name, state)
        for name, state in read_topics(lake, internal=True).items()
    ]


async def find(context: Context, wanted: str | UUID) -> TopicFacts:
    """The topic of a name or an id, or why it can't be had."""
    try:
        found = await context.topics.find(wanted)
        return facts_of(found.name, found.state)
    except TidelogError as e:
        if isinstance(wanted, UUID):
            return TopicFacts(None, wanted, error=e.kafka_code)
        return TopicFacts(wanted, error=e.kafka_code)


# --- what a client may see of them -------------------------------------------------------------------------


def describable(access: BrokerAccess, peer: Peer, topics: Iterable[TopicFacts]) -> list[TopicFacts]:
    """Those of all topics that a client may see."""
    if access.is_open:
        return list(topics)
    return [one for one in topics if access.may(peer, Right.DESCRIBE_TOPIC, topic=one.name or "")]


async def find_describable(context: Context, call: Call, wanted: str | UUID) -> TopicFacts:
    """The topic of a name or an id, for a client that may see it. For others it is not looked whether it is there.

    Ids tell nothing, as Kafka sees it: of one that is there it is said that the client may not see the topic.
    """
    if isinstance(wanted, str) and not context.access.allows(call, Right.DESCRIBE_TOPIC, topic=wanted):
        return TopicFacts(wanted, error=TOPIC_AUTHORIZATION_FAILED)
    facts = await find(context, wanted)
    if (
        isinstance(wanted, UUID)
        and facts.name is not None
        and not context.access.allows(call, Right.DESCRIBE_TOPIC, topic=facts.name)
    ):
        return TopicFacts(None, wanted, error=TOPIC_AUTHORIZATION_FAILED)
    return facts
