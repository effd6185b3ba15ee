"""A consumer comes late and reads all that there is."""

from bench import Bench
from figures import interleaved
from measures import Measure
from peer import both, fill
from produce import keyed_records
from reading import PARTITIONS, arms

TITLE = "Catch-up of a late consumer"
CASE = "catch-up"
_TOPIC = "catch-up"
_ROUNDS = 2


def run(bench: Bench) -> list[Measure]:
    """Ten million records of 100 B in 8 partitions, as producers left them; they are in the page cache of both."""
    records = 1_000_000 if bench.quick else 10_000_000
    values, keys = keyed_records(1_000_000)
    peers = both(bench)
    for peer in peers.values():
        peer.create_topic(_TOPIC, PARTITIONS)
        fill(peer, _TOPIC, values, keys, records // len(values))
    rates = interleaved(arms(peers, _TOPIC, records), bench.rounds if bench.quick else _ROUNDS, warmups=0)
    for peer in peers.values():
        peer.delete_topic(_TOPIC)
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]
