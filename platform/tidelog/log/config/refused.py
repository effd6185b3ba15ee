"""Kafka's configuration keys that mean nothing in a lake, with the reason that an error gives.

They are refused, not ignored: a key that does nothing hides from its owner that it does nothing.
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

_IN_MS = "a lake has one name for each default; set {0}"

# lake key (a broker's, in Kafka) -> why it is refused
REFUSED_FOR_LAKES: Final = {
    "advertised.listeners": "clients connect to no listener: they share only the storage",
    "default.replication.factor": _NO_REPLICAS,
    "listeners": "clients connect to no listener: they share only the storage",
    "log.cleaner.enable": "compaction is a job that runs when it is submitted",
    "log.dir": "the lake's address is its folder",
    "log.dirs": "the lake's address is its folder",
    "log.flush.interval.messages": _SYNCED,
    "log.flush.interval.ms": _SYNCED,
    "log.flush.scheduler.interval.ms": _SYNCED,
    "log.index.interval.bytes": _WHOLE_FILES,
    "log.index.size.max.bytes": _WHOLE_FILES,
    "log.message.downconversion.enable": _ONE_FORMAT,
    "log.message.format.version": _ONE_FORMAT,
    "log.message.timestamp.difference.max.ms": "Kafka 4 dropped it for log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms: set those",
    "log.preallocate": _WHOLE_FILES,
    "log.retention.check.interval.ms": "retention is a job: its schedule says how often it looks",
    "log.retention.hours": _IN_MS.format("log.retention.ms"),
    "log.retention.minutes": _IN_MS.format("log.retention.ms"),
    "log.roll.hours": _IN_MS.format("log.roll.ms"),
    "log.roll.jitter.hours": "no segment is rolled by a timer: each append writes its own, and merging is a job",
    "log.roll.jitter.ms": "no segment is rolled by a timer: each append writes its own, and merging is a job",
    "offsets.topic.replication.factor": _NO_REPLICAS,
    "unclean.leader.election.enable": _NO_REPLICAS,
}
