"""What a worker is configured with: Connect's keys of `connect-distributed.properties`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.validators import between, one_of
from tidelog.connect.config.values import ConfigKind, ConnectConfigError
from tidelog.operations.connectors import CONFIGS, STATUSES

_LOW = Importance.LOW
# How many Spark applications a worker runs at most; further ones wait.
SPARK_LIMIT = "spark.applications.max"
SPARK_LIMIT_DEFAULT = 2
WORKER_KEYS = (
    ConfigDef()
    .define("group.id", ConfigKind.STRING, "connect-cluster", Importance.HIGH, "Which workers share connectors.")
    .define("config.storage.topic", ConfigKind.STRING, CONFIGS, _LOW, "The topic of configurations.")
    .define("offset.storage.topic", ConfigKind.STRING, "connect-offsets", _LOW, "The topic of source offsets.")
    .define("offset.storage.partitions", ConfigKind.INT, 1, _LOW,
            "Its partitions: a flush writes a file to each that it has offsets for.", validator=between(1))
    .define("status.storage.topic", ConfigKind.STRING, STATUSES, _LOW, "The topic of statuses.")
    .define("status.storage.partitions", ConfigKind.INT, 5, _LOW, "Its partitions.", validator=between(1))
    .define("exactly.once.source.support", ConfigKind.STRING, "enabled", _LOW,
            "Whether a source's records and offsets are one transaction.", validator=one_of("enabled", "disabled"))
    .define("offset.flush.interval.ms", ConfigKind.LONG, 10_000, _LOW, "How often sinks commit, in ms.",
            validator=between(1))
    .define("topic.creation.enable", ConfigKind.BOOLEAN, True, _LOW, "Whether sources may make topics.")
    .define("topic.tracking.enable", ConfigKind.BOOLEAN, True, _LOW, "Whether their topics are noted (KIP-558).")
    .define("topic.tracking.allow.reset", ConfigKind.BOOLEAN, True, _LOW, "Whether a request may forget them.")
    .define("session.timeout.ms", ConfigKind.INT, 6_000, _LOW,
            "A worker that was not heard of for so long is dead, in ms.", validator=between(100))
    .define("heartbeat.interval.ms", ConfigKind.INT, 1_500, _LOW, "How often workers are heard of.",
            validator=between(10))
    .define("rebalance.timeout.ms", ConfigKind.INT, 60_000, _LOW, "How long a worker may take to stop what moves.",
            validator=between(100))
    .define(SPARK_LIMIT, ConfigKind.INT, SPARK_LIMIT_DEFAULT, Importance.MEDIUM,
            "How many Spark applications the worker runs at most; further ones wait.", validator=between(1))
    .define("task.shutdown.graceful.timeout.ms", ConfigKind.LONG, 5_000, _LOW, "How long a task may take to stop.",
            validator=between(0))
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's configuration; times in seconds. `properties`: as given, for converters."""

    group_id: str = "connect-cluster"
    config_topic: str = CONFIGS
    offset_topic: str = "connect-offsets"
    offset_partitions: int = 1
    status_topic: str = STATUSES
    status_partitions: int = 5
    exactly_once: bool = True
    flush_interval_s: float = 10.0
    creates_topics: bool = True
    tracks_topics: bool = True
    resets_topics: bool = True
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 1_500
    rebalance_timeout_ms: int = 60_000
    graceful_s: float = 5.0
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "WorkerSettings":
        """The settings of given keys. Raises `ConnectConfigError`."""
        found = WORKER_KEYS.parse(given)
        if 2 * found["heartbeat.interval.ms"] > found["session.timeout.ms"]:
            raise ConnectConfigError(
                "Invalid value for configuration heartbeat.interval.ms: a worker gives two heartbeats in a session."
                " Give a third of session.timeout.ms or less."
            )
        return cls(
            group_id=found["group.id"],
            config_topic=found["config.storage.topic"],
            offset_topic=found["offset.storage.topic"],
            offset_partitions=found["offset.storage.partitions"],
            status_topic=found["status.storage.topic"],
            status_partitions=found["status.storage.partitions"],
            exactly_once=found["exactly.once.source.support"] == "enabled",
            flush_interval_s=found["offset.flush.interval.ms"] / 1000,
            creates_topics=found["topic.creation.enable"],
            tracks_topics=found["topic.tracking.enable"],
            resets_topics=found["topic.tracking.allow.reset"],
            session_timeout_ms=found["session.timeout.ms"],
            heartbeat_interval_ms=found["heartbeat.interval.ms"],
            rebalance_timeout_ms=found["rebalance.timeout.ms"],
            graceful_s=found["task.shutdown.graceful.timeout.ms"] / 1000,
            properties=dict(given),
        )

    def transactional_id(self, connector: str, task: int) -> str:
        """Of a source's task, as Connect has it (KIP-618)."""
        return f"{self.group_id}-{connector}-{task}"

    @staticmethod
    def consumer_group(connector: str) -> str:
        """Of a sink's tasks."""
        return f"connect-{connector}"
