"""Appends of 100 records, and opening a topic, at few and at many live files."""

import time

from figures import Row, percentile, summary
from lakes import small_batch, topic_of_many_files
from plan import Plan

import tidelog

_FEW = 100
_OPEN_S = 0.12
_WARMUP = 50


def run(plan: Plan) -> list[Row]:
    """Append in turn to a topic of few and to one of many live files; open both afresh."""
    uri = str(plan.work / "append")
    with tidelog.Lake(uri) as lake:
        topic_of_many_files(lake, "few", _FEW)
        began = time.perf_counter()
        topic_of_many_files(lake, "many", plan.many_files)
        built_s = time.perf_counter() - began
    opens = {name: [_open_s(uri, name) for _ in range(5)] for name in ("few", "many")}
    with tidelog.Lake(uri) as lake:
        few_ms, many_ms = _append_in_turn(lake, plan.appends)
    few, many = percentile(few_ms, 50), percentile(many_ms, 50)
    open_s = percentile(opens["many"], 50)
    figures = {"few_ms": summary(few_ms), "many_ms": summary(many_ms)}
    return [
        Row(
            "append of 100 records (segment and entry, acks=1), p50 at 100 live files",
            "≤ 3 ms",
            f"{few:.2f} ms (p99 {percentile(few_ms, 99):.1f})",
            few <= 3,
            figures,
        ),
        Row(
            f"the same at {plan.many_files:,} live files",
            "≤ 1.5x",
            f"{many / few:.2f}x ({many:.2f} ms)",
            many <= 1.5 * few,
            figures,
        ),
        Row(
            f"opening a topic of {plan.many_files:,} unmerged appends, p50",
            f"≤ {_OPEN_S * 1e3:.0f} ms",
            f"{open_s * 1e3:.0f} ms",
            open_s <= _OPEN_S,
            {"open_few_s": summary(opens["few"]), "open_many_s": summary(opens["many"]), "built_s": round(built_s, 2)},
        ),
    ]


def _open_s(uri: str, name: str) -> float:
    began = time.perf_counter()
    lake = tidelog.Lake(uri, create=False)
    lake.topic(name).state()
    took = time.perf_counter() - began
    lake.close()
    return took


def _append_in_turn(lake: tidelog.Lake, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each append to `few` and to `many`."""
    batch = small_batch()
    topics = [lake.topic("few"), lake.topic("many")]
    samples: tuple[list[float], list[float]] = ([], [])
    for number in range(-_WARMUP, count):
        for topic, times in zip(topics, samples, strict=True):
            began = time.perf_counter()
            topic.append(batch, acks=1)
            took_ms = (time.perf_counter() - began) * 1e3
            if number >= 0:
                times.append(took_ms)
    return samples
