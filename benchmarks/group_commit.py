"""Group commit: what many small requests cost beside the same records as one request."""

import time

import numpy as np
import pyarrow as pa
from figures import Row, interleaved, percentile, summary
from plan import Plan

import tidelog
from tidelog.log.group_commit.engine import GroupCommit
from tidelog.log.group_commit.requests import I32, ProduceRequests

_REQUESTS = 1_000
_VALUE_BYTES = 100
_ROUNDS = 40


def run(plan: Plan) -> list[Row]:
    """Processor time of one entry: 1,000 one-record requests, each a table, and one request of 1,000 records."""
    with tidelog.Lake(str(plan.work / "group-commit")) as lake:
        spread, one = _cost_us(lake, "spread", 8), _cost_us(lake, "one", 1)
    ratio = percentile(spread["many"], 50) / percentile(spread["whole"], 50)
    each_us = percentile(one["many"], 50)
    figures = {"us": {"8 partitions": _figures(spread), "1 partition": _figures(one)}}
    what = f"{_REQUESTS:,} one-record requests as one entry, processor time"
    return [
        Row(f"{what}, over 8 partitions, against one request", "≤ 3x", f"{ratio:.1f}x", ratio <= 3, figures),
        Row("the same, at one partition, each", "≤ 6 us", f"{each_us:.1f} us", each_us <= 6),
    ]


def _figures(samples: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {name: summary(taken, 2) for name, taken in samples.items()}


def _cost_us(lake: tidelog.Lake, topic: str, partitions: int) -> dict[str, list[float]]:
    """Microseconds a record."""
    lake.create_topic(topic, partitions=partitions)
    engine = GroupCommit(lambda: lake.topic(topic), lake.clock, lake.ids)
    data = np.random.default_rng(1).bytes(_VALUE_BYTES * _REQUESTS)
    values = [data[at : at + _VALUE_BYTES] for at in range(0, len(data), _VALUE_BYTES)]
    table = pa.table({"key": pa.array(values), "value": pa.array(values)})
    chosen = np.arange(_REQUESTS, dtype=np.int32) % partitions
    single = [pa.table({"key": pa.array([value]), "value": pa.array([value])}) for value in values]
    return interleaved(
        {
            "many": lambda: _entry_us(engine, [_request(one, chosen[i : i + 1]) for i, one in enumerate(single)]),
            "whole": lambda: _entry_us(engine, [_request(table, chosen)]),
        },
        _ROUNDS,
        warmups=5,
    )


def _request(table: pa.Table, partitions: I32) -> ProduceRequests:
    return ProduceRequests(table, np.array([1e12]), partitions, acks=1, compression="none")


def _entry_us(engine: GroupCommit, requests: list[ProduceRequests]) -> float:
    began = time.process_time()
    entry = engine.begin(*requests)
    entry.advance()
    offsets = entry.outcomes.offsets(_REQUESTS)
    took = time.process_time() - began
    if (offsets < 0).any():
        raise RuntimeError(f"not all requests were committed: {entry.outcomes.errors}")
    return took * 1e6 / _REQUESTS
