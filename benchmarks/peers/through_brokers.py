"""Kafka's clients at one of tidelog's brokers and at Kafka: the same programs, of which only the address differs."""

from collections.abc import Iterator
from contextlib import contextmanager

import brokers
from bench import Bench
from peer import KAFKA, TIDELOG, Peer

import tidelog


@contextmanager
def both(bench: Bench, lake: str = "lake", **settings: object) -> Iterator[dict[str, Peer]]:
    """A broker over a lake of the case, and Kafka; `settings` are of the former."""
    folder = bench.work / lake
    tidelog.Lake(str(folder)).close()
    with brokers.running(folder, **settings) as (broker,):
        yield {TIDELOG: Peer(KAFKA, broker.address), KAFKA: Peer(KAFKA, bench.kafka)}
