"""Branches of a lake of many segments: their time and space on a disk, requests and bytes on S3, appends meanwhile."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path

from figures import Row, percentile, summary
from lakes import small_batch
from plan import Plan

import tidelog
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.delta import layout
from tidelog.log.segments.staging import stage_records
from tidelog.log.segments.writer import Staged

_PARTITIONS = 8
_PER_ENTRY = 50
_SEGMENT_BYTES = 10_000_000
_S3_SEGMENT_BYTES = 10_000
_MB = 1e6


def run(plan: Plan) -> list[Row]:
    """The rows."""
    files = 1_000 if plan.quick else 10_000
    return [*_on_a_disk(plan, files), *_appends(plan, files), *_on_s3(files)]


def _fill(lake: tidelog.Lake, root: Path, files: int, size: int) -> None:
    """A topic of many segments of this size, files with holes, as a log of appends and a checkpoint name them."""
    lake.create_topic("many", _PARTITIONS)
    lake.create_topic("live", 1)
    topic = lake.topic("many")
    stager = topic.stager()
    stage_records(stager, small_batch(), "many", topic.config(), "murmur2", 0, lake.clock.now_ms())
    pattern = stager.finish()[0]
    for first in range(0, files, _PER_ENTRY):
        known = topic.known.version
        staged = [_sparse(root / "many", pattern, known, n, size) for n in range(first, min(files, first + _PER_ENTRY))]
        topic.commit(staged, acks=1)
    write_checkpoint(lake.storage, "many", max(0, topic.state().version - 20), lake.clock.now_ms())


def _sparse(folder: Path, pattern: Staged, known_version: int, number: int, size: int) -> Staged:
    partition = number % _PARTITIONS
    path = layout.segment_path(partition, known_version, f"{number:032x}")
    (folder / path).parent.mkdir(exist_ok=True)
    with (folder / path).open("wb") as file:
        file.truncate(size)
    return replace(pattern, partition=partition, path=path, size=size, known_version=known_version)


def _on_a_disk(plan: Plan, files: int) -> list[Row]:
    source = plan.work / "source"
    with tidelog.Lake(str(source)) as lake:
        _fill(lake, source, files, _SEGMENT_BYTES)
    os.sync()
    inside, whole, used = [], [], 0
    for n in range(plan.rounds):
        target = plan.work / f"branch-{n}"
        began = time.perf_counter()
        done = _branch(str(source), str(target))
        whole.append(time.perf_counter() - began)
        inside.append(done["took_ms"] / 1000)
        used = _own_bytes(target)
    size = files * _SEGMENT_BYTES / 1e9
    p50 = percentile(inside, 50)
    figures = {"s": summary(inside), "with_the_process_s": summary(whole), "own_bytes": used, "segments": files}
    what = f"a branch of {files:,} segments, {size:,.0f} GB apparent, on one disk"
    return [
        Row(what, "≤ 1 s", f"{p50:.2f} s", p50 <= 1, figures),
        Row(
            "the bytes that the branch takes for itself, folders included",
            "≤ 1 MB",
            f"{used / _MB:.2f} MB",
            used <= _MB,
        ),
    ]


def _branch(source: str, target: str, **environment: str) -> dict[str, int]:
    command = [sys.executable, "-m", "tidelog", "--format", "json", "lake", "branch", source, target]
    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    found: dict[str, int] = json.loads(done.stdout)
    return found


def _own_bytes(root: Path) -> int:
    """The disk space of folders, and of files that have no other name."""
    stats = [path.stat() for path in (root, *root.rglob("*"))]
    return sum(one.st_blocks * 512 for one in stats if one.st_nlink == 1 or (one.st_mode & 0o170000) == 0o040000)


def _appends(plan: Plan, files: int) -> list[Row]:
    """Appends to the lake, while it is branched again and again by another process, and while it is not.

    A third process takes as much of a processor each second as a branch does, and nothing of the disk. What it costs is
    the machine's: it has no core that is free for it.
    """
    source = plan.work / "source"
    samples: dict[str, list[float]] = {"alone": [], "branching": [], "busy": []}
    cpu_s = [0.3]
    table = small_batch()
    with tidelog.Lake(str(source), create=False) as lake:
        topic = lake.topic("live")
        for number in range(plan.rounds):
            beside: dict[str, AbstractContextManager[object]] = {
                "alone": nullcontext(),
                "branching": _beside("branch", str(source), str(plan.work / f"again-{number}"), took=cpu_s),
                "busy": _beside("burn", str(percentile(cpu_s, 50)), took=[]),
            }
            for kind, process in beside.items():
                with process:
                    until = time.perf_counter() + (3 if plan.quick else 10)
                    while time.perf_counter() < until:
                        began = time.perf_counter()
                        topic.append(table)
                        samples[kind].append(time.perf_counter() - began)
                        time.sleep(0.005)
    p99 = {kind: percentile(taken, 99) for kind, taken in samples.items()}
    ratio, control = (p99[kind] / p99["alone"] for kind in ("branching", "busy"))
    latencies = {f"{kind}_s": summary(taken, 5) for kind, taken in samples.items()}
    figures = {**latencies, "segments": files, "branch_cpu_s": summary(cpu_s, 3)}
    return [
        Row(
            "appends' p99 in the source, a branch of it made every second, against none",
            "≤ 1.2x",
            f"{ratio:.2f}x, {p99['branching'] * 1000:.1f} ms",
            ratio <= 1.2,
            figures,
        ),
        Row(
            "the same beside a process that takes as much of a processor, and nothing of the disk",
            "-",
            f"{control:.2f}x, {p99['busy'] * 1000:.1f} ms",
            True,
        ),
    ]


@contextmanager
def _beside(*what: str, took: list[float]) -> Iterator[None]:
    """Meanwhile a process does work each second, and has begun when the block does; `took` gets its processor's s."""
    with subprocess.Popen([sys.executable, __file__, *what], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the first round imports what the others have
        try:
            yield
        finally:
            process.terminate()
            took += [float(line) for line in process.stdout if line.endswith("\n")]


def _each_second(work: Callable[[int], None]) -> None:
    for number in count():
        began, used = time.perf_counter(), time.process_time()
        work(number)
        print(f"{time.process_time() - used:.3f}", flush=True)
        time.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))


