"""A Python producer, record by record and by Arrow tables."""

import shutil
import time
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
from bench import Bench
from measures import Measure
from peer import KAFKA, TIDELOG, Peer, both, flushed
from produce import keyed_records

TITLE = "Python produce"
CASE = "python produce"
_PARTITIONS = 8
_TABLES = 4
_numbers = count()


def run(bench: Bench) -> list[Measure]:
    """Records of 100 B with keys to 8 partitions, acks=all, idempotent, not compressed; the flush is in the time."""
    records = 200_000 if bench.quick else 1_000_000
    values, keys = keyed_records(records)
    # A table is produced so fast that one of as many records would time the start of it.
    table = pa.concat_tables([pa.table({"value": pa.array(values), "key": pa.array(keys)})] * _TABLES)
    peers = both(bench)
    arms = {
        KAFKA: partial(_one_by_one, peers[KAFKA], values, keys),
        TIDELOG: partial(_one_by_one, peers[TIDELOG], values, keys),
        "tidelog produce_table": partial(_at_once, peers[TIDELOG], table),
    }
    rates = bench.interleaved(arms)
    return [Measure(CASE, system, "throughput", "records/s", "higher", found) for system, found in rates.items()]


def _one_by_one(peer: Peer, values: list[bytes], keys: list[bytes]) -> float:
    """Records a second."""
    topic, producer = _begun(peer)
    produce = producer.produce
    began = time.perf_counter()
    for value, key in zip(values, keys, strict=True):
        produce(topic, value, key)
    flushed(producer)
    took = time.perf_counter() - began
    _ended(peer, topic, producer)
    return len(values) / took


def _at_once(peer: Peer, table: pa.Table) -> float:
    """Records a second."""
    topic, producer = _begun(peer)
    began = time.perf_counter()
    future = producer.produce_table(topic, table)
    flushed(producer)
    took = time.perf_counter() - began
    if sum(end - first for first, end in future.result().values()) != table.num_rows:
        raise RuntimeError("not all records were delivered")
    _ended(peer, topic, producer)
    return table.num_rows / took


def _begun(peer: Peer) -> tuple[str, Any]:
    """A new topic, and a producer that has delivered a record to it: connecting is not timed."""
    topic = f"produce-{next(_numbers)}"
    peer.create_topic(topic, _PARTITIONS)
    producer = peer.producer()
    producer.produce(topic, b"first")
    flushed(producer)
    return topic, producer


def _ended(peer: Peer, topic: str, producer: Any) -> None:
    producer.close()
    peer.delete_topic(topic)
    if not peer.is_kafka:
        shutil.rmtree(peer.address)
