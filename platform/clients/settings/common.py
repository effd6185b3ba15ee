"""What a client can be told: one frozen class of settings per kind of client, made from a dict by `parse`.

Keys, aliases, types, ranges and defaults are librdkafka's (CONFIGURATION.md of librdkafka 2.16), with Kafka 4's Java
names as further aliases; where a default differs, the field's text says so. A field holds its key's value in the
key's unit.
"""

# ruff: noqa: RUF009 - `key` makes a dataclass field

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, Union

from tidelog.clients.settings.ignored import NO_CREDENTIALS
from tidelog.clients.settings.parsing import key, parse_keys
from tidelog.clients.settings.rules import consumer_rules, producer_rules
from tidelog.clients.settings.statistics_keys import StatisticsKeys
from tidelog.clients.settings.transactions import TransactionKeys
from tidelog.clients.settings.value_types import (
    Address,
    Callback,
    Choice,
    Flag,
    Instance,
    Names,
    Number,
    Options,
    Text,
    Whole,
    words,
)
from tidelog.groups.assignors.assign import ASSIGNORS

if TYPE_CHECKING:
    from tidelog.log.lake import Lake

LAKE_VARIABLE: Final = "TIDELOG_LAKE"
MAX_INT: Final = (1 << 31) - 1
MAX_GROUP_ID: Final = 249

PARTITIONERS: Final = (
    "consistent_random",
    "consistent",
    "random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
    "murmur3",
    "round_robin",
)


