"""Maintenance against producers that never rest, and against a power loss: how its entries are made."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import (
    FakeClock,
    add,
    apply_all,
    created,
    end_txn,
    entry,
    memory_lake,
    open_lake,
    read_offsets,
    values,
)

from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.retention import maintenance, merging
from tidelog.retention.expiry import Expiry, in_steps
from tidelog.retention.maintenance import maintain
from tidelog.retention.rewrites import commit


def fed(appends: int, **config: str) -> tuple[Lake, Any, FakeClock]:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=1, config={k.replace("_", "."): v for k, v in config.items()})
    for n in range(appends):
        lake.topic("t").append(values(f"v{n}"))
    return lake, storage, clock


def state_of(*counts: int) -> TopicState:
    """Partitions with this number of segments of ten records each."""
    adds = [add(p, 10 * i, 10 * i + 10) for p, count in enumerate(counts) for i in range(count)]
    ends = [end_txn(p, 10 * count) for p, count in enumerate(counts) if count]
    return apply_all(TopicState(), [created(partitions=len(counts)), entry(1, *adds, *ends)])


@pytest.mark.parametrize(
    ("starts", "most", "steps"),
    [
        ({}, 3, []),
        ({0: 20}, 3, [{0: 20}]),
        ({0: 50}, 2, [{0: 20}, {0: 40}, {0: 50}]),
        ({0: 40}, 2, [{0: 20}, {0: 40}]),
        ({0: 30, 1: 20}, 2, [{0: 20}, {0: 30, 1: 10}, {1: 20}]),
        ({0: 30, 1: 20}, 9, [{0: 30, 1: 20}]),
    ],
)
def test_expiry_lets_go_of_a_limited_number_of_segments_at_once(
    starts: dict[int, int], most: int, steps: list[dict[int, int]]
) -> None:
    state = state_of(5, 2)
    assert [step.starts for step in in_steps(state, Expiry("id-1", starts), most)] == steps


def test_a_merge_lands_beside_a_producer_who_is_faster_many_times() -> None:
    lake, storage, clock = fed(6)
    other = open_lake(storage, clock)
    entries = []

    def race(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and "_delta_log" in path and phase == "before" and len(entries) < 8:
            entries.append(path)
            if len(entries) % 2:  # every second one is the producer's own
                other.topic("t").append(values(f"late-{len(entries)}"))

    storage.hook = race
    report = maintain(lake, only=["merge"])
    storage.hook = lambda *_: None
    assert (report.failed, report.topics[0].merge.lost) == (False, 0)
    assert len(entries) == 8
    assert [v for _, v in read_offsets(lake, "t")][:6] == [f"v{n}" for n in range(6)]
    assert [o for o, _ in read_offsets(lake, "t")] == list(range(10))


def test_a_rewrite_is_decided_once_while_only_appends_come(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, storage, clock = fed(6)
    other = open_lake(storage, clock)
    decided = []
    real = commit.decide_rewrite
    monkeypatch.setattr(commit, "decide_rewrite", lambda *a, **k: decided.append(a) or real(*a, **k))
    raced = []

    def race(method: str, path: str, phase: str) -> None:
        if method == "put_if_absent" and "_delta_log" in path and phase == "before" and len(raced) < 4:
            raced.append(path)
            storage.hook = lambda *_: None
            other.topic("t").append(values("late"))
            storage.hook = race

    storage.hook = race
    maintain(lake, only=["merge"])
    assert (len(raced), len(decided)) == (4, 1)


def test_what_takes_the_place_of_others_is_synced_before_its_entry() -> None:
    lake, storage, _ = fed(6)
    calls: list[tuple[str, str]] = []
    storage.hook = lambda method, path, phase: calls.append((method, path)) if phase == "before" else None
    maintain(lake, only=["merge"])
    storage.hook = lambda *_: None
    (live,) = lake.topic("t").state().live(0)
    entry_at = max(i for i, (method, path) in enumerate(calls) if method == "put_if_absent" and "_delta_log" in path)
    assert calls.index(("sync", f"t/{live.path}")) < entry_at
    assert [path for method, path in calls if method == "sync"] == [f"t/{live.path}"]


def test_very_many_segments_become_one_in_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (merging, maintenance):
        monkeypatch.setattr(module, "MOST_INPUTS", 5)
    lake, _, _ = fed(23)
    before = read_offsets(lake, "t")
    report = maintain(lake, only=["merge"])
    merged = report.topics[0].merge
    assert (merged.before.files, merged.after.files, merged.lost) == (23, 1, 0)
    assert merged.after.bytes == sum(s.size for s in lake.topic("t").state().live(0))
    assert read_offsets(lake, "t") == before


@given(
    history=st.lists(st.one_of(st.integers(1, 5), st.just("merge"), st.just("expire")), max_size=14),
    before=st.integers(0, 40),
)
def test_for_any_history_merging_changes_no_record_and_no_offset(history: list[Any], before: int) -> None:
    lake, _, clock = fed(0, retention_ms="100000")
    expected: list[tuple[int, str]] = []
    for step in history:
        clock.pass_s(10)
        if step == "merge":
            maintain(lake, only=["merge"])
        elif step == "expire":
            maintain(lake, only=["retention"])
            start = lake.offsets("t")[0][0]
            expected = [(o, v) for o, v in expected if o >= start]
        else:
            end = lake.offsets("t")[0][1]
            texts = [f"{end + i}" for i in range(step)]
            lake.topic("t").append(values(*texts))
            expected.extend((end + i, text) for i, text in enumerate(texts))
        assert read_offsets(lake, "t") == expected
    lake.delete_records("t", {0: min(before, lake.offsets("t")[0][1])})
    start, end = lake.offsets("t")[0]
    maintain(lake, only=["merge"])
    assert lake.offsets("t")[0] == (start, end)
    assert read_offsets(lake, "t") == [(o, v) for o, v in expected if o >= start]
