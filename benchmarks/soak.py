"""`make bench-soak`: appends at full rate for minutes, and what stays flat meanwhile. BENCH_ARGS: --minutes N.

Two processes append to one topic as fast as the log lets them: in a burst first, then at the ceiling of entries per
second. Spark and deltalake count its records in turn all along. The folder's bound needs a run of some minutes:
entries are kept for `log.min.age.ms`, here at most a third of the run.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TypeVar

import cases
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from figures import Row, percentile
from lakes import small_batch
from memory import memory_mb
from plan import Plan
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sparks import session

import tidelog

_TOPIC = "full"
_WRITERS = 2
_KEPT_MS = 300_000
_READ_EVERY_S = 10.0
_FLAT = 2.0
_FLAT_MEMORY = 1.5
_STEADY = 1.2
_LOOKS = 9
_BEHIND = 200
_WARMUP = 5
# Delta replays a table's files as objects of the JVM, here up to 70,000 small ones at each read. In Spark's default of
# 1 GB a sixth of that is collecting garbage.
_HEAP = "3g"

T = TypeVar("T")


@dataclass
class Watched:
    """What the watcher saw, each with the seconds since the start."""

    opens: list[tuple[float, float]] = field(default_factory=list)
    files: list[tuple[float, int]] = field(default_factory=list)
    reads: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {"Spark": [], "deltalake": []})
    gaps: dict[str, int] = field(default_factory=lambda: {"Spark": 0, "deltalake": 0})
    # How many of the reads saw the newest entries; the others were `_BEHIND` versions behind.
    at_head: dict[str, int] = field(default_factory=lambda: {"Spark": 0, "deltalake": 0})


@dataclass
class Written:
    """What a writer saw, on the machine's clock: when each append began, and its ms; and its memory in MiB."""

    appends: list[tuple[float, float]] = field(default_factory=list)
    memory_mb: list[tuple[float, float]] = field(default_factory=list)


def main() -> int:
    """Soak, and print the table; the exit code is 1 when a row falls short, 2 when the soak fails."""
    parser = argparse.ArgumentParser(description="Append at full rate for minutes.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--work", help="the folder to work in, on the disk to measure (default: the system's own)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidelog-soak-", dir=arguments.work) as work:
        plan = Plan(Path(work), minutes=arguments.minutes)
        return cases.measure("soak", ["soak"], plan, whole=arguments.minutes >= 10)


def run(plan: Plan) -> list[Row]:
    """Run the writers and the watcher for the plan's minutes."""
    seconds = plan.minutes * 60
    uri = str(plan.work / "lake")
    kept_ms = int(min(_KEPT_MS, seconds * 1000 / 3))
    with tidelog.Lake(uri) as lake:
        lake.create_topic(_TOPIC, partitions=1, config={"log.min.age.ms": str(kept_ms)})
        lake.topic(_TOPIC).append(small_batch())
    spark = session(_HEAP)
    for _ in range(_WARMUP):  # a cold JVM reads nothing in 3 s
        _spark_count(spark, f"{uri}/{_TOPIC}")
    context = multiprocessing.get_context("spawn")
    with context.Pool(_WRITERS) as pool, context.Manager() as manager:
        stop = manager.Event()
        running = pool.starmap_async(_write, [(uri, stop)] * _WRITERS, chunksize=1)
        began = time.monotonic()
        watched = _watch(spark, uri, began, seconds)
        stop.set()
        written = running.get(timeout=120)
    spark.stop()
    return _rows(written, watched, began, seconds, kept_ms)


def _write(uri: str, stop: Event) -> Written:
    """Append until asked to stop."""
    batch = small_batch()
    done = Written()
    with tidelog.Lake(uri, create=False) as lake:
        topic = lake.topic(_TOPIC)
        while len(done.appends) % 32 or not stop.is_set():
            began = time.monotonic()
            topic.append(batch, acks=1)
            done.appends.append((began, (time.monotonic() - began) * 1e3))
            if len(done.appends) % 256 == 0:
                done.memory_mb.append((began, memory_mb()))
    return done


