"""Kafka's clients produce: to one of tidelog's brokers, and to Kafka."""

import time
from functools import partial
from itertools import count

import java_tools
from bench import Bench
from brokers import VALUE_BYTES, lettered_records
from measures import Measure
from peer import Peer, flushed
from through_brokers import both

TITLE = "Kafka's clients produce"
CASE = "broker produce"
_PARTITIONS = 8
_CODECS = ("none", "zstd")
_numbers = count()


def run(bench: Bench) -> list[Measure]:
    """Records of 100 random letters to 8 partitions, acks=all, idempotent; the flush is in the time.

    tidelog has fsynced what it acknowledges; Kafka has not.
    """
    records = 200_000 if bench.quick else 1_000_000
    values, keys = lettered_records(records)
    with both(bench) as peers:
        arms = {}
        for codec in _CODECS:
            for system, peer in peers.items():
                arms[f"{system} {codec}"] = partial(_produced, peer, values, keys, codec)
                arms[f"{system} Java {codec}"] = partial(_by_java, bench, peer, records, codec)
        rates = bench.interleaved(arms)
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]


def _produced(peer: Peer, values: list[bytes], keys: list[bytes], codec: str) -> float:
    """Records a second of confluent-kafka. Connecting is not timed."""
    topic = _new_topic(peer)
    producer = peer.producer(compression_type=codec)
    producer.produce(topic, b"first")
    flushed(producer)
    produce = producer.produce
    began = time.perf_counter()
    for value, key in zip(values, keys, strict=True):
        produce(topic, value, key)
    flushed(producer)
    took = time.perf_counter() - began
    peer.delete_topic(topic)
    return len(values) / took


def _by_java(bench: Bench, peer: Peer, records: int, codec: str) -> float:
    topic = _new_topic(peer)
    rate = java_tools.produced(peer.address, topic, records, VALUE_BYTES, codec, bench.work / "java")
    peer.delete_topic(topic)
    return rate


def _new_topic(peer: Peer) -> str:
    topic = f"produce-{next(_numbers)}"
    peer.create_topic(topic, _PARTITIONS)
    return topic
