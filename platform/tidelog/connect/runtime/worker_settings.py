"""What a worker is configured with: Connect's keys of `connect-distributed.properties`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.connect.config.values import WORDS, ConnectConfigError
from tidelog.log.base.keys import KeyTable, fields_of, key, names_of
from tidelog.log.base.typed_values import Choice, Flag, Text, Whole
from tidelog.operations.connectors import CONFIGS, STATUSES

SPARK_LIMIT: Final = "spark.applications.max"
_COUNT: Final = Whole(1, bits=32)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """A worker's configuration; times in seconds. `properties`: as given, for converters."""

    group_id: str = key("group.id", "connect-cluster", Text(), "Which workers share connectors.")
    config_topic: str = key("config.storage.topic", CONFIGS, Text(), "The topic of configurations.")
    offset_topic: str = key("offset.storage.topic", "connect-offsets", Text(), "The topic of source offsets.")
    offset_partitions: int = key(
        "offset.storage.partitions", 1, _COUNT, "Its partitions: a flush writes a file to each that it has offsets for."
    )
    status_topic: str = key("status.storage.topic", STATUSES, Text(), "The topic of statuses.")
    status_partitions: int = key("status.storage.partitions", 5, _COUNT, "Its partitions.")
    exactly_once: bool = key(
        "exactly.once.source.support",
        True,
        Choice({"enabled": True, "disabled": False}),
        "Whether a source's records and offsets are one transaction.",
    )
    flush_interval_s: float = key(
        "offset.flush.interval.ms", 10_000, Whole(1, bits=64), "How often sinks commit, in ms.", per=1000
    )
    creates_topics: bool = key("topic.creation.enable", True, Flag(), "Whether sources may make topics.")
    tracks_topics: bool = key("topic.tracking.enable", True, Flag(), "Whether their topics are noted (KIP-558).")
    resets_topics: bool = key("topic.tracking.allow.reset", True, Flag(), "Whether a request may forget them.")
    session_timeout_ms: int = key(
        "session.timeout.ms", 6_000, Whole(100, bits=32), "A worker that was not heard of for so long is dead, in ms."
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms", 1_500, Whole(10, bits=32), "How often workers are heard of, in ms."
    )
    rebalance_timeout_ms: int = key(
        "rebalance.timeout.ms", 60_000, Whole(100, bits=32), "How long a worker may take to stop what moves, in ms."
    )
    spark_limit: int = key(
        SPARK_LIMIT, 2, _COUNT, "How many Spark applications the worker runs at most; further ones wait."
    )
    graceful_s: float = key(
        "task.shutdown.graceful.timeout.ms",
        5_000,
        Whole(0, bits=64),
        "How long a task may take to stop, in ms.",
        per=1000,
    )
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "WorkerSettings":
        """The settings of given keys; others are a connector's or a listener's. Raises `ConnectConfigError`."""
        values = KeyTable(names_of(cls), WORDS).read_known(given)
        settings = cls(**fields_of(cls, values), properties=dict(given))
        if 2 * settings.heartbeat_interval_ms > settings.session_timeout_ms:
            raise ConnectConfigError(
                "Invalid value for configuration heartbeat.interval.ms: a worker gives two heartbeats in a session."
                " Give a third of session.timeout.ms or less."
            )
        return settings

    def transactional_id(self, connector: str, task: int) -> str:
        """Of a source's task, as Connect has it (KIP-618)."""
        return f"{self.group_id}-{connector}-{task}"

    @staticmethod
    def consumer_group(connector: str) -> str:
        """Of a sink's tasks."""
        return f"connect-{connector}"
