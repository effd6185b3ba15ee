"""The cluster as a broker sees it: the brokers that run, the leader of a topic, the coordinator of a group.

Leadership is advice to clients, where their requests are served best. It is never safety: the log orders what comes,
from whichever broker. So any broker may answer any request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from uuid import UUID


@dataclass(frozen=True, slots=True)
class BrokerNode:
    """A broker that runs. `addresses`: {listener: (host, port)} as clients reach it."""

    id: int
    addresses: Mapping[str, tuple[str, int]]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers that run: `nodes`, at least one, sorted by id. `epoch` rises whenever they change."""

    cluster_id: str
    epoch: int
    nodes: Sequence[BrokerNode]
    _ranked: dict[bytes, list[BrokerNode]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def controller(self) -> BrokerNode:
        """Where clients send requests of administration; every broker serves them."""
        return self.nodes[0]

    def leader(self, topic: UUID, rack: str | None = None) -> BrokerNode:
        """The broker that takes and serves a topic's records; one in the client's rack where there is one."""
        return self._best(topic.bytes, rack)

    def replicas(self, topic: UUID, factor: int) -> Sequence[BrokerNode]:
        """The brokers that would serve the topic, the leader first: as many as its replication factor."""
        return self._ranking(topic.bytes)[:factor]

    def coordinator(self, kind: str, key: str) -> BrokerNode:
        """The broker that coordinates a group or a transactional id (`kind`: "group" or "transaction")."""
        return self._best(f"{kind}:{key}".encode(), None)

    def _best(self, key: bytes, rack: str | None) -> BrokerNode:
        ranking = self._ranking(key)
        return next((node for node in ranking if rack is not None and node.rack == rack), ranking[0])

    def _ranking(self, key: bytes) -> list[BrokerNode]:
        """Rendezvous hashing: every broker ranks a key alike, and a broker that goes takes along its own keys only."""
        found = self._ranked.get(key)
        if found is None:
            salts = {node.id: node.id.to_bytes(8, "big", signed=True) for node in self.nodes}
            found = sorted(self.nodes, key=lambda node: blake2b(key, digest_size=8, salt=salts[node.id]).digest())
            self._ranked[key] = found
        return found
