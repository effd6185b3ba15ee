"""How fast Kafka's clients read a topic from its beginning to its end: confluent-kafka, and Java's."""

from collections.abc import Callable
from functools import partial
from itertools import count

import java_tools
from bench import Bench
from peer import Peer
from reading import PARTITIONS, messages, rate

__all__ = ["PARTITIONS", "arms"]
_groups = count()


def arms(bench: Bench, peers: dict[str, Peer], topic: str, records: int) -> dict[str, Callable[[], float]]:
    """By system: read all of `topic` with a new consumer; the answer is in records a second."""
    found: dict[str, Callable[[], float]] = {}
    for system, peer in peers.items():
        found[system] = partial(rate, peer, topic, records, messages)
        found[f"{system} Java"] = partial(_by_java, bench, peer, topic, records)
    return found


def _by_java(bench: Bench, peer: Peer, topic: str, records: int) -> float:
    return java_tools.consumed(peer.address, topic, records, f"bench-{next(_groups)}", bench.work / "java")
