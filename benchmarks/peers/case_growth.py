"""How an append, a fetch and an opening grow with a topic's records, partitions and segments."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from bench import Bench
from confluent_kafka import KafkaException
from lakes import topic_of_many_files
from measures import Measure
from opening import appends_ms, fetches_ms, opened_ms
from peer import Peer, both, fill, flushed
from produce import keyed_records

import tidelog

TITLE = "Growth with records, partitions and segments"
CASE = "growth"
_RECORDS = (10_000, 100_000, 1_000_000, 10_000_000)
_PARTITIONS = (1, 10, 100, 1_000, 10_000)
_SEGMENTS = (100, 1_000, 10_000, 100_000)
_QUICK = 1_000_000, 1_000, 10_000
# A broker maps two indexes a segment into memory, and Linux lets a process have 65,530 mappings.
_MOST_KAFKA_SEGMENTS = 10_000
_ROUNDS = 3
_APPENDS = 60
_FETCHES = 20
_FILLED = 1_000_000


def run(bench: Bench) -> list[Measure]:
    """Three rounds at each size: records of 100 B, acks=all."""
    values, keys = keyed_records(_FILLED)
    most_records, most_partitions, most_segments = _QUICK if bench.quick else (10**9, 10**9, 10**9)
    found: list[Measure] = []
    for peer in both(bench).values():
        found += _by_records(peer, [n for n in _RECORDS if n <= most_records], values, keys)
        found += _by_partitions(peer, [n for n in _PARTITIONS if n <= most_partitions], values, keys)
        most = min(most_segments, _MOST_KAFKA_SEGMENTS) if peer.is_kafka else most_segments
        found += _by_segments(peer, [n for n in _SEGMENTS if n <= most], values)
    return found


def _by_records(peer: Peer, sizes: list[int], values: list[bytes], keys: list[bytes]) -> Iterator[Measure]:
    with _topic(peer, "grown", 1) as topic:
        there = 0
        for size in sizes:
            while there < size:
                more = min(size - there, len(values))
                _add(peer, topic, values[:more], keys[:more])
                there += more
            yield from _measures(peer, topic, 0, values, size, "records")


def _by_partitions(peer: Peer, sizes: list[int], values: list[bytes], keys: list[bytes]) -> Iterator[Measure]:
    for size in sizes:
        try:
            with _topic(peer, f"wide-{size}", size) as topic:
                _add(peer, topic, values[:1_000], keys[:1_000])
                yield from _measures(peer, topic, size // 2, values, size, "partitions")
        except KafkaException as e:
            print(f"{peer.system}, {size} partitions: {e}")
            return


def _by_segments(peer: Peer, sizes: list[int], values: list[bytes]) -> Iterator[Measure]:
    for size in sizes:
        name = f"cut-{size}"
        if peer.is_kafka:
            # The first record of a batch that is a second later begins a segment.
            with _topic(peer, name, 1, {"segment.ms": "1000", "retention.ms": "-1"}) as topic:
                _cut(peer, topic, values, size)
                yield from _measures(peer, topic, 0, values, size, "segments")
        else:
            with tidelog.Lake(peer.address) as lake:
                topic_of_many_files(lake, name, size)
            yield from _measures(peer, name, 0, values, size, "segments")


@contextmanager
def _topic(peer: Peer, name: str, partitions: int, config: dict[str, str] | None = None) -> Iterator[str]:
    peer.create_topic(name, partitions, config)
    try:
        yield name
    finally:
        peer.delete_topic(name)


def _add(peer: Peer, topic: str, values: list[bytes], keys: list[bytes]) -> None:
    if peer.is_kafka:
        fill(peer, topic, values, keys)
        return
    with tidelog.Lake(peer.address, create=False) as lake:
        lake.topic(topic).append(pa.table({"key": keys, "value": values}))


def _cut(peer: Peer, topic: str, values: list[bytes], segments: int) -> None:
    first_ms = int(time.time() * 1000) - 2_000 * segments
    producer = peer.producer(batch_num_messages=1, linger_ms=0)
    for number in range(segments):
        producer.produce(topic, values[number], partition=0, timestamp=first_ms + 2_000 * number)
    flushed(producer)
    producer.close()


def _measures(peer: Peer, topic: str, partition: int, values: list[bytes], size: int, axis: str) -> Iterator[Measure]:
    measured: dict[str, Callable[[], float]] = {
        "append p50": lambda: appends_ms(peer, topic, partition, values[:_APPENDS]),
        "fetch p50": lambda: fetches_ms(peer, topic, partition, _FETCHES),
        "open": lambda: opened_ms(peer, topic, partition),
    }
    rounds: dict[str, list[float]] = {metric: [] for metric in measured}
    for _ in range(_ROUNDS):
        for metric, look in measured.items():
            rounds[metric].append(look())
    for metric, found in rounds.items():
        yield Measure(f"{CASE} of {axis}", peer.system, metric, "ms", "lower", found, float(size), axis)
