"""Many writers, each in a process of its own, each of which waits until its records are safe before it writes the next.

What a writer does is an `Appender`: a picklable function that takes the writer's number, and gives what appends once
and what closes it.
"""

import multiprocessing
import time
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from bench import Bench
from figures import percentile
from lakes import small_batch
from measures import Measure
from peer import Peer, flushed
from processes import meet_at, wait_for_all

WRITERS = 8
Appender = Callable[[int], tuple[Callable[[], object], Callable[[], object]]]
_SAMPLES = 2_000


def measured(case: str, bench: Bench, appenders: Mapping[str, Appender]) -> list[Measure]:
    """By system: appends a second of all writers, and the ms of each."""
    seconds = 1.5 if bench.quick else 3.0
    systems = tuple(appenders)
    found: dict[str, list[tuple[float, list[float]]]] = {system: [] for system in systems}
    context = multiprocessing.get_context("spawn")
    with context.Pool(WRITERS, initializer=meet_at, initargs=(context.Barrier(WRITERS),)) as pool:
        for number in range(bench.rounds):
            turn = number % len(systems)
            for system in systems[turn:] + systems[:turn]:
                jobs = [(appenders[system], writer, seconds) for writer in range(WRITERS)]
                found[system].append(_raced(pool.starmap(_write_for, jobs, chunksize=1)))
    return [measure for system, rounds in found.items() for measure in _measures(case, system, rounds)]


def producing(peer: Peer, topic: str, writer: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """An `Appender` when given a peer and a topic: a producer, and a partition for each writer."""
    batch = small_batch(writer)
    producer = peer.producer()
    records = list(zip(batch.column("value").to_pylist(), batch.column("key").to_pylist(), strict=True))
    return lambda: _produced(producer, topic, writer, records), producer.close


def _produced(producer: Any, topic: str, partition: int, records: list[tuple[bytes, bytes]]) -> None:
    for value, key in records:
        producer.produce(topic, value, key, partition)
    flushed(producer)


def _measures(case: str, system: str, rounds: list[tuple[float, list[float]]]) -> list[Measure]:
    times = [times_ms for _, times_ms in rounds]
    every = list(chain.from_iterable(times))
    step = -(-len(every) // _SAMPLES)
    p50, p99 = ([percentile(one, q) for one in times] for q in (50, 99))
    return [
        Measure(case, system, "appends", "appends/s", "higher", [rate for rate, _ in rounds]),
        Measure(case, system, "p50", "ms", "lower", p50, samples=[round(one, 3) for one in every[::step]]),
        Measure(case, system, "p99", "ms", "lower", p99),
    ]


def _raced(results: list[tuple[float, float, list[float]]]) -> tuple[float, list[float]]:
    """Appends a second of all writers, and the ms of each. All clocks are this machine's own monotonic one."""
    wall_s = max(ended for _, ended, _ in results) - min(began for began, _, _ in results)
    times_ms = [ms for _, _, times in results for ms in times]
    return len(times_ms) / wall_s, times_ms


def _write_for(appender: Appender, writer: int, seconds: float) -> tuple[float, float, list[float]]:
    """Append for some seconds: when that began and ended, and the ms of each append."""
    times_ms: list[float] = []
    append, close = appender(writer)
    append()
    wait_for_all()
    began = now = time.monotonic()
    while now - began < seconds:
        append()
        before, now = now, time.monotonic()
        times_ms.append((now - before) * 1e3)
    close()
    return began, now, times_ms
