"""What a record takes on disk."""

import math
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench import Bench
from deltalake import write_deltalake
from measures import Measure
from peer import DELTA, KAFKA, TIDELOG, Peer, both, flushed
from produce import keyed_records

import tidelog
from tidelog.cli.demo.flights import as_records, load_flights
from tidelog.cli.demo.lake import PARTITIONS
from tidelog.retention.maintenance import maintain

TITLE = "Bytes on disk per record"
_PARTITIONS = PARTITIONS["flights"]
# Flights are of 2013: records of that age would be deleted at once.
_KEPT = {"retention.ms": "-1"}
_LINGER_MS = 1_000


@dataclass(frozen=True)
class _Records:
    values: Sequence[bytes]
    keys: Sequence[bytes]
    times_ms: Sequence[int]


def run(bench: Bench) -> list[Measure]:
    """Values of 100 random bytes, and a year of flights as JSON; zstd at each system's own level.

    Both producers with their defaults (linger.ms=5), and Kafka's with linger.ms=1000 as well, which fills its batches.
    Everything in the topic's folders counts, indexes and logs too.
    """
    count = 100_000 if bench.quick else 1_000_000
    values, keys = keyed_records(count)
    return [
        *_measured(bench, "bytes on disk, random", "random", _Records(values, keys, range(count))),
        *_measured(bench, "bytes on disk, flights", "flights", _flights(100_000 if bench.quick else None)),
    ]


def _flights(most: int | None) -> _Records:
    flights = load_flights()
    year = pa.concat_tables([flights.year, flights.last_day])
    records = as_records(year if most is None else year.slice(0, most))
    return _Records(
        records["value"].to_pylist(),
        [key.encode() for key in records["key"].to_pylist()],
        records["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist(),
    )


def _measured(bench: Bench, case: str, topic: str, records: _Records) -> list[Measure]:
    peers = both(bench)
    sizes = {
        KAFKA: _in_kafka(bench, peers[KAFKA], f"{topic}-default", records),
        f"kafka linger.ms={_LINGER_MS}": _in_kafka(bench, peers[KAFKA], f"{topic}-linger", records, _LINGER_MS),
    }
    _produce(peers[TIDELOG], topic, records)
    with tidelog.Lake(peers[TIDELOG].address, create=False) as lake:
        sizes[TIDELOG] = _of_topic(lake, topic)
        maintain(lake, only=("merge",), topics=[topic])
        sizes["tidelog merged"] = _of_topic(lake, topic)
    shutil.rmtree(peers[TIDELOG].address)
    sizes[DELTA] = _in_delta(bench.work / f"{topic}-delta", records)
    each = len(records.values)
    return [
        Measure(case, system, "bytes per record", "B", "lower", [round(size / each, 3)])
        for system, size in sizes.items()
    ]


def _produce(peer: Peer, topic: str, records: _Records, **conf: Any) -> None:
    peer.create_topic(topic, _PARTITIONS, _KEPT)
    producer = peer.producer(compression_type="zstd", **conf)
    for value, key, time_ms in zip(records.values, records.keys, records.times_ms, strict=True):
        producer.produce(topic, value, key, timestamp=time_ms)
    flushed(producer)
    producer.close()


def _in_kafka(bench: Bench, peer: Peer, topic: str, records: _Records, linger_ms: float = math.nan) -> int:
    _produce(peer, topic, records, **({} if math.isnan(linger_ms) else {"linger_ms": linger_ms}))
    size = _used(path for folder in bench.kafka_logs.glob(f"{topic}-[0-9]*") for path in folder.iterdir())
    peer.delete_topic(topic)
    return size


def _of_topic(lake: tidelog.Lake, topic: str) -> int:
    """Its live segments, and its log: what a merge has replaced is deleted later."""
    state = lake.topic(topic).state()
    segments = sum(segment.size for p in range(state.partitions) for segment in state.live(p))
    return segments + _used((Path(lake.uri.removeprefix("file://")) / topic / "_delta_log").iterdir())


def _in_delta(folder: Path, records: _Records) -> int:
    """Written by deltalake in one go, with its defaults (Snappy)."""
    times = pa.array(records.times_ms, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    write_deltalake(folder, pa.table({"key": records.keys, "value": records.values, "timestamp": times}))
    size = _used(path for path in folder.rglob("*") if path.is_file())
    shutil.rmtree(folder)
    return size


def _used(files: Iterable[Path]) -> int:
    """Bytes of files; of those with holes, such as Kafka's indexes, what is really there."""
    found = [path.stat() for path in files]
    return sum(min(one.st_size, 512 * one.st_blocks) for one in found)
