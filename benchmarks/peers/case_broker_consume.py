"""Kafka's clients read what was produced just before: one of tidelog's brokers has it in its memory."""

from bench import Bench
from broker_reading import PARTITIONS, arms
from brokers import lettered_records
from measures import Measure
from peer import fill
from through_brokers import both

TITLE = "Kafka's clients consume"
CASE = "broker consume"
_TOPIC = "consume"
# They fit into a broker's cache.
_RECORDS = 800_000


def run(bench: Bench) -> list[Measure]:
    """Each round, new consumers read records of 100 B from 8 partitions."""
    values, keys = lettered_records(200_000 if bench.quick else _RECORDS)
    with both(bench) as peers:
        for peer in peers.values():
            peer.create_topic(_TOPIC, PARTITIONS)
            fill(peer, _TOPIC, values, keys, compression_type="zstd")
        rates = bench.interleaved(arms(bench, peers, _TOPIC, len(values)))
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]
