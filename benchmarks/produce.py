"""The producer: record by record, and by Arrow tables."""

import shutil
import time

import numpy as np
import pyarrow as pa
from figures import Row, interleaved, percentile, summary
from plan import Plan

import tidelog
from tidelog.clients.producer.producer import Producer

_RECORDS = 1_000_000
_TABLE_RECORDS = 4_000_000
_VALUE_BYTES = 100
_KEYS = 100_000
_PARTITIONS = 8
_ROUNDS = 5


def run(plan: Plan) -> list[Row]:
    """Each round produces records one by one, and a table of them; both are flushed."""
    values, keys = keyed_records(_RECORDS)
    table = pa.concat_tables([pa.table({"value": pa.array(values), "key": pa.array(keys)})] * 4)
    arms = {"records": lambda: _one_by_one(plan, values, keys), "table": lambda: _at_once(plan, table)}
    times = interleaved(arms, 3 if plan.quick else _ROUNDS)
    one_by_one = _RECORDS / percentile(times["records"], 50) / 1e6
    at_once = _TABLE_RECORDS / percentile(times["table"], 50) / 1e6
    figures = {"seconds": {name: summary(taken) for name, taken in times.items()}}
    what = f"{_RECORDS / 1e6:g} M records of {_VALUE_BYTES} B, keyed, {_PARTITIONS} partitions, acks=all, idempotent"
    return [
        Row(f"`produce()` and flush, {what}", "≥ 0.5 M rec/s", f"{one_by_one:.2f} M rec/s", one_by_one >= 0.5, figures),
        Row("`produce_table`, the same records four times", "≥ 3 M rec/s", f"{at_once:.2f} M rec/s", at_once >= 3),
    ]


def keyed_records(count: int) -> tuple[list[bytes], list[bytes]]:
    """A number of values of 100 random bytes, and keys."""
    random = np.random.default_rng(1)
    data = random.bytes(_VALUE_BYTES * count)
    values = [data[at : at + _VALUE_BYTES] for at in range(0, len(data), _VALUE_BYTES)]
    return values, [b"key-%06d" % i for i in random.integers(0, _KEYS, count).tolist()]


def _one_by_one(plan: Plan, values: list[bytes], keys: list[bytes]) -> float:
    with _Topic(plan) as producer:
        produce = producer.produce
        began = time.perf_counter()
        for value, key in zip(values, keys, strict=True):
            produce("records", value, key)
        left = producer.flush()
        took = time.perf_counter() - began
    if left:
        raise RuntimeError(f"{left} records were not delivered")
    return took


def _at_once(plan: Plan, table: pa.Table) -> float:
    with _Topic(plan) as producer:
        began = time.perf_counter()
        future = producer.produce_table("records", table)
        producer.flush()
        took = time.perf_counter() - began
    if sum(end - first for first, end in future.result().values()) != table.num_rows:
        raise RuntimeError("not all records were delivered")
    return took


class _Topic:
    """A producer for a new topic, in a lake that is gone afterwards."""

    def __init__(self, plan: Plan) -> None:
        self._folder = plan.work / "produce-lake"
        with tidelog.Lake(str(self._folder)) as lake:
            lake.create_topic("records", partitions=_PARTITIONS)
        # librdkafka's default is no compression; here it is zstd, which random bytes only cost time.
        self._producer = Producer(
            {
                "lake": str(self._folder),
                "acks": "all",
                "enable.idempotence": True,
                "compression.type": "none",
                "queue.buffering.max.messages": 2 * _RECORDS,
            }
        )

    def __enter__(self) -> Producer:
        return self._producer

    def __exit__(self, *_: object) -> None:
        self._producer.close()
        shutil.rmtree(self._folder)