def _branch_each_second(source: str, target: str) -> None:
    with tidelog.Lake(source, create=False) as lake:
        _each_second(lambda number: lake.branch(f"{target}-{number}").close())


def _burn_each_second(cpu_s: str) -> None:
    def burn(_: int) -> None:
        until = time.process_time() + float(cpu_s)
        while time.process_time() < until:
            pass

    _each_second(burn)


def _on_s3(files: int) -> list[Row]:
    """By the S3 server that the tests use, whose objects are files: they are put there as such."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support import versitygw  # type: ignore[import-not-found]

    place = versitygw.server().place()
    with tempfile.TemporaryDirectory() as folder, tidelog.Lake(f"{place.uri}/source", options=place.options) as lake:
        local = Path(folder)
        with tidelog.Lake(folder) as made:
            _fill(made, local, files, _S3_SEGMENT_BYTES)
        for path in sorted(local.rglob("*")):
            if path.is_file():
                lake.storage.put(str(path.relative_to(local)), path.read_bytes())
        began = time.perf_counter()
        with lake.branch(f"{place.uri}/branch"):
            took_s = time.perf_counter() - began
        requests = lake.storage.requests.counts()  # type: ignore[attr-defined]
    done = _branch(f"{place.uri}/source", f"{place.uri}/again", **place.environment)
    what = f"a branch of {files:,} segments on S3 (versitygw on this machine)"
    figures = {"segments": files, "bytes": files * _S3_SEGMENT_BYTES, "requests": dict(requests.by_kind)}
    return [
        Row(what, "≤ 60 s", f"{took_s:.1f} s", took_s <= 60, figures),
        Row("bytes of segments that passed the client", "0", str(done["copied_bytes"]), done["copied_bytes"] == 0),
    ]


if __name__ == "__main__":
    if sys.argv[1] == "branch":
        _branch_each_second(*sys.argv[2:])
    else:
        _burn_each_second(*sys.argv[2:])
