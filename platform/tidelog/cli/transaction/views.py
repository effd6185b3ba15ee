"""How transactions and producers are shown: kafka-transactions' columns, and JSON documents."""

from collections.abc import Iterable
from typing import Any

from rich.console import RenderableType

from tidelog.commands.terminal import DASH, shown_or_dash, table
from tidelog.log.rules.sequences import KnownProducer
from tidelog.operations.transactions import TransactionSummary


def list_table(found: Iterable[TransactionSummary], where: str) -> RenderableType:
    """A row for each transactional id."""
    return table(
        ["TRANSACTIONAL-ID", "COORDINATOR", ">PRODUCER-ID", "TRANSACTION-STATE"],
        [(s.transactional.transactional_id, where, str(s.transactional.producer_id), s.state.value) for s in found],
    )


def describe_table(shown: TransactionSummary, where: str, now_ms: int) -> RenderableType:
    """One transactional id in a row."""
    one, start_ms = shown.transactional, shown.start_ms
    columns = ["COORDINATOR", "TRANSACTIONAL-ID", ">PRODUCER-ID", ">PRODUCER-EPOCH", "TRANSACTION-STATE"]
    return table(
        [*columns, ">TIMEOUT-MS", ">START-TIME-MS", ">DURATION-MS", "TOPIC-PARTITIONS"],
        [
            (
                where,
                one.transactional_id,
                str(one.producer_id),
                str(one.kafka_epoch),
                shown.state.value,
                str(one.timeout_ms),
                shown_or_dash(start_ms),
                shown_or_dash(None if start_ms is None else max(0, now_ms - start_ms)),
                ",".join(f"{topic}-{partition}" for topic, partition in shown.partitions) or DASH,
            )
        ],
    )


def transaction_json(shown: TransactionSummary, where: str) -> dict[str, Any]:
    """The same as a document; None where the table has -. `epoch` is tidelog's own, which never falls."""
    one = shown.transactional
    return {
        "transactional_id": one.transactional_id,
        "coordinator": where,
        "producer_id": one.producer_id,
        "producer_epoch": one.kafka_epoch,
        "epoch": one.epoch,
        "number": one.number,
        "state": shown.state.value,
        "timeout_ms": one.timeout_ms,
        "start_time_ms": shown.start_ms,
        "update_time_ms": one.updated_ms,
        "topic_partitions": [{"topic": topic, "partition": partition} for topic, partition in shown.partitions],
    }


def producers_table(found: Iterable[tuple[str, KnownProducer]]) -> RenderableType:
    """A row for each producer of each partition."""
    columns = ["TOPIC", ">PARTITION", ">PRODUCER-ID", ">PRODUCER-EPOCH", ">LAST-SEQUENCE", ">LAST-TIMESTAMP"]
    return table(columns, [[topic, *(shown_or_dash(n) for n in _figures(one))] for topic, one in found])


def producers_json(found: Iterable[tuple[str, KnownProducer]]) -> list[dict[str, Any]]:
    """The same as documents."""
    names = ("partition", "producer_id", "producer_epoch", "last_sequence", "last_timestamp_ms")
    return [{"topic": topic, **dict(zip(names, _figures(one), strict=True))} for topic, one in found]


def _figures(one: KnownProducer) -> tuple[int | None, ...]:
    return one.partition, one.producer_id, one.epoch, one.last_sequence, one.updated_ms
