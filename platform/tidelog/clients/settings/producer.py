"""The configuration of a producer."""

# ruff: noqa: RUF009 - `key` makes a dataclass field

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tidelog.clients.settings.common import RecordClientSettings
from tidelog.clients.settings.rules import producer_rules
from tidelog.clients.settings.value_types import LIBRDKAFKA_FLAG, Callback
from tidelog.log.base.keys import key
from tidelog.log.base.typed_values import MAX_INT, MAX_LONG, Choice, Number, Text, Whole, names
from tidelog.log.config.topics_and_lakes import CODECS

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
class ProducerSettings(RecordClientSettings, client="a producer"):
    """What a Producer takes. Values that others decide are settled: see `producer_rules`."""

    acks: int = key(
        "acks",
        -1,
        Choice({"all": -1, "-1": -1, "0": 0, "1": 1}, any_case=True),
        "When a record counts as delivered: 0 at once, 1 when it is committed, all when it is durable too.",
        "request.required.acks",
        unset="all",
    )
    enable_idempotence: bool = key(
        "enable.idempotence",
        True,
        LIBRDKAFKA_FLAG,
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
        Whole(0, MAX_LONG),
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
        names(*CODECS, any_case=True),
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
        "delivery.report.only.error", False, LIBRDKAFKA_FLAG, "Call delivery callbacks for failed records only."
    )
    allow_auto_create_topics: bool = key(
        "allow.auto.create.topics",
        True,
        LIBRDKAFKA_FLAG,
        "Whether producing to a topic that is not there may create it; the lake's `auto.create.topics.enable` holds "
        "besides.",
    )
    queuing_strategy: str = key(
        "queuing.strategy",
        "fifo",
        Choice({"fifo": "fifo"}, any_case=True, others="records are sent in the order of produce(); give fifo"),
        "The order in which records are sent.",
    )
    transactional_id: str | None = key(
        "transactional.id",
        None,
        Text(1, 32_767),
        "The producer's name in transactions, the same after a crash and a restart: a new producer with it fences the "
        "older one, and finishes or aborts what that left. Needs idempotence.",
    )
    transaction_timeout_ms: int = key(
        "transaction.timeout.ms",
        60_000,
        Whole(1_000, MAX_INT),
        "How long a transaction may be open before others may abort it; the lake's `transaction.max.timeout.ms` is the "
        "most.",
    )

    @classmethod
    def _ruled(cls, values: dict[str, Any]) -> dict[str, Any]:
        return producer_rules(values)
