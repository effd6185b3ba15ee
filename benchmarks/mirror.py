"""A mirror between two local folders: its throughput beside a plain copy, its lag behind a producer, and a drill."""

import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from pathlib import Path

import numpy as np
import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan

import tidelog

_RECORDS_PER_S = 10_000
_BATCH = 100


def run(plan: Plan) -> list[Row]:
    """The rows."""
    return [_throughput(plan), _lag(plan), _drill(plan)]


def _throughput(plan: Plan) -> Row:
    """Large and small segments, 1 GB of them: the files copied and synced, in turn with a mirror's first copy."""
    source = plan.work / "source"
    size = _fill(source, 100 if plan.quick else 800, 300 if plan.quick else 2_000)
    copies, mirrors, unsynced = [], [], []
    cpu = {"copies": 0.0, "mirrors": 0.0}
    for n in range(plan.rounds):
        target = plan.work / f"copy-{n}"
        began, cpu_before = time.perf_counter(), _cpu_s(resource.RUSAGE_SELF)
        shutil.copytree(source, target)
        unsynced.append(time.perf_counter() - began)
        for path in target.rglob("*"):
            _sync(path)
        copies.append(time.perf_counter() - began)
        cpu["copies"] += _cpu_s(resource.RUSAGE_SELF) - cpu_before
        shutil.rmtree(target)
        began, cpu_before = time.perf_counter(), _cpu_s(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "tidelog", "--format", "json", "mirror", "start", "--once"]
        done = subprocess.run([*command, "--from", str(source), "--to", str(target)], check=True, capture_output=True)
        mirrors.append(time.perf_counter() - began)
        cpu["mirrors"] += _cpu_s(resource.RUSAGE_CHILDREN) - cpu_before
        assert json.loads(done.stdout)["shipped_bytes"] >= size
        shutil.rmtree(target)
    ratio = percentile([c / m for c, m in zip(copies, mirrors, strict=True)], 50)
    figures = {"ratio": ratio, "bytes": size, "copy_s": copies, "mirror_s": mirrors, "copy_without_sync_s": unsynced}
    figures |= {"cpu_s": cpu}
    measured = f"{ratio:.2f}x, {size / percentile(mirrors, 50) / 1e6:.0f} MB/s"
    return Row("mirror of 1 GB against a plain copy that is synced", ">= 0.7x", measured, ratio >= 0.7, figures)


