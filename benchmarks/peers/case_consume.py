"""A Python consumer, in batches of messages and as Arrow tables."""

from bench import Bench
from measures import Measure
from peer import both, fill
from produce import keyed_records
from reading import PARTITIONS, arms

TITLE = "Python consume"
CASE = "python consume"
_TOPIC = "consume"
_RECORDS = 1_000_000


def run(bench: Bench) -> list[Measure]:
    """Each round, a new consumer reads records of 100 B from 8 partitions: `consume(10,000)`, `consume_table`."""
    values, keys = keyed_records(_RECORDS)
    peers = both(bench)
    for peer in peers.values():
        peer.create_topic(_TOPIC, PARTITIONS)
        fill(peer, _TOPIC, values, keys)
    rates = bench.interleaved(arms(peers, _TOPIC, _RECORDS))
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]
