"""Kafka's clients come late: one of tidelog's brokers reads their records from segments."""

from bench import Bench
from broker_reading import PARTITIONS, arms
from brokers import lettered_records
from measures import Measure
from peer import fill
from through_brokers import both

TITLE = "Kafka's clients catch up"
CASE = "broker catch-up"
_TOPIC = "catch-up"
# Beside them, hardly a record stays in the memory of tidelog's broker; in Kafka's page cache all do.
_CACHE_BYTES = 16 * 2**20


def run(bench: Bench) -> list[Measure]:
    """Each round, new consumers read records of 100 B from 8 partitions."""
    values, keys = lettered_records(500_000)
    with both(bench, cache_bytes=_CACHE_BYTES) as peers:
        for peer in peers.values():
            peer.create_topic(_TOPIC, PARTITIONS)
            fill(peer, _TOPIC, values, keys, 2 if bench.quick else 4, compression_type="zstd")
        rates = bench.interleaved(arms(bench, peers, _TOPIC, len(values) * (2 if bench.quick else 4)))
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]
