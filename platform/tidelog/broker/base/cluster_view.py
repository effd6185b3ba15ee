"""The cluster as a broker sees it: the brokers that run, the leader of a partition, the coordinator of a group.

Leadership is advice to clients, where their requests are served best. It is never safety: the log orders what comes,
from whichever broker. So any broker may answer any request.

A partition's leader takes and serves its records. A topic's committer makes the entries: the leaders of its partitions
hand over to it what they have staged, so that brokers don't race for the log.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from uuid import UUID

from tidelog.broker.base.partition_leaders import Dealt
from tidelog.broker.wire.endpoints import Endpoint
from tidelog.cluster.model import ALL

# Rankings and dealt topics that a view remembers: keys are whatever clients ask for, and a view may last for months.
MOST_RANKED = 100_000
MOST_DEALT = 20_000


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker that runs. `addresses`: {listener: (host, port)} as clients reach it; `registration`: of this life."""

    id: int
    addresses: Mapping[str, tuple[str, int]]
    rack: str | None = None
    registration: str = ""


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers that run: `nodes`, at least one, sorted by id. `epoch` rises whenever leaders may.

    It is the leader epoch of every partition: clients ignore another leader under an epoch that they know.
    `node_id`: the broker that sees it so. `left`: brokers that went a moment ago. `known`: the ids that leaders are
    dealt over, those of brokers that are down for now too; without it, those of `nodes`. `leaders`: how many of the
    brokers lead a topic's partitions, of its id; `usual_leaders`: of other topics. `ALL`: all that run.
    """

    cluster_id: str
    epoch: int
    nodes: Sequence[BrokerNode]
    node_id: int = 0
    left: Sequence[BrokerNode] = ()
    known: Sequence[int] = ()
    leaders: Mapping[UUID, int] = field(default_factory=dict)
    usual_leaders: int = ALL
    _ranked: dict[bytes, list[BrokerNode]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _dealt: dict[tuple[UUID, str | None], Dealt] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def serves(self) -> bool:
        """Whether this broker is one of them: not while it drains, nor when it was taken for dead."""
        return self.node(self.node_id) is not None

    @property
    def controller(self) -> BrokerNode:
        """Where clients send requests of administration; every broker serves them."""
        return self.nodes[0]

    def leaders_of(self, topic: UUID) -> int:
        """How many brokers lead a topic's partitions, where as many run; `ALL` for all."""
        return self.leaders.get(topic, self.usual_leaders)

    def leader(self, topic: UUID, partition: int, rack: str | None = None) -> BrokerNode:
        """The broker that takes and serves a partition's records; one in the client's rack where there is one."""
        return self._running(self._deal(topic, rack).leader(partition))

    def replicas(self, topic: UUID, partition: int, factor: int, rack: str | None = None) -> Sequence[BrokerNode]:
        """The brokers that would serve a partition, the leader (of that rack) first: as many as the topic's factor.

        All of them run, so they are the in-sync replicas too.
        """
        leader, order = self.leader(topic, partition, rack), self._deal(topic, None).order
        place = order.index(leader.id)
        return [self._running(broker_id) for broker_id in (order[place:] + order[:place])[:factor]]

    def committer(self, topic: UUID) -> BrokerNode:
        """The broker that makes a topic's entries, of what the leaders of its partitions have staged."""
        return self._running(self._deal(topic, None).order[0])

    def preferred_read_replica(self, topic: UUID, partition: int, rack: str | None, asked: int) -> int:
        """The broker in a consumer's rack, when the broker that it `asked` is in another one; else -1 (KIP-392)."""
        if not rack or any(node.id == asked and node.rack == rack for node in self.nodes):
            return -1
        nearest = self.leader(topic, partition, rack)
        return nearest.id if nearest.rack == rack else -1

    def in_sync(self, min_insync_replicas: int, replication_factor: int) -> bool:
        """Whether as many brokers run as `min.insync.replicas` asks; of more than the factor only that many."""
        return len(self.nodes) >= min(min_insync_replicas, replication_factor)

    def node(self, node_id: int) -> BrokerNode | None:
        """The broker of that id, if it runs."""
        return next((node for node in self.nodes if node.id == node_id), None)

    def reachable(self, listener: str) -> list[Endpoint]:
        """The brokers that clients of a listener can reach."""
        return _endpoints(self.nodes, listener)

    def listed(self, listener: str) -> list[Endpoint]:
        """The brokers that Metadata lists: those that clients can reach, and those that went a moment ago.

        Partitions' leaders move away from a broker before it is gone from the list, as when a broker of Kafka's stops:
        librdkafka from 2.10 on loses the way to a partition for a second when one answer brings both.
        """
        return _endpoints((*self.nodes, *self.left), listener)

    def endpoints(self, ids: Collection[int], listener: str) -> list[Endpoint]:
        """Of the brokers that clients of a listener can reach, those of these ids."""
        return [one for one in self.reachable(listener) if one.id in ids] if ids else []

    def coordinator(self, kind: str, key: str) -> BrokerNode:
        """The broker that coordinates a group or a transactional id (`kind`: "group", "transaction" or "share")."""
        return self._ranking(f"{kind}:{key}".encode())[0]

    def _deal(self, topic: UUID, rack: str | None) -> Dealt:
        """A topic's partitions, dealt to its leaders among the brokers of a rack; of all where none is in it."""
        if rack is not None and all(node.rack != rack for node in self.nodes):
            rack = None  # clients name what they like, and what is dealt is kept
        dealt = self._dealt.get((topic, rack))
        if dealt is None:
            if len(self._dealt) >= MOST_DEALT:
                self._dealt.clear()
            serving = [node.id for node in self.nodes]
            near = serving if rack is None else [node.id for node in self.nodes if node.rack == rack]
            dealt = Dealt(topic.bytes, self.known or serving, near, self.leaders_of(topic) or None)
            self._dealt[topic, rack] = dealt
        return dealt

    def _running(self, node_id: int) -> BrokerNode:
        return next(node for node in self.nodes if node.id == node_id)

    def _ranking(self, key: bytes) -> list[BrokerNode]:
        """Rendezvous hashing: every broker ranks a key alike, and a broker that goes takes along its own keys only."""
        ranking = self._ranked.get(key)
        if ranking is None:
            if len(self._ranked) >= MOST_RANKED:
                self._ranked.clear()
            salts = {node.id: node.id.to_bytes(8, "big", signed=True) for node in self.nodes}
            ranking = sorted(self.nodes, key=lambda node: blake2b(key, digest_size=8, salt=salts[node.id]).digest())
            self._ranked[key] = ranking
        return ranking


def _endpoints(nodes: Iterable[BrokerNode], listener: str) -> list[Endpoint]:
    return [Endpoint(node.id, *node.addresses[listener], node.rack) for node in nodes if listener in node.addresses]


def rack_of(client_id: str | None) -> str | None:
    """The rack that a client's id names, for clients that have no other way to say it: `...,zone=<rack>`.

    As WarpStream and Inkless read it; keys and values are separated by commas.
    """
    for part in (client_id or "").split(","):
        key, _, value = part.strip().partition("=")
        if key == "zone" and value:
            return value
    return None