@dataclass(frozen=True, kw_only=True)
class CommonSettings:
    """What every client takes. `ignored`: keys that were set and do nothing, with the reason of each."""

    PRODUCES: ClassVar[bool] = False

    lake: Union[str, "Lake", None] = key(
        "lake",
        None,
        Address(),
        "Where the lake is. An opened Lake stays its owner's: the client does not close it.",
        "bootstrap.servers",
        "metadata.broker.list",
        unset="the environment's `TIDELOG_LAKE`",
    )
    storage_options: Mapping[str, str] | None = key(
        "storage.options", None, Options(), "The store's options in a dict of their own, as `tidelog.Lake` takes them."
    )
    client_id: str = key(
        "client.id",
        "tidelog",
        Text(),
        "The client's name, shown by `tidelog group describe`. librdkafka's default: rdkafka.",
    )
    error_cb: Callable[[Any], Any] | None = key(
        "error_cb",
        None,
        Callback("error_cb(KafkaError)"),
        "Called from a consumer's `poll` and `consume` with errors of no partition; a producer's are in its reports.",
    )
    logger: logging.Logger | None = key(
        "logger",
        None,
        Instance("a `logging.Logger`", ("log", "warning", "isEnabledFor")),
        "Where the client logs to.",
        unset="`tidelog.clients`",
    )
    retry_backoff_ms: int = key(
        "retry.backoff.ms",
        100,
        Whole(1, 300_000),
        "Pause before a failed request to the storage is repeated; it doubles each time.",
    )
    retry_backoff_max_ms: int = key("retry.backoff.max.ms", 1_000, Whole(1, 300_000), "The longest such pause.")
    security_protocol: str = key(
        "security.protocol",
        "plaintext",
        Choice({"plaintext": "plaintext"}, NO_CREDENTIALS),
        "Kept for programs that set it.",
    )
    ignored: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, conf: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Self:
        """Return the settings that a dict makes; `environ` stands for the process's environment.

        Raises KafkaException (`_INVALID_ARG`) for a key that is unknown, refused or set twice, a value that its key
        does not take, keys that contradict one another, and where no lake is named.
        """
        others = {who: kind for who, kind in _KINDS.items() if not issubclass(cls, kind)}
        parsed = parse_keys(conf, cls, others)
        values = dict(parsed.values)
        address = (os.environ if environ is None else environ).get(LAKE_VARIABLE, "").strip()
        if address:
            values.setdefault("lake", address)
        return cls(**cls._ruled(values), ignored=parsed.ignored)

    @classmethod
    def _ruled(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Check rules between keys; return the values with what follows from them."""
        return values


@dataclass(frozen=True, kw_only=True)
class AdminSettings(CommonSettings):
    """What an AdminClient takes: `AdminSettings.parse({"lake": "/data/lake"})`."""


@dataclass(frozen=True, kw_only=True)
class ProducerSettings(TransactionKeys, StatisticsKeys, CommonSettings):
    """What a Producer takes. Values that others decide are settled: see `producer_rules`."""

    PRODUCES: ClassVar[bool] = True

    acks: int = key(
        "acks",
        -1,
        Choice({"all": -1, "-1": -1, "0": 0, "1": 1}),
        "When a record counts as delivered: 0 at once, 1 when it is committed, all when it is durable too.",
        "request.required.acks",
        unset="all",
    )
    enable_idempotence: bool = key(
        "enable.idempotence",
        True,
        Flag(),
        "No record twice and none out of order, whatever is repeated. librdkafka's default is false; as in Kafka's "
        "Java client it is true here, and yields when it is not set and `acks`, `retries` or `max.in.flight` rule it "
        "out.",
    )
    max_in_flight: int = key(
        "max.in.flight.requests.per.connection",
        1_000_000,
        Whole(1, 1_000_000),
        "How many requests may be on their way at once. A topic's entries follow one another, so any number is kept "
        "to; above 5 there is no idempotence.",
        "max.in.flight",
        unset="1000000; 5 with idempotence",
    )
    retries: int = key(
        "retries", MAX_INT, Whole(0, MAX_INT), "How often a failed commit is repeated.", "message.send.max.retries"
    )
    delivery_timeout_ms: int = key(
        "delivery.timeout.ms",
        300_000,
        Whole(0, MAX_INT),
        "How long a record may take from `produce` to its delivery report, repeats included; 0: no limit.",
        "message.timeout.ms",
    )
    linger_ms: float = key(
        "linger.ms",
        5.0,
        Number(0, 900_000),
        "How long records wait for others to share an entry.",
        "queue.buffering.max.ms",
    )
    batch_size: int = key(
        "batch.size", 1_000_000, Whole(1, MAX_INT), "Bytes of one partition's waiting records that end the wait."
    )
    batch_num_messages: int = key(
        "batch.num.messages", 10_000, Whole(1, 1_000_000), "Waiting records of one partition that end the wait."
    )
    queue_max_messages: int = key(
        "queue.buffering.max.messages",
        100_000,
        Whole(0, MAX_INT),
        "Records that may wait in the client; one more raises BufferError. 0: no limit.",
    )
    queue_max_kbytes: int = key(
        "queue.buffering.max.kbytes",
        1_048_576,
        Whole(1, MAX_INT),
        "Kilobytes that may wait in the client; what goes over raises BufferError.",
    )
    buffer_memory: int | None = key(
        "buffer.memory",
        None,
        Whole(0, (1 << 63) - 1),
        "The Java client's name for `queue.buffering.max.kbytes`, in bytes.",
        unset="1024 times `queue.buffering.max.kbytes`",
    )
    message_max_bytes: int = key(
        "message.max.bytes",
        1_000_000,
        Whole(1_000, 1_000_000_000),
        "The largest record that the client takes; the topic's `max.message.bytes` holds besides.",
        "max.request.size",
    )
    compression_type: str | None = key(
        "compression.type",
        None,
        words("none", "gzip", "snappy", "lz4", "zstd"),
        "Codec of the segments, where the topic leaves it to producers. librdkafka's default: none.",
        "compression.codec",
        unset="the topic's; zstd",
    )
    partitioner: str | Callable[..., Any] = key(
        "partitioner",
        "murmur2_random",
        Callback("partitioner(keys: pyarrow.Array, partitions: int)", PARTITIONERS),
        "Which partition a record goes to that names none. As librdkafka's; murmur2_random is the Java client's rule "
        "and that of every other writer here, so that a key has one partition with every writer. librdkafka's default: "
        "consistent_random. murmur3 and round_robin are tidelog's own.",
    )
    on_delivery: Callable[[Any, Any], Any] | None = key(
        "on_delivery",
        None,
        Callback("on_delivery(KafkaError or None, Message)"),
        "Called from `poll` and `flush` for each record whose `produce` names no callback.",
        "dr_cb",
        "dr_msg_cb",
    )
    report_only_error: bool = key(
        "delivery.report.only.error", False, Flag(), "Call delivery callbacks for failed records only."
    )
    allow_auto_create_topics: bool = key(
        "allow.auto.create.topics",
        True,
        Flag(),
        "Whether producing to a topic that is not there may create it; the lake's `auto.create.topics.enable` holds "
        "besides.",
    )
    queuing_strategy: str = key(
        "queuing.strategy",
        "fifo",
        Choice({"fifo": "fifo"}, "records are sent in the order of produce(); give fifo"),
        "The order in which records are sent.",
    )

    @classmethod
    def _ruled(cls, values: dict[str, Any]) -> dict[str, Any]:
        return producer_rules(values)


@dataclass(frozen=True, kw_only=True)
class ConsumerSettings(StatisticsKeys, CommonSettings):
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
        Names(ASSIGNORS),
        "How the group shares out partitions: the first that all members list. Strategies that revoke everything and "
        "cooperative-sticky don't mix.",
    )
    group_protocol: str = key(
        "group.protocol",
        "classic",
        Choice({"classic": "classic"}, "the members of a group share out the partitions themselves; give classic"),
        "How the group finds its assignment.",
    )
    session_timeout_ms: int = key(
        "session.timeout.ms", 45_000, Whole(1, 3_600_000), "A member without a sign of life for that long is out."
    )
    heartbeat_interval_ms: int = key(
        "heartbeat.interval.ms",
        3_000,
        Whole(1, 3_600_000),
        "Time between two signs of life.",
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
        "enable.auto.commit", True, Flag(), "Commit stored offsets in the background.", "auto.commit.enable"
    )
    auto_commit_interval_ms: int = key("auto.commit.interval.ms", 5_000, Whole(0, 86_400_000), "How often; 0: never.")
    enable_auto_offset_store: bool = key(
        "enable.auto.offset.store",
        True,
        Flag(),
        "Store the offset after each record that a call returns, to be committed.",
    )
    offset_store_method: str = key(
        "offset.store.method",
        "broker",
        Choice({"broker": "broker"}, "offsets are kept by the group; give broker"),
        "Where committed offsets are kept.",
    )
    auto_offset_reset: str = key(
        "auto.offset.reset",
        "latest",
        Choice(
            dict.fromkeys(("earliest", "smallest", "beginning"), "earliest")
            | dict.fromkeys(("latest", "largest", "end"), "latest")
            | dict.fromkeys(("error", "none"), "error")
        ),
        "Where to start without a committed offset, or with one out of range; error and none: say so.",
    )
    isolation_level: str = key(
        "isolation.level",
        "read_committed",
        words("read_uncommitted", "read_committed"),
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
        Flag(),
        "Whether subscribing to a topic that is not there may create it; the lake's `auto.create.topics.enable` holds "
        "besides.",
    )
    enable_partition_eof: bool = key(
        "enable.partition.eof", False, Flag(), "Tell with a `_PARTITION_EOF` event when a partition's end is reached."
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


_KINDS: Final[Mapping[str, type[CommonSettings]]] = {
    "a producer": ProducerSettings,
    "a consumer": ConsumerSettings,
}
