"""Maintenance without Spark: merging many small segments while a producer goes on, what that does for a reader, and
retention over many.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from figures import Row, percentile, summary
from lakes import RECORDS_PER_APPEND, small_batch, topic_of_many_files
from plan import Plan
from sparks import consume, seconds, session

import tidelog
from tidelog.log.topic import Topic
from tidelog.retention.maintenance import maintain

_TOPIC, _OLD = "fed", "old"
_DAY_MS = 86_400_000
# What a producer of a busy topic sends: well below the ceiling on entries (docs/format.md, 10.5).
_APPENDS_PER_S = 50
_FEWEST_APPENDS = 300
_WARMUP = 50


def run(plan: Plan) -> list[Row]:
    """Read, merge and read again; then let everything of another topic expire."""
    uri = str(plan.work / "maintenance")
    with tidelog.Lake(uri) as lake:
        for name in (_TOPIC, _OLD):
            topic_of_many_files(lake, name, plan.merged_segments)
    spark = session()

    def read() -> float:
        return seconds(lambda: consume(tidelog.spark.read_topic(spark, uri, _TOPIC)))

    before_s = [read() for _ in range(2)]  # some ten seconds each
    merged = _merge(uri)
    with tidelog.Lake(uri, create=False) as lake:  # what came meanwhile, as the next run would
        maintain(lake, only=["merge"], topics=[_TOPIC])
    after_s = [read() for _ in range(plan.many_rounds)]
    spark.stop()
    retention_s, expired = _retention_s(uri)
    faster = percentile(before_s, 50) / percentile(after_s, 50)
    slower = percentile(merged["during_ms"], 99) / percentile(merged["before_ms"], 99)
    figures = {
        "segments": plan.merged_segments,
        "records_per_segment": RECORDS_PER_APPEND,
        "merge_s": round(merged["seconds"], 2),
        "append_before_ms": summary(merged["before_ms"]),
        "append_during_ms": summary(merged["during_ms"]),
        "read_before_s": summary(before_s),
        "read_after_s": summary(after_s),
        "retention_s": round(retention_s, 3),
        "expired_segments": expired,
    }
    segments = f"{plan.merged_segments:,} segments of {RECORDS_PER_APPEND} records"
    return [
        Row(
            f"merging {segments} (`tidelog maintain`, start-up included)",
            "≤ 60 s",
            f"{merged['seconds']:.1f} s",
            merged["seconds"] <= 60 and merged["left"] < 100,
            figures,
        ),
        Row(
            "appends' p99 meanwhile, against before",
            "≤ 3x",
            f"{slower:.2f}x ({percentile(merged['during_ms'], 99):.1f} ms)",
            slower <= 3,
        ),
        Row(
            "reading that topic by Spark, after against before",
            "≥ 10x",
            f"{faster:.1f}x ({percentile(after_s, 50):.2f} s)",
            faster >= 10,
        ),
        Row(
            f"retention over {plan.merged_segments:,} segments, metadata only",
            "≤ 2 s",
            f"{retention_s:.2f} s",
            retention_s <= 2 and expired == plan.merged_segments,
        ),
    ]


def _merge(uri: str) -> dict[str, Any]:
    """Merge in a process of its own while this one appends; appends are timed before it, too."""
    with tidelog.Lake(uri, create=False) as lake:
        topic = lake.topic(_TOPIC)
        _append(topic, lambda done: done < _WARMUP)
        before_ms = _append(topic, lambda done: done < _FEWEST_APPENDS)
        began = time.perf_counter()
        command = [sys.executable, "-m", "tidelog", "maintain", "--lake", uri, "--only", "merge", "--topic", _TOPIC]
        merging = subprocess.Popen(command)  # its report goes into the case's log
        during_ms = _append(topic, lambda _: merging.poll() is None)
        took = time.perf_counter() - began
        if merging.returncode:
            raise RuntimeError(f"the merge ended with code {merging.returncode}")
        appended = _WARMUP + len(before_ms) + len(during_ms)
        left = len(topic.state().live(0))
        start, end = lake.offsets(_TOPIC)[0]
    return {
        "seconds": took,
        "before_ms": before_ms,
        "during_ms": during_ms,
        "left": left - appended,
        "records": (end - start) // RECORDS_PER_APPEND,
    }


def _append(topic: Topic, go_on: Callable[[int], bool]) -> list[float]:
    """Append at a steady pace while `go_on(how many were)`; what each took, in ms."""
    batch = small_batch()
    times: list[float] = []
    due = time.perf_counter()
    while go_on(len(times)):
        began = time.perf_counter()
        topic.append(batch, acks=1)
        times.append((time.perf_counter() - began) * 1e3)
        due = max(due + 1 / _APPENDS_PER_S, time.perf_counter() - 1)
        time.sleep(max(0.0, due - time.perf_counter()))
    return times


def _retention_s(uri: str) -> tuple[float, int]:
    """Seconds in which everything expires, in a lake that is open, and how many segments that were."""
    with tidelog.Lake(uri, create=False) as lake:
        lake.topic(_OLD).state()
        later_ms = lake.clock.now_ms() + 8 * _DAY_MS
        began = time.perf_counter()
        report = maintain(lake, only=["retention"], topics=[_OLD], now_ms=later_ms)
        took = time.perf_counter() - began
        retained = report.topics[0].retention
    return took, 0 if retained is None else retained.segments