def _cpu_s(who: int) -> float:
    """The processor time of this process, or of its children that have ended, in seconds."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _fill(folder: Path, large_mb: int, small: int) -> int:
    """Segments of 50 MB, and small ones of 100 KB; the bytes of all files."""
    chance = np.random.default_rng(1)
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("large", 1, {"compression.type": "uncompressed"})
        lake.create_topic("small", 4, {"compression.type": "uncompressed"})
        for _ in range(large_mb // 50):
            lake.topic("large").append(_records(chance, 50_000, 1_000))
        for n in range(small):
            table = _records(chance, 100, 1_000)
            lake.topic("small").append(table.append_column("partition", pa.array([n % 4] * 100, pa.int32())), acks=1)
    return sum(path.stat().st_size for path in folder.rglob("partition=*/*.parquet"))


def _records(chance: np.random.Generator, count: int, size: int) -> pa.Table:
    return pa.table({"value": [chance.bytes(size) for _ in range(count)]})


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def _lag(plan: Plan) -> Row:
    """How long after a record was made a reader of the follower can have it."""
    source, target = str(plan.work / "live"), str(plan.work / "follower")
    with tidelog.Lake(source) as lake:
        lake.create_topic("t", 1)
    command = [sys.executable, "-m", "tidelog", "mirror", "start", "--from", source, "--to", target]
    seen: list[tuple[int, float]] = []
    made: list[float] = []
    stop = threading.Event()
    producer = threading.Thread(target=_produce, args=(source, made, stop))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as mirror:
        try:
            _await_topic(target)
            producer.start()
            _watch(target, seen, plan.racing_s)
        finally:
            stop.set()
            if producer.ident is not None:
                producer.join()
            mirror.terminate()
    ends = [end for end, _ in seen]
    first = next(end for end, at in seen if at > made[0] + 1)  # by then both sides have begun
    lags = [seen[at][1] - made[offset] for offset in range(first, ends[-1]) for at in [bisect_left(ends, offset + 1)]]
    p50 = percentile(lags, 50) * 1000
    figures = {"s": summary(lags), "records_per_s": len(lags) / (seen[-1][1] - seen[0][1])}
    return Row("mirror's lag behind 10,000 records/s, p50", "<= 200 ms", f"{p50:.0f} ms", p50 <= 200, figures)


def _drill(plan: Plan) -> Row:
    """Every program of the source is killed, producer and mirror, and the follower is promoted: RPO and RTO."""
    lost, lost_s, back_s, promotion_s = [], [], [], []
    for n in range(plan.rounds):
        source, target = str(plan.work / f"lost-{n}"), str(plan.work / f"promoted-{n}")
        with tidelog.Lake(source) as lake:
            lake.create_topic("t", 1)
        command = [sys.executable, "-m", "tidelog", "mirror", "start", "--from", source, "--to", target]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as mirror:
            try:
                _await_topic(target)
                with subprocess.Popen([sys.executable, __file__, source]) as producer:
                    try:
                        _await_topic(target, records=1)
                        _watch(target, [], plan.racing_s)
                    finally:
                        mirror.kill()  # first, so that no record is counted as shipped that would not have been
                        producer.kill()
                        killed_ms = time.time() * 1000
            finally:
                mirror.kill()
        began = time.perf_counter()
        promote = [sys.executable, "-m", "tidelog", "--format", "json", "--lake", target, "mirror", "promote"]
        done = subprocess.run([*promote, "--source-is-gone"], check=True, capture_output=True)
        promotion_s.append(json.loads(done.stdout)["took_ms"] / 1000)
        with tidelog.Lake(target) as here, tidelog.Lake(source) as there:
            end = _end(here)
            here.topic("t").append(pa.table({"value": [b"on the other side"]}))
            back_s.append(time.perf_counter() - began)
            left = pa.Table.from_batches(there.topic("t").read(0, start=end)) if _end(there) > end else None
        lost.append(0 if left is None else len(left))
        first_ms = killed_ms if left is None else left["timestamp"][0].as_py().timestamp() * 1000
        lost_s.append(max(0.0, killed_ms - first_ms) / 1000)
    rpo, rto = percentile(lost_s, 50), percentile(back_s, 50)
    figures = {"lost_records": lost, "lost_s": summary(lost_s), "first_write_s": summary(back_s)}
    figures |= {"promotion_s": summary(promotion_s)}  # without the start of its process
    measured = f"{rpo * 1000:.0f} ms, {rto:.1f} s"
    return Row(
        "source killed: newest records lost, until a first write",
        "<= 1 s, 10 s",
        measured,
        rpo <= 1 and rto <= 10,
        figures,
    )


def _end(lake: tidelog.Lake) -> int:
    return int(lake.topic("t").offsets()[0][1])


def _await_topic(target: str, records: int = 0) -> None:
    until = time.perf_counter() + 60
    while not _has_topic(target, records):
        if time.perf_counter() > until:
            raise TimeoutError("The mirror shipped nothing for a minute.")
        time.sleep(0.05)


def _watch(target: str, seen: list[tuple[int, float]], seconds: float) -> None:
    """Note for `seconds` when a reader of the follower sees another end of the topic: (end, when)."""
    with tidelog.Lake(target, create=False) as follower:
        topic = follower.topic("t")
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            end = int(topic.offsets()[0][1])
            if end and (not seen or end > seen[-1][0]):
                seen.append((end, time.perf_counter()))
            time.sleep(0.002)


def _has_topic(target: str, records: int) -> bool:
    try:
        with tidelog.Lake(target, create=False) as follower:
            return "t" in follower.topics() and _end(follower) >= records
    except tidelog.errors.TidelogError:
        return False


def _produce(source: str, made: list[float], stop: threading.Event) -> None:
    """Batches at a steady rate; when each record was made."""
    table = pa.table({"value": [b"x" * 100] * _BATCH})
    with tidelog.Lake(source) as lake:
        topic, began = lake.topic("t"), time.perf_counter()
        while not stop.is_set():
            due = int((time.perf_counter() - began) * _RECORDS_PER_S) - len(made)
            if due < _BATCH:
                time.sleep(0.001)
                continue
            batches = due // _BATCH
            now = time.perf_counter()
            made.extend([now] * (batches * _BATCH))
            topic.append(pa.concat_tables([table] * batches))


if __name__ == "__main__":
    _produce(sys.argv[1], [], threading.Event())
