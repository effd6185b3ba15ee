"""A rewind of what one of twenty producers wrote in an hour, among the others' records and the hours before."""

import time

import numpy as np
import pyarrow as pa
from figures import Row
from plan import Plan

import tidelog
from tidelog.operations.rewinds import rewind_topics
from tidelog.retention.predicates.parse import parse_where

_TOPIC = "orders"
_PRODUCERS = 20
_HOURS = 20
_BAD = 7
_APPEND = 250_000
_HOUR_MS = 3_600_000
_MUST_S = 60.0
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def run(plan: Plan) -> list[Row]:
    """Fill all hours but the last, make a cut, fill the last one, and take the bad producer's part out of it."""
    hour = 100_000 if plan.quick else 5_000_000
    with tidelog.Lake(str(plan.work / "rewinds")) as lake:
        lake.create_topic(_TOPIC, partitions=4)
        start_ms = lake.clock.now_ms() - _HOURS * _HOUR_MS
        for number in range(_HOURS - 1):
            _fill(lake, hour, start_ms + number * _HOUR_MS)
        cut = lake.cut("before-the-bad-hour")
        _fill(lake, hour, start_ms + (_HOURS - 1) * _HOUR_MS)
        before = {p: end for p, (_, end) in lake.offsets(_TOPIC).items()}
        where = parse_where(f"headers['producer'] = '{_BAD}'")
        began = time.perf_counter()
        done = rewind_topics(lake, cut, [_TOPIC], where=where, execute=True)
        took_s = time.perf_counter() - began
        if done.records != hour // _PRODUCERS or {p: end for p, (_, end) in lake.offsets(_TOPIC).items()} != before:
            raise RuntimeError(f"the rewind did not do its work: {done.records} records left")
    total = hour * _HOURS
    return [
        Row(
            f"rewind of an hour of one of {_PRODUCERS} producers among {total / 1e6:g} M records of 100 B",
            f"≤ {_MUST_S:g} s",
            f"{took_s:.1f} s ({done.records:,} records left, {hour / took_s / 1e6:.2f} M/s looked through)",
            took_s <= _MUST_S,
            {"records": total, "hour": hour, "left": done.records, "seconds": round(took_s, 2)},
        )
    ]


def _fill(lake: tidelog.Lake, records: int, at_ms: int) -> None:
    """Records of all producers, one after another, over an hour."""
    topic, rng = lake.topic(_TOPIC), np.random.default_rng(at_ms)
    for first in range(0, records, _APPEND):
        count = min(_APPEND, records - first)
        numbers = np.arange(first, first + count)
        values = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(100), count, [None, pa.py_buffer(rng.integers(0, 64, count * 100, np.uint8))]
        )
        producers = pa.array([str(n).encode() for n in range(_PRODUCERS)], pa.binary())
        header = pa.StructArray.from_arrays(
            [pa.array(["producer"] * count), producers.take(pa.array(numbers % _PRODUCERS))], ["key", "value"]
        )
        table = pa.table(
            {
                "value": values.cast(pa.binary()),
                "headers": pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32), header).cast(_HEADERS),
                "partition": pa.array(numbers // _PRODUCERS % 4, pa.int32()),
                "timestamp": pa.array(at_ms + numbers * _HOUR_MS // records, pa.int64()),
            }
        )
        topic.append(table)
