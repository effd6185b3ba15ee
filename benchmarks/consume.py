"""A consumer reads a million records of 100 bytes from 8 partitions: as messages, and as Arrow tables."""

import time
from collections.abc import Callable

import pyarrow as pa
from figures import Row, summary
from plan import Plan

import tidelog
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.partitions import TopicPartition

_PARTITIONS = 8
_ENTRIES = 10
_RECORDS = 1_000_000
_AT_ONCE = 10_000


def run(plan: Plan) -> list[Row]:
    """Both ways in turns, each with a new consumer, from the beginning."""
    uri = str(plan.work / "consume")
    with tidelog.Lake(uri) as lake:
        lake.create_topic("t", partitions=_PARTITIONS)
        keys = [str(number % 10_000) for number in range(_RECORDS // _ENTRIES)]
        batch = pa.table({"key": keys, "value": [bytes(100)] * len(keys)})
        for _ in range(_ENTRIES):
            lake.topic("t").append(batch)
    rates: dict[str, list[float]] = {"messages": [], "tables": []}
    for _ in range(plan.rounds + 1):
        rates["messages"].append(_rate(uri, _messages))
        rates["tables"].append(_rate(uri, _tables))
    messages, tables = (sorted(rates[name][1:])[plan.rounds // 2] for name in ("messages", "tables"))
    return [
        Row(
            "`consume()` of 1 M records of 100 B from 8 partitions",
            "≥ 0.4 M rec/s",
            f"{messages / 1e6:.2f} M rec/s",
            messages >= 0.4e6,
            {"records_per_s": summary(rates["messages"][1:], 0)},
        ),
        Row(
            "`consume_table()` of the same",
            "≥ 4 M rec/s",
            f"{tables / 1e6:.1f} M rec/s",
            tables >= 4e6,
            {"records_per_s": summary(rates["tables"][1:], 0)},
        ),
    ]


def _messages(consumer: Consumer) -> int:
    return len(consumer.consume(_AT_ONCE, 10.0))


def _tables(consumer: Consumer) -> int:
    return int(consumer.consume_table(10 * _AT_ONCE, 10.0).num_rows)


def _rate(uri: str, take: Callable[[Consumer], int]) -> float:
    """Records a second, from the first call to the last record."""
    with Consumer({"lake": uri, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}) as own:
        began, count = time.perf_counter(), 0
        own.assign([TopicPartition("t", partition) for partition in range(_PARTITIONS)])
        while count < _RECORDS:
            count += take(own)
        return _RECORDS / (time.perf_counter() - began)
