"""Many writers, each of which waits until a hundred records are safe before it writes the next."""

import multiprocessing
import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import pyarrow as pa
from bench import Bench
from deltalake import CommitProperties, write_deltalake
from figures import percentile
from lakes import RECORDS_PER_APPEND, small_batch
from measures import Measure
from peer import DELTA, KAFKA, TIDELOG, Peer, both, flushed
from processes import meet_at, wait_for_all

import tidelog

TITLE = "Small appends by many writers"
CASE = "small appends"
_WRITERS = 8
_APPEND, _SYNCED = "tidelog append", "kafka flush.messages=1"
_SYSTEMS = (TIDELOG, _APPEND, KAFKA, _SYNCED, DELTA)
_SAMPLES = 2_000
# deltalake gives up after fifteen, which eight writers use up.
_RETRIES = 10_000


def run(bench: Bench) -> list[Measure]:
    """Eight processes, a partition each, 100 records of 100 B with acks=all at a time.

    tidelog has fsynced what it acknowledges. Kafka has not, but for the topic with flush.messages=1.
    """
    seconds = 1.5 if bench.quick else 3.0
    peers = both(bench)
    peers[TIDELOG].create_topic(TIDELOG, _WRITERS)
    peers[TIDELOG].create_topic(_name(_APPEND), _WRITERS)
    peers[KAFKA].create_topic(KAFKA, _WRITERS)
    peers[KAFKA].create_topic(_name(_SYNCED), _WRITERS, {"flush.messages": "1"})
    addresses = {
        system: str(bench.work / DELTA) if system == DELTA else peers[system.split()[0]].address for system in _SYSTEMS
    }
    write_deltalake(addresses[DELTA], small_batch())
    found: dict[str, list[tuple[float, list[float]]]] = {system: [] for system in _SYSTEMS}
    context = multiprocessing.get_context("spawn")
    with context.Pool(_WRITERS, initializer=meet_at, initargs=(context.Barrier(_WRITERS),)) as pool:
        for number in range(bench.rounds):
            turn = number % len(_SYSTEMS)
            for system in _SYSTEMS[turn:] + _SYSTEMS[:turn]:
                jobs = [(system, addresses[system], writer, seconds) for writer in range(_WRITERS)]
                found[system].append(_raced(pool.starmap(_write_for, jobs, chunksize=1)))
    return [measure for system, rounds in found.items() for measure in _measures(system, rounds)]


def _measures(system: str, rounds: list[tuple[float, list[float]]]) -> list[Measure]:
    times = [times_ms for _, times_ms in rounds]
    every = list(chain.from_iterable(times))
    step = -(-len(every) // _SAMPLES)
    p50, p99 = ([percentile(one, q) for one in times] for q in (50, 99))
    return [
        Measure(CASE, system, "appends", "appends/s", "higher", [rate for rate, _ in rounds]),
        Measure(CASE, system, "p50", "ms", "lower", p50, samples=[round(one, 3) for one in every[::step]]),
        Measure(CASE, system, "p99", "ms", "lower", p99),
    ]


def _raced(results: list[tuple[float, float, list[float]]]) -> tuple[float, list[float]]:
    """Appends a second of all writers, and the ms of each. All clocks are this machine's own monotonic one."""
    wall_s = max(ended for _, ended, _ in results) - min(began for began, _, _ in results)
    times_ms = [ms for _, _, times in results for ms in times]
    return len(times_ms) / wall_s, times_ms


def _write_for(system: str, address: str, writer: int, seconds: float) -> tuple[float, float, list[float]]:
    """Append for some seconds: when that began and ended, and the ms of each append."""
    times_ms: list[float] = []
    append, close = _appender(system, address, writer)
    append()
    wait_for_all()
    began = now = time.monotonic()
    while now - began < seconds:
        append()
        before, now = now, time.monotonic()
        times_ms.append((now - before) * 1e3)
    close()
    return began, now, times_ms


def _appender(system: str, address: str, writer: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """What appends once, and what closes it."""
    batch = small_batch(writer)
    if system == DELTA:
        patient = CommitProperties(max_commit_retries=_RETRIES)
        return lambda: write_deltalake(address, batch, mode="append", commit_properties=patient), lambda: None
    if system == _APPEND:
        lake = tidelog.Lake(address, create=False)
        topic = lake.topic(_name(system))
        batch = batch.append_column("partition", pa.array([writer] * RECORDS_PER_APPEND, pa.int32()))
        return lambda: topic.append(batch), lake.close
    producer = Peer(TIDELOG if system == TIDELOG else KAFKA, address).producer()
    records = list(zip(batch.column("value").to_pylist(), batch.column("key").to_pylist(), strict=True))
    return lambda: _produced(producer, _name(system), writer, records), producer.close


def _produced(producer: Any, topic: str, partition: int, records: list[tuple[bytes, bytes]]) -> None:
    for value, key in records:
        producer.produce(topic, value, key, partition)
    flushed(producer)


def _name(system: str) -> str:
    """The system's topic."""
    return system.replace(" ", "-").replace("=", "-")
