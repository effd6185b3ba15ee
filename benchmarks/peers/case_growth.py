"""How an append, a fetch and an opening grow with a topic's records, partitions and segments."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from bench import Bench
from confluent_kafka import KafkaException
from lakes import topic_of_many_files
from leaders import NoLeaderError
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
_APPENDS = 40
_FETCHES = 20
_FILLED = 1_000_000
# Segments of a broker that are begun between two looks at the clock.
_CUT_AT_ONCE = 200


@dataclass(frozen=True)
class _Growing:
    """One system on its way up. At `until_s` it goes no further: what it has by then are its figures."""

    peer: Peer
    values: list[bytes]
    keys: list[bytes]
    until_s: float

    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.until_s


def run(bench: Bench) -> list[Measure]:
    """Three rounds at each size: records of 100 B, acks=all. A limited time for each system and each axis."""
    values, keys = keyed_records(_FILLED)
    most_records, most_partitions, most_segments = _QUICK if bench.quick else (10**9, 10**9, 10**9)
    limit_s = 10.0 if bench.quick else 20.0
    found: list[Measure] = []
    for peer in both(bench).values():
        most_cut = min(most_segments, _MOST_KAFKA_SEGMENTS) if peer.is_kafka else most_segments
        for axis, sizes, most, ways in (
            ("records", _RECORDS, most_records, _by_records),
            ("partitions", _PARTITIONS, most_partitions, _by_partitions),
            ("segments", _SEGMENTS, most_cut, _cut_by_broker if peer.is_kafka else _by_segments),
        ):
            growing = _Growing(peer, values, keys, time.monotonic() + limit_s)
            found += _grown(growing, axis, [size for size in sizes if size <= most], ways)
    return found


_Way = Callable[[_Growing, list[int]], Iterator[tuple[str, int]]]


def _grown(growing: _Growing, axis: str, sizes: list[int], way: _Way) -> Iterator[Measure]:
    """Measures at each size, as far as the time goes. A way yields (topic, partition) when it has a size."""
    began = time.monotonic()
    reached = 0
    try:
        for size, (topic, partition) in zip(sizes, way(growing, sizes), strict=False):
            yield from _measures(growing, topic, partition, size, axis)
            reached = size
            print(f"{growing.peer.system}: {size:,} {axis}, {time.monotonic() - began:.1f} s", flush=True)
    except (KafkaException, NoLeaderError) as e:
        print(f"{growing.peer.system}: {e}", flush=True)
    if reached < sizes[-1]:
        print(f"{growing.peer.system}: no more than {reached:,} {axis}: its time was over", flush=True)


def _by_records(growing: _Growing, sizes: list[int]) -> Iterator[tuple[str, int]]:
    with _topic(growing.peer, "grown", 1) as topic:
        there = 0
        for size in sizes:
            while there < size:
                if growing.late():
                    return
                more = min(size - there, _FILLED)
                _add(growing, topic, more)
                there += more
            yield topic, 0


def _by_partitions(growing: _Growing, sizes: list[int]) -> Iterator[tuple[str, int]]:
    for size in sizes:
        if growing.late():
            return
        with _topic(growing.peer, f"wide-{size}", size) as topic:
            _add(growing, topic, max(1_000, size))
            yield topic, size // 2


def _by_segments(growing: _Growing, sizes: list[int]) -> Iterator[tuple[str, int]]:
    for size in sizes:
        if growing.late():
            return
        name = f"cut-{size}"
        with tidelog.Lake(growing.peer.address) as lake:
            topic_of_many_files(lake, name, size)
        yield name, 0


def _cut_by_broker(growing: _Growing, sizes: list[int]) -> Iterator[tuple[str, int]]:
    """One topic: a batch whose records are a second later than the segment's first begins another segment."""
    with _topic(growing.peer, "cut", 1, {"segment.ms": "1000"}) as topic:
        producer = growing.peer.producer(batch_num_messages=1, linger_ms=0)
        first_ms = int(time.time() * 1000) - 2_000 * (sizes[-1] + 1)
        there = 0
        for size in sizes:
            while there < size:
                if growing.late():
                    return
                for number in range(there, min(size, there + _CUT_AT_ONCE)):
                    value = growing.values[number]
                    producer.produce(topic, value, partition=0, timestamp=first_ms + 2_000 * number)
                flushed(producer)
                there = min(size, there + _CUT_AT_ONCE)
            yield topic, 0
        producer.close()


@contextmanager
def _topic(peer: Peer, name: str, partitions: int, config: dict[str, str] | None = None) -> Iterator[str]:
    try:
        peer.create_topic(name, partitions, config)
    except NoLeaderError:
        peer.delete_topic(name)
        raise
    try:
        yield name
    finally:
        peer.delete_topic(name)


def _add(growing: _Growing, topic: str, records: int) -> None:
    values, keys = growing.values[:records], growing.keys[:records]
    if growing.peer.is_kafka:
        fill(growing.peer, topic, values, keys)
        return
    with tidelog.Lake(growing.peer.address, create=False) as lake:
        lake.topic(topic).append(pa.table({"key": keys, "value": values}))


def _measures(growing: _Growing, topic: str, partition: int, size: int, axis: str) -> Iterator[Measure]:
    peer = growing.peer
    measured: dict[str, Callable[[], float]] = {
        "append p50": lambda: appends_ms(peer, topic, partition, growing.values[:_APPENDS]),
        "fetch p50": lambda: fetches_ms(peer, topic, partition, _FETCHES),
        "open": lambda: opened_ms(peer, topic, partition),
    }
    rounds: dict[str, list[float]] = {metric: [] for metric in measured}
    for _ in range(_ROUNDS):
        for metric, look in measured.items():
            rounds[metric].append(look())
    for metric, found in rounds.items():
        yield Measure(f"{CASE} of {axis}", peer.system, metric, "ms", "lower", found, float(size), axis)
