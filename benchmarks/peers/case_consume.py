"""A Python consumer, in batches of messages and as Arrow tables."""

from bench import Bench
from figures import interleaved
from measures import Measure
from peer import both, fill
from produce import keyed_records
from reading import PARTITIONS, arms

TITLE = "Python consume"
CASE = "python consume"
_TOPIC = "consume"


def run(bench: Bench) -> list[Measure]:
    """Each round, a new consumer reads records of 100 B from 8 partitions: `consume(10,000)`, `consume_table`."""
    records = 200_000 if bench.quick else 1_000_000
    values, keys = keyed_records(records)
    peers = both(bench)
    for peer in peers.values():
        peer.create_topic(_TOPIC, PARTITIONS)
        fill(peer, _TOPIC, values, keys)
    rates = interleaved(arms(peers, _TOPIC, records), bench.rounds)
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]