def _watch(spark: SparkSession, uri: str, began: float, seconds: float) -> Watched:
    """Open, count and read in turn until the time is up."""
    seen = Watched()
    table = f"{uri}/{_TOPIC}"
    engines: dict[str, Callable[[str], tuple[int, bool]]] = {
        "Spark": lambda table: (_spark_count(spark, table), True),
        "deltalake": _deltalake_count,
    }
    while (now := time.monotonic() - began) < seconds:
        seen.opens.append((now, _seconds(lambda: _open(uri))[0]))
        seen.files.append((now, len(os.listdir(f"{table}/_delta_log"))))
        for engine, count in engines.items():
            took, (gaps, at_head) = _seconds(partial(_read, count, table))
            seen.reads[engine].append((now, took))
            seen.gaps[engine] += gaps
            seen.at_head[engine] += at_head
        time.sleep(max(0.0, min(now + _READ_EVERY_S, seconds) - (time.monotonic() - began)))
    return seen


def _seconds(work: Callable[[], T]) -> tuple[float, T]:
    began = time.monotonic()
    answer = work()
    return time.monotonic() - began, answer


def _open(uri: str) -> None:
    with tidelog.Lake(uri, create=False) as lake:
        lake.topic(_TOPIC).state()


def _read(count: Callable[[str], tuple[int, bool]], table: str) -> tuple[int, bool]:
    """Count the records as of now; returns how often the engine had to look again, and whether it saw the head.

    A listing of a busy local folder is no snapshot: an engine may see entry N + 1 in it and not N, and refuses the gap.
    Deltalake then reads an entry a little behind the head.
    """
    expected = _has_records(table)
    for gaps in range(_LOOKS):
        try:
            records, at_head = count(table)
            if not records and expected:
                raise RuntimeError(f"no record of {table} is seen")
            return gaps, at_head
        except (DeltaError, Py4JJavaError, PySparkException) as e:
            if "gap" not in str(e) and "DELTA_VERSIONS_NOT_CONTIGUOUS" not in str(e):
                raise
    raise RuntimeError(f"{table} was refused {_LOOKS} times for a gap in its listing")


def _spark_count(spark: SparkSession, table: str) -> int:
    return spark.read.format("delta").load(table).count()


def _deltalake_count(table: str) -> tuple[int, bool]:
    """The records, and whether they are those at the head.

    Its listing takes long, as it looks at each file, so that under steady appends it may be refused. A little behind
    the head it reads all the same.
    """
    try:
        return int(DeltaTable(table).count()), True
    except DeltaError as e:
        if "gap" not in str(e):
            raise
        newest = max(int(name[:20]) for name in os.listdir(f"{table}/_delta_log") if name.endswith(".json"))
        return int(DeltaTable(table, version=newest - _BEHIND).count()), False


def _has_records(table: str) -> bool:
    return len(os.listdir(f"{table}/_delta_log")) > 100


