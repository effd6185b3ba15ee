"""From `produce` in one process to `poll` in another, one record at a time."""

from functools import partial
from itertools import chain

from bench import Bench
from clients_latency import latencies_ms
from figures import percentile
from measures import Measure
from peer import Peer, both

TITLE = "End-to-end latency of clients"
CASE = "client latency"
_WARMUP = 50


def run(bench: Bench) -> list[Measure]:
    """A record every 10 to 20 ms, linger.ms=0 and acks=1 for both; one partition."""
    return measured(CASE, bench, both(bench), acks=1)


def measured(case: str, bench: Bench, peers: dict[str, Peer], acks: object) -> list[Measure]:
    """The peers in turns, each round with a topic of its own."""
    count = 100 if bench.quick else 300
    times: dict[str, list[list[float]]] = {system: [] for system in peers}
    for number in range(bench.rounds):
        for system, peer in peers.items():
            topic = f"latency-{number}"
            peer.create_topic(topic, 1)
            times[system].append(_round(peer, topic, count, acks))
    return [
        Measure(case, system, f"p{q}", "ms", "lower", [percentile(one, q) for one in rounds], samples=_all(rounds, q))
        for system, rounds in times.items()
        for q in (50, 99)
    ]


def _round(peer: Peer, topic: str, count: int, acks: object) -> list[float]:
    producer = peer.producer(acks=acks, linger_ms=0)
    times_ms = latencies_ms(producer, topic, partial(peer.reader, topic, 0), count, _WARMUP)
    producer.close()
    return times_ms


def _all(rounds: list[list[float]], q: int) -> list[float]:
    """The latencies go with one of the two figures."""
    return [round(one, 3) for one in chain.from_iterable(rounds)] if q == 50 else []
