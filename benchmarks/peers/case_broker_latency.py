"""From Kafka's `produce` in one process to its `poll` in another: through tidelog's broker, and through Kafka."""

from bench import Bench
from case_client_latency import measured
from measures import Measure
from through_brokers import both

TITLE = "End-to-end latency of Kafka's clients"
CASE = "broker latency"


def run(bench: Bench) -> list[Measure]:
    """A record every 10 to 20 ms, linger.ms=0 and acks=all; one partition."""
    with both(bench) as peers:
        return measured(CASE, bench, peers, acks="all")
