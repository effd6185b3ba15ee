"""Eight processes that append to one topic: each to a partition of its own, and all to one."""

import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from typing import Any

import pyarrow as pa
from figures import Row, percentile
from lakes import small_batch
from plan import Plan

import tidelog

_PROCESSES = 8
_MUST = 250.0


def run(plan: Plan) -> list[Row]:
    """Both ways; the offsets must be dense and unique."""
    own = _race(plan, "own", partitions=_PROCESSES)
    one = _race(plan, "one", partitions=1)
    return [
        _row(f"{_PROCESSES} processes append to one topic, each to its own partition", own),
        _row(f"{_PROCESSES} processes append to one partition", one),
    ]


def _row(what: str, figures: dict[str, Any]) -> Row:
    ok = figures["appends_per_s"] >= _MUST and figures["dense_and_unique"]
    told = "offsets dense and unique" if figures["dense_and_unique"] else "OFFSETS BROKEN"
    return Row(
        what,
        f"≥ {_MUST:.0f} appends/s, offsets dense and unique",
        f"{figures['appends_per_s']:.0f} appends/s, {told}",
        ok,
        figures,
    )


def _race(plan: Plan, name: str, partitions: int) -> dict[str, Any]:
    uri = str(plan.work / "processes")
    with tidelog.Lake(uri) as lake:
        lake.create_topic(name, partitions=partitions)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(_PROCESSES)
    jobs = [(uri, name, number % partitions, plan.racing_s) for number in range(_PROCESSES)]
    with context.Pool(_PROCESSES, initializer=meet_at, initargs=(barrier,)) as pool:
        results = pool.starmap(_append_for, jobs, chunksize=1)
    # All clocks are this machine's own monotonic one.
    wall_s = max(ended for _, ended, _, _ in results) - min(began for began, _, _, _ in results)
    ranges = [found for _, _, found, _ in results]
    times_ms = [ms for _, _, _, times in results for ms in times]
    with tidelog.Lake(uri, create=False) as lake:
        dense = _is_dense([one for found in ranges for one in found], lake.offsets(name))
    timed = sum(len(times) for _, _, _, times in results)
    return {
        "appends_per_s": round(timed / wall_s, 1),
        "append_p50_ms": round(percentile(times_ms, 50), 2),
        "append_p99_ms": round(percentile(times_ms, 99), 2),
        "appends": timed,
        "least_of_a_process": min(len(times) for _, _, _, times in results),
        "wall_s": round(wall_s, 2),
        "dense_and_unique": dense,
    }


_barrier: Barrier | None = None


def meet_at(barrier: Barrier) -> None:
    """Initializes a process of a pool: this is where `wait_for_all` waits."""
    global _barrier
    _barrier = barrier


def wait_for_all() -> None:
    """Go on when all processes of the pool are here."""
    if _barrier is not None:
        _barrier.wait()


def _append_for(
    uri: str, name: str, partition: int, seconds: float
) -> tuple[float, float, list[tuple[int, int, int]], list[float]]:
    """Append for some seconds: when it began and ended, (partition, first, end) of every append, and its ms."""
    batch = small_batch()
    batch = batch.append_column("partition", pa.array([partition] * batch.num_rows, pa.int32()))
    ranges: list[tuple[int, int, int]] = []
    times_ms: list[float] = []
    with tidelog.Lake(uri, create=False) as lake:
        topic = lake.topic(name)
        ranges.extend((p, *found) for p, found in topic.append(batch, acks=1).items())
        wait_for_all()
        began = now = time.monotonic()
        while now - began < seconds:
            ranges.extend((p, *found) for p, found in topic.append(batch, acks=1).items())
            before, now = now, time.monotonic()
            times_ms.append((now - before) * 1e3)
    return began, now, ranges, times_ms


def _is_dense(ranges: list[tuple[int, int, int]], offsets: dict[int, tuple[int, int]]) -> bool:
    """Whether the ranges of acknowledged appends cover every partition's offsets, each once."""
    ends = dict.fromkeys(offsets, 0)
    for partition, first, end in sorted(ranges):
        if ends[partition] != first or end <= first:
            return False
        ends[partition] = end
    return all(offsets[partition] == (0, end) for partition, end in ends.items())