def _rows(written: list[Written], seen: Watched, began: float, seconds: float, kept_ms: int) -> list[Row]:
    appends = [one for writer in written for one in writer.appends]
    peaks = [[(at - began, mb) for at, mb in writer.memory_mb] for writer in written]
    early_mb = max(mb for one in peaks for at, mb in one if at <= seconds / 3 or (at, mb) == one[0])
    peak_mb = max(mb for one in peaks for _, mb in one)
    minutes = _per_slice([(at - began, ms) for at, ms in appends], seconds)
    p99s = [percentile(ms, 99) for ms in minutes]
    opens = [s for _, s in seen.opens]
    first_open, last_open = _thirds(seen.opens, seconds)
    rate = len(appends) / seconds
    last_rate = len(minutes[-1]) * len(minutes) / seconds
    most, bound = max(n for _, n in seen.files), _folder_bound(rate, kept_ms)
    steady_s = _steady_since(minutes, seconds)
    reads = {engine: [s for at, s in found if at >= steady_s] for engine, found in seen.reads.items()}
    hurried = [f"{engine} {max(taken):.1f} s" for engine, taken in _before(seen.reads, steady_s).items()]
    figures = _figures(minutes, peaks, seen, seconds, steady_s) | {"log_min_age_ms": kept_ms}
    what = f"{seconds / 60:g} minutes of appends at full rate by {_WRITERS} processes ({rate:.0f}/s)"
    first, last = _median(p99s[: max(1, len(p99s) // 3)]), _median(p99s[-max(1, len(p99s) // 3) :])
    longest = max(max(taken) for taken in reads.values())
    told = ", ".join(_told(engine, taken) for engine, taken in reads.items())
    looks = sum(map(len, seen.reads.values()))
    behind = looks - sum(seen.at_head.values())
    again = f"{sum(seen.gaps.values())} of {looks} reads looked again, {behind} were {_BEHIND} versions behind"
    return [
        Row(
            f"{what}: append p99",
            "flat",
            f"{first:.1f} ms at first, {last:.1f} ms at last",
            last <= _FLAT * first,
            figures,
        ),
        Row(
            "meanwhile: opening the topic",
            "≤ 1 s, flat",
            f"{_median(opens):.2f} s p50, {max(opens):.2f} s at most; {first_open:.2f} s at first,"
            f" {last_open:.2f} s at last",
            max(opens) <= 1,
            {},
        ),
        Row(
            "meanwhile: files in the log folder",
            "bounded",
            f"{most:,} at most, {seen.files[-1][1]:,} at last",
            most <= bound,
            {},
        ),
        Row(
            "meanwhile: memory of a writer",
            "flat",
            f"{early_mb:.0f} MiB at most in the first third, {peak_mb:.0f} MiB in all",
            peak_mb <= _FLAT_MEMORY * early_mb,
            {},
        ),
        Row(
            f"meanwhile: Spark (heap of {_HEAP}) and deltalake read it, at {last_rate:.0f} entries/s",
            "each read ≤ 3 s",
            f"{told}; {again}; at most in the burst before ({len(minutes[0]) * len(minutes) / seconds:.0f}/s):"
            f" {', '.join(hurried)}",
            longest <= 3,
            {},
        ),
    ]


def _figures(
    minutes: list[list[float]],
    peaks: list[list[tuple[float, float]]],
    seen: Watched,
    seconds: float,
    steady_s: float,
) -> dict[str, object]:
    return {
        "appends": sum(map(len, minutes)),
        "appends_per_s": [round(len(ms) * len(minutes) / seconds, 1) for ms in minutes],
        "p50_ms_by_slice": [round(percentile(ms, 50), 2) for ms in minutes],
        "p99_ms_by_slice": [round(percentile(ms, 99), 2) for ms in minutes],
        "open_s": [(round(at), round(s, 3)) for at, s in seen.opens],
        "log_files": [(round(at), n) for at, n in seen.files],
        "steady_since_s": round(steady_s),
        "reads_s": {engine: [(round(at), round(s, 2)) for at, s in found] for engine, found in seen.reads.items()},
        "looked_again": seen.gaps,
        "reads_at_head": seen.at_head,
        "versions_behind_otherwise": _BEHIND,
        "writers_memory_mb": [[(round(at), round(mb)) for at, mb in one[:: max(1, len(one) // 20)]] for one in peaks],
    }


def _told(engine: str, taken: list[float]) -> str:
    return f"{engine} {max(taken):.1f} s at most, {_median(taken):.1f} s p50"


def _steady_since(slices: list[list[float]], seconds: float) -> float:
    """When the burst was over: from then on no slice has many more appends than the last one."""
    hurried = [i for i, ms in enumerate(slices) if len(ms) > _STEADY * len(slices[-1])]
    return (hurried[-1] + 1) * seconds / len(slices) if hurried else 0.0


def _before(reads: dict[str, list[tuple[float, float]]], end_s: float) -> dict[str, list[float]]:
    found = {engine: [s for at, s in taken if at < end_s] for engine, taken in reads.items()}
    return {engine: taken for engine, taken in found.items() if taken}


def _folder_bound(rate: float, kept_ms: int) -> float:
    """Entries are kept for their age, and until the trim after that: a checkpoint's worth and a minute more."""
    return rate * (kept_ms / 1000 * 1.2 + 60)


def _per_slice(samples: list[tuple[float, float]], seconds: float) -> list[list[float]]:
    """The samples' figures by minute, or by tenth of a shorter run."""
    width = min(60.0, seconds / 10)
    slices: list[list[float]] = [[] for _ in range(round(seconds / width))]
    for at, figure in samples:
        slices[min(int(at / width), len(slices) - 1)].append(figure)
    return [one for one in slices if one]


def _thirds(samples: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """The medians of the first and the last third of the time."""
    first = [figure for at, figure in samples if at <= seconds / 3]
    last = [figure for at, figure in samples if at >= seconds * 2 / 3]
    return _median(first), _median(last or first)


def _median(figures: list[float]) -> float:
    return percentile(figures, 50)


if __name__ == "__main__":
    sys.exit(main())
