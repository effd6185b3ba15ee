"""Offset commits: one group's beside plain appends, and fifty groups' at once."""

import threading
import time

import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan

import tidelog
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog

_GROUPS = 50
_WARMUP = 50
_RECORDS = 1_000


def run(plan: Plan) -> list[Row]:
    """Time commits of one offset, in turn with appends of one record; then let fifty groups commit all they have."""
    with tidelog.Lake(str(plan.work / "commits")) as lake:
        lake.topic("t").append(pa.table({"value": [b"x"] * _RECORDS}))
        lake.create_topic("other", partitions=1)
        commits_ms, appends_ms = _in_turn(lake, plan.appends)
        each_ms, lost, seconds = _at_once(lake, plan.appends // 10)
    p50 = percentile(commits_ms, 50)
    rate = len(each_ms) / seconds
    return [
        Row(
            "commit of an offset by a group, durable, p50",
            "≤ 3 ms",
            f"{p50:.2f} ms (p99 {percentile(commits_ms, 99):.1f}; an append of one record, acks=all:"
            f" {percentile(appends_ms, 50):.2f})",
            p50 <= 3,
            {"commit_ms": summary(commits_ms), "append_ms": summary(appends_ms)},
        ),
        Row(
            f"{_GROUPS} groups commit at once in one process",
            "none lost",
            f"{f'{lost} LOST' if lost else 'none lost'}, {rate:.0f} commits/s, p50 {percentile(each_ms, 50):.0f} ms",
            not lost,
            {"commit_ms": summary(each_ms), "commits_per_s": round(rate, 1), "lost": lost},
        ),
    ]


def _in_turn(lake: tidelog.Lake, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each commit, and of each append."""
    groups, topic, record = GroupLog(lake), lake.topic("other"), pa.table({"value": [b"x"]})
    commits_ms: list[float] = []
    appends_ms: list[float] = []
    for number in range(-_WARMUP, count):
        began = time.perf_counter()
        groups.commit_offsets("one", {("t", 0): CommittedOffset(number % _RECORDS)})
        committed = time.perf_counter()
        topic.append(record)
        if number >= 0:
            commits_ms.append((committed - began) * 1e3)
            appends_ms.append((time.perf_counter() - committed) * 1e3)
    return commits_ms, appends_ms


def _at_once(lake: tidelog.Lake, each: int) -> tuple[list[float], int, float]:
    """Milliseconds of each commit of all groups, how many groups' last commit is not there, and the seconds in all."""
    groups = GroupLog(lake)
    barrier = threading.Barrier(_GROUPS + 1)
    times_ms: list[float] = []

    def run_group(name: str) -> None:
        barrier.wait()
        for offset in range(1, each + 1):
            began = time.perf_counter()
            groups.commit_offsets(name, {("t", 0): CommittedOffset(offset)})
            times_ms.append((time.perf_counter() - began) * 1e3)

    names = [f"group-{number}" for number in range(_GROUPS)]
    threads = [threading.Thread(target=run_group, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    with tidelog.Lake(lake.uri, create=False) as elsewhere:
        seen = {name: GroupLog(elsewhere).offsets(name).get(("t", 0)) for name in names}
    lost = sum(1 for found in seen.values() if found is None or found.offset != each)
    return times_ms, lost, seconds
