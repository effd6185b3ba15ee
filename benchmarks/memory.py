"""Peak memory of a task of the source and of the sink, at some data and at eight times as much."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from figures import Row
from plan import Plan

import tidelog
from tidelog.log.segments.fetch import plan_fetch
from tidelog.sinks.options import parse_batch
from tidelog.sinks.tasks import open_target, stage
from tidelog.sources.tasks import ReadTask, read_task

_TIMES = 8
_FLAT = 1.25
_BATCH_RECORDS = 10_000
_PARTITIONS = 8


def run(plan: Plan) -> list[Row]:
    """Every task runs in a process of its own: a process's peak never falls."""
    sizes = (plan.task_records, plan.task_records * _TIMES)
    folder = plan.work / "memory"
    sink = [_peak_mib("sink", folder / str(size), size) for size in sizes]
    source = [_peak_mib("source", folder / str(size), size) for size in sizes]
    return [_row("sink", plan, sink), _row("source", plan, source)]


def _row(kind: str, plan: Plan, peaks: list[float]) -> Row:
    small, large = peaks
    millions = plan.task_records / 1e6
    return Row(
        f"peak memory of a {kind} task at {millions * _TIMES:g} M records of 100 B against {millions:g} M",
        f"flat (≤ {_FLAT}x)",
        f"{large / small:.2f}x ({large:.0f} MiB)",
        large <= _FLAT * small,
        {"mib": peaks},
    )


def _peak_mib(kind: str, folder: Path, size: int) -> float:
    command = [sys.executable, __file__, kind, str(folder), str(size)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(out))


def _batches(count: int) -> Iterator[pa.RecordBatch]:
    """Keyed records as Spark hands them to a sink's task."""
    random = np.random.default_rng(1)
    offsets = pa.py_buffer(np.arange(0, 100 * _BATCH_RECORDS + 1, 100, dtype=np.int32))
    for _ in range(0, count, _BATCH_RECORDS):
        digits = np.frombuffer(b"0123456789abcdef", np.uint8)[random.integers(0, 16, 100 * _BATCH_RECORDS)]
        values = pa.Array.from_buffers(pa.binary(), _BATCH_RECORDS, [None, offsets, pa.py_buffer(digits.tobytes())])
        keys = pa.array([b"key-%06d" % i for i in random.integers(0, 100_000, _BATCH_RECORDS)])
        yield pa.RecordBatch.from_arrays([keys, values], names=["key", "value"])


def _run_sink(folder: str, count: int) -> None:
    with tidelog.Lake(folder) as lake:
        lake.create_topic("records", partitions=_PARTITIONS)
        options = parse_batch({"lake": folder, "topic": "records"}, None)
        known = open_target(lake, "records", None)
        staged = stage(_batches(count), ["key", "value"], options, lake, known, lake.clock.now_ms())
        lake.topic("records").commit(staged["records"], acks=1)


def _run_source(folder: str, count: int) -> None:
    with tidelog.Lake(folder, create=False) as lake:
        state = lake.topic("records").state()
        plans = tuple(("records", plan_fetch(state, "records", p, None, None)) for p in range(_PARTITIONS))
    read = sum(batch.num_rows for batch in read_task(ReadTask(folder, plans, include_headers=False)))
    if read != count:
        raise RuntimeError(f"the task read {read} of {count} records")


def memory_mb() -> float:
    """The memory that this process has now, in MiB; where the machine doesn't tell, the most that it has had."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_memory_mb()
    return pages * resource.getpagesize() / 2**20


def peak_memory_mb() -> float:
    """The most memory that this process has had, in MiB."""
    # ru_maxrss is KiB on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    kind, folder, size = sys.argv[1:]
    {"sink": _run_sink, "source": _run_source}[kind](folder, int(size))
    json.dump(round(peak_memory_mb(), 1), sys.stdout)
