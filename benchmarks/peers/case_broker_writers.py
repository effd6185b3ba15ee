"""Many of Kafka's producers, each of which waits until a hundred records are safe before it sends the next."""

from functools import partial

from bench import Bench
from measures import Measure
from peer import KAFKA, TIDELOG
from racing_writers import WRITERS, Appender, measured, producing
from through_brokers import both

TITLE = "Small appends by many of Kafka's producers"
CASE = "broker small appends"
_SYNCED = "kafka flush.messages=1"


def run(bench: Bench) -> list[Measure]:
    """Eight processes, a partition each, 100 records of 100 B with acks=all at a time.

    tidelog has fsynced what it acknowledges. Kafka has not, but for the topic with flush.messages=1.
    """
    with both(bench) as peers:
        for peer in peers.values():
            peer.create_topic("produced", WRITERS)
        peers[KAFKA].create_topic("synced", WRITERS, {"flush.messages": "1"})
        appenders: dict[str, Appender] = {
            TIDELOG: partial(producing, peers[TIDELOG], "produced"),
            KAFKA: partial(producing, peers[KAFKA], "produced"),
            _SYNCED: partial(producing, peers[KAFKA], "synced"),
        }
        return measured(CASE, bench, appenders)
