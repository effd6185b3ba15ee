"""Rules between configuration keys. Pure: the values that were set, by field, in; the same with what follows, out.

Source: librdkafka's `rd_kafka_conf_finalize`; idempotence that is not set yields as in Kafka's Java client
(`ProducerConfig.postProcessAndValidateIdempotenceConfigs`).
"""

from typing import Any, Final

from tidelog.clients.values.errors import KafkaError, KafkaException, invalid_argument

_ALL: Final = -1
_IDEMPOTENT_IN_FLIGHT: Final = 5
_LINGER_MS: Final = 5.0
_SESSION_MS: Final = 45_000
_HEARTBEAT_MS: Final = 3_000
_POLL_INTERVAL_MS: Final = 300_000


class MissingGroupError(KafkaException, ValueError):
    """A consumer without a group. confluent-kafka raises ValueError for it, and KafkaException for the like."""


def producer_rules(values: dict[str, Any]) -> dict[str, Any]:
    """Check a producer's configuration, and settle idempotence, entries in flight, linger and queue size."""
    _check_backoff(values)
    obstacle = _obstacle(values)
    if obstacle and values.get("enable_idempotence"):
        raise invalid_argument(f"Failed to create producer: {obstacle} when `enable.idempotence` is true.")
    idempotent = not obstacle and values.get("enable_idempotence", True)
    if values.get("transactional_id") and not idempotent:
        why = obstacle or "`enable.idempotence` must be true"
        raise invalid_argument(f"Failed to create producer: {why} when `transactional.id` is set.")
    settled = {**values, "enable_idempotence": idempotent}
    if idempotent:
        settled.setdefault("max_in_flight", _IDEMPOTENT_IN_FLIGHT)
    timeout_ms = values.get("delivery_timeout_ms")
    if timeout_ms:  # 0 is no limit
        if values.get("linger_ms", 0) >= timeout_ms:
            raise invalid_argument(
                "Failed to create producer: `delivery.timeout.ms` must be greater than `linger.ms`: a record would "
                "time out while it waits for others. Raise the one or lower the other."
            )
        settled.setdefault("linger_ms", min(_LINGER_MS, timeout_ms / 2))
    if "buffer_memory" in values:
        kbytes = max(1, values["buffer_memory"] // 1024)
        if settled.setdefault("queue_max_kbytes", kbytes) != kbytes:
            raise invalid_argument(
                "`buffer.memory` and `queue.buffering.max.kbytes` bound the same queue, in bytes and in kilobytes, and "
                "say different things. Set one of them."
            )
    return settled


def _obstacle(values: dict[str, Any]) -> str | None:
    """Return what rules idempotence out, None when nothing does."""
    if values.get("acks", _ALL) != _ALL:
        return "`acks` must be set to `all`"
    if values.get("max_in_flight", 0) > _IDEMPOTENT_IN_FLIGHT:
        return f"`max.in.flight` must be set <= {_IDEMPOTENT_IN_FLIGHT}"
    if values.get("retries") == 0:
        return "`retries` must be set >= 1"
    return None


def consumer_rules(values: dict[str, Any]) -> dict[str, Any]:
    """Check a consumer's configuration, and settle the heartbeat interval."""
    _check_backoff(values)
    if not values.get("group_id"):
        raise MissingGroupError(
            KafkaError(
                KafkaError._INVALID_ARG,
                "Failed to create consumer: group.id must be set: committed offsets belong to a group. Set any name, "
                "also where partitions are assigned by hand.",
            )
        )
    if values.get("group_protocol") == "consumer":
        _check_modern(values)
    strategies = values.get("assignment_strategy", ())
    if "cooperative-sticky" in strategies and len(strategies) > 1:
        raise invalid_argument(
            f"Failed to create consumer: All partition.assignment.strategy ({','.join(strategies)}) assignors must "
            "have the same protocol type: a group revokes everything in a rebalance, or only what moves. List "
            "cooperative-sticky alone, or leave it out."
        )
    session_ms = values.get("session_timeout_ms", _SESSION_MS)
    if values.get("group_protocol") == "consumer":
        return values
    if values.get("max_poll_interval_ms", _POLL_INTERVAL_MS) < session_ms:
        raise invalid_argument(
            f"Failed to create consumer: `max.poll.interval.ms` must be >= `session.timeout.ms` ({session_ms}). Raise "
            "the one or lower the other."
        )
    heartbeat_ms = values.get("heartbeat_interval_ms", min(_HEARTBEAT_MS, max(1, session_ms // 3)))
    if heartbeat_ms >= session_ms and session_ms > 1:
        raise invalid_argument(
            f"Failed to create consumer: `heartbeat.interval.ms` ({heartbeat_ms}) must be lower than "
            f"`session.timeout.ms` ({session_ms}), else a healthy member is out. A third of it is usual."
        )
    return {**values, "heartbeat_interval_ms": heartbeat_ms}


def _check_modern(values: dict[str, Any]) -> None:
    """Refuse what a group of the type consumer is configured with, and its members are not."""
    of_group = "It is the group's: `tidelog group alter` sets `consumer."
    elsewhere = {
        "session_timeout_ms": f"{of_group}session.timeout.ms`",
        "heartbeat_interval_ms": f"{of_group}heartbeat.interval.ms`",
        "assignment_strategy": "Use `group.remote.assignor` instead",
    }
    names = {"assignment_strategy": "partition.assignment.strategy"}
    for field, where in elsewhere.items():
        if field in values:
            name = names.get(field, field.replace("_", "."))
            raise invalid_argument(
                f"Failed to create consumer: `{name}` is not supported for `group.protocol=consumer`. {where}."
            )


def _check_backoff(values: dict[str, Any]) -> None:
    first, most = values.get("retry_backoff_ms"), values.get("retry_backoff_max_ms")
    if first is not None and most is not None and first > most:
        raise invalid_argument(
            f"`retry.backoff.ms` ({first}) must be <= `retry.backoff.max.ms` ({most}): pauses only grow. Raise the "
            "one or lower the other."
        )
