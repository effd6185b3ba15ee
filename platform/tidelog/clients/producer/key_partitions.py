"""The partition of one key by librdkafka's rules: `murmur2`, `consistent` and `fnv1a`, as confluent-kafka has them."""

import pyarrow as pa

from tidelog.clients.producer.partitioning import rule_of
from tidelog.log.records.partitioners import assign

__all__ = ["consistent", "fnv1a", "murmur2"]


def murmur2(key: bytes, partition_count: int) -> int:
    """Partition among `partition_count` by Murmur2, the Java client's rule: `murmur2(b"abc", 10)` is 7.

    Raises TypeError for a key that is no bytes, ValueError for less than 1 partition. So do the others here.
    """
    return _partition("murmur2", key, partition_count)


def consistent(key: bytes, partition_count: int) -> int:
    """Partition among `partition_count` by CRC-32, librdkafka's own rule: `consistent(b"abc", 10)` is 8."""
    return _partition("consistent", key, partition_count)


def fnv1a(key: bytes, partition_count: int) -> int:
    """Partition among `partition_count` by FNV-1a, Sarama's rule: `fnv1a(b"abc", 10)` is 1."""
    return _partition("fnv1a", key, partition_count)


def _partition(rule: str, key: bytes, partition_count: int) -> int:
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes, not {type(key).__name__}")
    if partition_count < 1:
        raise ValueError(f"partition_count must be above 0, not {partition_count}")
    return int(assign(pa.array([key]), None, partition_count, partitioner=rule_of(rule), sticky=0)[0])
