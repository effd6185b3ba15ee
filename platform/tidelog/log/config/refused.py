"""Kafka's configuration keys that mean nothing in a lake, with the reason that an error gives.

They are refused, not ignored: a key that does nothing hides from its owner that it does nothing. Those of
brokers, which a lake refuses, too, are in `kafka_brokers`.
"""

from typing import Final

_NO_REPLICAS = "a lake has no replicas and no leaders of its own; what acks=all promises is what its storage keeps"
_NO_TIERS = "a lake has one tier; to keep topics on an object store, put the lake there"
_SYNCED = "no flush is left to a timer: every log entry is synced before it counts, and acks=all syncs its segments too"
_WHOLE_FILES = "segments are Parquet files that are written whole and hold their own index"
_ONE_FORMAT = "there is one record format"

# topic key -> why it is refused
REFUSED_FOR_TOPICS: Final = {
    "flush.messages": _SYNCED,
    "flush.ms": _SYNCED,
    "follower.replication.throttled.replicas": _NO_REPLICAS,
    "index.interval.bytes": _WHOLE_FILES,
    "internal.segment.bytes": "segment.bytes itself may be small here",
    "leader.replication.throttled.replicas": _NO_REPLICAS,
    "local.retention.bytes": _NO_TIERS,
    "local.retention.ms": _NO_TIERS,
    "message.downconversion.enable": _ONE_FORMAT,
    "message.format.version": _ONE_FORMAT,
    "message.timestamp.difference.max.ms": "Kafka 4 dropped it for message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms: set those",
    "preallocate": _WHOLE_FILES,
    "remote.copy.lag.bytes": _NO_TIERS,
    "remote.copy.lag.ms": _NO_TIERS,
    "remote.log.copy.disable": _NO_TIERS,
    "remote.log.delete.on.disable": _NO_TIERS,
    "remote.storage.enable": _NO_TIERS,
    "segment.index.bytes": _WHOLE_FILES,
    "segment.jitter.ms": "no segment is rolled by a timer: each append writes its own, and merging is a job",
    "unclean.leader.election.enable": _NO_REPLICAS,
}
