"""The configuration of a consumer."""

# ruff: noqa: RUF009 - `key` makes a dataclass field

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.clients.settings.common import RecordClientSettings
from tidelog.clients.settings.rules import consumer_rules
from tidelog.clients.settings.value_types import LIBRDKAFKA_FLAG, Callback
from tidelog.groups.assignors.assign import ASSIGNORS
from tidelog.groups.assignors.server_side import SERVER_ASSIGNORS
from tidelog.groups.rules.members import MAX_GROUP_ID
from tidelog.log.base.keys import key
from tidelog.log.base.typed_values import MAX_INT, Choice, NameList, Text, Whole, names


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(RecordClientSettings, client="a consumer"):
    """What a Consumer takes. Values that others decide are settled: see `consumer_rules`."""

    group_id: str = key(
        "group.id", "", Text(1, MAX_GROUP_ID), "The consumer group. Every consumer names one.", unset="none"
    )
    group_instance_id: str | None = key(
        "group.instance.id",
        None,
        Text(1, MAX_GROUP_ID),
        "Name of a static member, which may leave and come back within the session timeout without a rebalance.",
    )
    assignment_strategy: tuple[str, ...] = key(
        "partition.assignment.strategy",
        ("range", "roundrobin"),
        NameList(ASSIGNORS, in_order=True),
        "How the group shares out partitions: the first that all members list. Strategies that revoke everything and "
        "cooperative-sticky don't mix.",
    )
    group_protocol: str = key(
        "group.protocol",
        "classic",
        names("classic", "consumer", any_case=True),
        "How the group finds its assignment: its members share out the partitions in rounds, or each takes part by"
        " itself (KIP-848).",
    )
    group_remote_assignor: str | None = key(
        "group.remote.assignor",
        None,
        names(*SERVER_ASSIGNORS),
        "The assignor that the member asks for, with `group.protocol=consumer`.",
        unset="uniform, unless other members ask for another",
    )
    session_timeout_ms: int = key(
        "session.timeout.ms", 45_000, Whole(1, 3_600_000), "A member without a heartbeat for that long is removed."
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms",
        3_000,
        Whole(1, 3_600_000),
        "Time between two heartbeats.",
        unset="3000, or a third of a shorter session timeout",
    )
    max_poll_interval_ms: int = key(
        "max.poll.interval.ms", 300_000, Whole(1, 86_400_000), "A member that does not poll for that long leaves."
    )
    max_poll_records: int | None = key(
        "max.poll.records",
        None,
        Whole(1, MAX_INT),
        "The Java client's: the most records that one call of `consume` returns, whatever it asks for.",
        unset="no limit",
    )
    enable_auto_commit: bool = key(
        "enable.auto.commit", True, LIBRDKAFKA_FLAG, "Commit stored offsets in the background.", "auto.commit.enable"
    )
    auto_commit_interval_ms: int = key("auto.commit.interval.ms", 5_000, Whole(0, 86_400_000), "How often; 0: never.")
    enable_auto_offset_store: bool = key(
        "enable.auto.offset.store",
        True,
        LIBRDKAFKA_FLAG,
        "Store the offset after each record that a call returns, to be committed.",
    )
    offset_store_method: str = key(
        "offset.store.method",
        "broker",
        Choice({"broker": "broker"}, any_case=True, others="offsets are kept by the group; give broker"),
        "Where committed offsets are kept.",
    )
    auto_offset_reset: str = key(
        "auto.offset.reset",
        "latest",
        Choice(
            dict.fromkeys(("earliest", "smallest", "beginning"), "earliest")
            | dict.fromkeys(("latest", "largest", "end"), "latest")
            | dict.fromkeys(("error", "none"), "error"),
            any_case=True,
        ),
        "Where to start without a committed offset, or with one out of range; error and none: say so.",
    )
    isolation_level: str = key(
        "isolation.level",
        "read_committed",
        names("read_uncommitted", "read_committed", any_case=True),
        "Both read the same: readers never see records of an open transaction.",
    )
    fetch_min_bytes: int = key(
        "fetch.min.bytes", 1, Whole(1, 100_000_000), "Bytes that a read waits for, `fetch.wait.max.ms` at most."
    )
    fetch_wait_max_ms: int = key(
        "fetch.wait.max.ms", 500, Whole(0, 300_000), "How long a read waits for `fetch.min.bytes`.", "fetch.max.wait.ms"
    )
    fetch_max_bytes: int = key(
        "fetch.max.bytes",
        52_428_800,
        Whole(0, 2_147_483_135),
        "Bytes that one read takes at most, over all partitions.",
    )
    max_partition_fetch_bytes: int = key(
        "max.partition.fetch.bytes",
        1_048_576,
        Whole(1, 1_000_000_000),
        "Bytes that one read takes of a partition at most; a larger record is still read.",
        "fetch.message.max.bytes",
    )
    fetch_error_backoff_ms: int = key(
        "fetch.error.backoff.ms", 500, Whole(0, 300_000), "Pause before a partition whose read failed is read again."
    )
    queued_min_messages: int = key(
        "queued.min.messages", 100_000, Whole(1, 10_000_000), "Records of a partition that are read ahead."
    )
    queued_max_messages_kbytes: int = key(
        "queued.max.messages.kbytes", 65_536, Whole(1, 2_097_151), "Kilobytes that are read ahead at most."
    )
    topic_metadata_refresh_interval_ms: int = key(
        "topic.metadata.refresh.interval.ms",
        300_000,
        Whole(-1, 3_600_000),
        "How often subscribers look for new partitions, and for new topics of a pattern; -1: never.",
    )
    allow_auto_create_topics: bool = key(
        "allow.auto.create.topics",
        False,
        LIBRDKAFKA_FLAG,
        "Whether subscribing to a topic that is not there may create it; the lake's `auto.create.topics.enable` holds "
        "besides.",
    )
    enable_partition_eof: bool = key(
        "enable.partition.eof",
        False,
        LIBRDKAFKA_FLAG,
        "Tell with a `_PARTITION_EOF` event when a partition's end is reached.",
    )
    on_commit: Callable[[Any, Any], Any] | None = key(
        "on_commit",
        None,
        Callback("on_commit(KafkaError or None, list of TopicPartition)"),
        "Called from `poll` and `consume` after offsets were committed, or were not.",
    )

    @classmethod
    def _ruled(cls, values: dict[str, Any]) -> dict[str, Any]:
        return consumer_rules(values)
