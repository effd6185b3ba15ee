"""What idempotence costs a producer: the same records with it and without."""

import shutil
import time

import numpy as np
from figures import Row, interleaved, percentile, speed_ratio, summary
from plan import Plan

import tidelog
from tidelog.clients.producer.producer import Producer

_RECORDS = 500_000
_VALUE_BYTES = 100
_KEYS = 100_000
_PARTITIONS = 8
_ROUNDS = 9


def run(plan: Plan) -> list[Row]:
    """Each round produces the records once with idempotence and once without, in turning order."""
    random = np.random.default_rng(1)
    data = random.bytes(_VALUE_BYTES * _RECORDS)
    values = [data[at : at + _VALUE_BYTES] for at in range(0, len(data), _VALUE_BYTES)]
    keys = [b"key-%06d" % i for i in random.integers(0, _KEYS, _RECORDS).tolist()]
    arms = {
        "idempotent": lambda: _seconds(plan, True, values, keys),
        "plain": lambda: _seconds(plan, False, values, keys),
    }
    times = interleaved(arms, 3 if plan.quick else _ROUNDS)
    cost = 1 - speed_ratio(times, "idempotent", "plain")
    rates = {name: _RECORDS / percentile(taken, 50) / 1e6 for name, taken in times.items()}
    return [
        Row(
            f"what `enable.idempotence` costs: {_RECORDS / 1e6:g} M records of {_VALUE_BYTES} B, keyed,"
            f" {_PARTITIONS} partitions, acks=all, with it against without",
            "≤ 10 % of throughput",
            f"{cost * 100:.1f} % ({rates['idempotent']:.2f} against {rates['plain']:.2f} M rec/s)",
            cost <= 0.1,
            {"cost": round(cost, 4), "seconds": {name: summary(taken) for name, taken in times.items()}},
        )
    ]


def _seconds(plan: Plan, idempotent: bool, values: list[bytes], keys: list[bytes]) -> float:
    """How long it takes to produce all records to a new topic."""
    folder = plan.work / "idempotence-lake"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("records", partitions=_PARTITIONS)
    settings = {
        "lake": str(folder),
        "acks": "all",
        "enable.idempotence": idempotent,
        "compression.type": "none",
        "queue.buffering.max.messages": 2 * _RECORDS,
    }
    with Producer(settings) as producer:
        produce = producer.produce
        began = time.perf_counter()
        for value, key in zip(values, keys, strict=True):
            produce("records", value, key)
        left = producer.flush()
        took = time.perf_counter() - began
    shutil.rmtree(folder)
    if left:
        raise RuntimeError(f"{left} records were not delivered")
    return took
