"""What of a compacted topic is due: Kafka's documented rules as tables over the pure plan.

A partition is drawn as its segments [base, end) with bytes, age of the commit and of the records, in seconds before
NOW; the log ends with the last of them.
"""

from dataclasses import dataclass
from typing import Any

import pytest

from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Metadata, Txn
from tidelog.log.segments.writer import stats_json
from tidelog.log.state.topic_state import PARTITIONS, TOPIC_ID, Segment, TopicState
from tidelog.retention.compaction.plan import (
    CompactionPlan,
    PartitionCompaction,
    TombstoneMark,
    completed,
    is_active,
    plan_compaction,
)

NOW = 2_000_000_000_000
DAY = 86_400
MARK = TombstoneMark(20, NOW - DAY * 1000)


@dataclass(frozen=True)
class Seg:
    base: int
    end: int
    size: int = 100
    age_s: float = 10
    oldest_s: float | None = None
    newest_s: float | None = None

    def segment(self) -> Segment:
        oldest, newest = (self.age_s if s is None else s for s in (self.oldest_s, self.newest_s))
        records = self.end - self.base
        stats = stats_json(records, records - 1, NOW - int(oldest * 1000), NOW - int(newest * 1000))
        path = f"partition=0/1-{self.base}.parquet"
        modified_ms = NOW - int(self.age_s * 1000)
        return Segment(path, 0, self.base, self.end, self.size, modified_ms, stats)


def state_of(segments: list[Seg], start: int = 0, clean: int = 0, mark: TombstoneMark | None = None) -> TopicState:
    state = TopicState(version=7, segments={0: [s.segment() for s in segments]}, starts={0: start}, cleans={0: clean})
    state.metadata = Metadata("id", "t", "", (), {TOPIC_ID: "life", PARTITIONS: "1"}, 0)
    state.ends[0] = segments[-1].end if segments else start
    if mark is not None:
        for prefix, number in (
            (layout.TOMBSTONES_PREFIX, mark.below),
            (layout.TOMBSTONES_SINCE_PREFIX, mark.since_ms),
        ):
            state.txns[f"{prefix}0"] = Txn(f"{prefix}0", number)
    return state


def due(segments: list[Seg], config: dict[str, str] | None = None, **state: Any) -> tuple[int, int, int] | None:
    """(first dirty offset, end, tombstones go below) of what is due, None for nothing."""
    plan = planned(segments, config, **state)
    return (
        (plan.partitions[0].dirty, plan.partitions[0].end, plan.partitions[0].tombstones_below)
        if plan.partitions
        else None
    )


def planned(segments: list[Seg], config: dict[str, str] | None = None, **state: Any) -> CompactionPlan:
    parsed = TopicConfig.parse({"cleanup.policy": "compact", **(config or {})})
    return plan_compaction(state_of(segments, **state), parsed, NOW)


THREE = [Seg(0, 10), Seg(10, 20), Seg(20, 30)]
OLD = 8 * DAY


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("compact", (0, 20, 0)), ("compact,delete", (0, 20, 0)), ("delete", None), ("", None)],
)
def test_the_policy_says_whether_a_topic_is_compacted(policy: str, expected: Any) -> None:
    assert due(THREE, {"cleanup.policy": policy}) == expected


@pytest.mark.parametrize(
    ("segments", "config", "end"),
    [
        pytest.param(THREE, {}, 20, id="the newest segment is active"),
        pytest.param([Seg(0, 10)], {}, None, id="a single one is, too"),
        pytest.param([], {}, None, id="nothing there"),
        pytest.param([*THREE[:2], Seg(20, 30, age_s=OLD)], {}, 30, id="not when it is older than segment.ms"),
        pytest.param([Seg(0, 10, age_s=61)], {"segment.ms": "60000"}, 10, id="segment.ms may be set"),
        pytest.param([Seg(0, 10, age_s=60)], {"segment.ms": "60000"}, None, id="just as old as segment.ms"),
        pytest.param(
            [Seg(0, 10, age_s=5, oldest_s=OLD, newest_s=OLD)], {}, None, id="old records, just written: active"
        ),
        pytest.param(
            [Seg(0, 10, age_s=61)], {"max.compaction.lag.ms": "60000"}, 10, id="max.compaction.lag.ms ends it as well"
        ),
    ],
)
def test_the_active_segment_is_untouched(segments: list[Seg], config: dict[str, str], end: int | None) -> None:
    found = due(segments, config)
    assert (None if found is None else found[1]) == end


@pytest.mark.parametrize(
    ("segments", "lag_ms", "end"),
    [
        pytest.param([Seg(0, 10, age_s=90), Seg(10, 20, age_s=50), Seg(20, 30)], 60_000, 10, id="up to the younger"),
        pytest.param([Seg(0, 10, age_s=50), Seg(10, 20, age_s=90), Seg(20, 30)], 60_000, None, id="it comes first"),
        pytest.param([Seg(0, 10, age_s=90, newest_s=-5), Seg(10, 20)], 60_000, None, id="a timestamp in the future"),
        pytest.param([Seg(0, 10, newest_s=-5), Seg(10, 20)], 0, 10, id="no lag: timestamps don't count"),
        pytest.param([Seg(0, 10, age_s=60), Seg(10, 20)], 60_000, 10, id="just as old as the lag"),
    ],
)
def test_records_younger_than_min_compaction_lag_stay(segments: list[Seg], lag_ms: int, end: int | None) -> None:
    found = due(segments, {"min.compaction.lag.ms": str(lag_ms)})
    assert (None if found is None else found[1]) == end


@pytest.mark.parametrize(
    ("sizes", "clean", "ratio", "is_due"),
    [
        pytest.param((100, 100), 10, "0.5", False, id="half is not more than half"),
        pytest.param((100, 101), 10, "0.5", True, id="more than half"),
        pytest.param((100, 1), 10, "0.0", True, id="0: anything dirty"),
        pytest.param((100, 0), 10, "0.0", False, id="0, nothing dirty"),
        pytest.param((100, 100), 0, "1.0", False, id="1: never by the ratio"),
        pytest.param((100, 100), 0, "0.99", True, id="all is dirty"),
        pytest.param((100, 100), 20, "0.0", False, id="all is clean"),
        pytest.param((100, 100), 5, "0.7", True, id="a segment on both sides counts by its offsets: 150 of 200"),
        pytest.param((100, 100), 5, "0.8", False, id="and so not more"),
    ],
)
def test_the_dirty_ratio_is_over_bytes(sizes: tuple[int, int], clean: int, ratio: str, is_due: bool) -> None:
    """The active segment counts for neither side, as in Kafka."""
    segments = [Seg(0, 10, sizes[0]), Seg(10, 20, sizes[1]), Seg(20, 30, 10_000)]
    assert (due(segments, {"min.cleanable.dirty.ratio": ratio}, clean=clean) is not None) == is_due


@pytest.mark.parametrize(
    ("oldest_s", "clean", "config", "is_due"),
    [
        pytest.param(61, 10, {}, True, id="a dirty record has waited too long"),
        pytest.param(60, 10, {}, False, id="not quite"),
        pytest.param(61, 20, {}, False, id="it is clean"),
        pytest.param(61, 10, {"min.compaction.lag.ms": "60000"}, False, id="its segment is still within the least lag"),
    ],
)
def test_max_compaction_lag_forces(oldest_s: float, clean: int, config: dict[str, str], is_due: bool) -> None:
    segments = [Seg(0, 10, 10_000, age_s=900), Seg(10, 20, 1, oldest_s=oldest_s, newest_s=1), Seg(20, 30)]
    assert (due(segments, {"max.compaction.lag.ms": "60000", **config}, clean=clean) is not None) == is_due


@pytest.mark.parametrize(
    ("start", "clean", "dirty"),
    [(0, 0, 0), (0, 10, 10), (15, 10, 15), (15, 0, 15), (10, 15, 15)],
)
def test_dirty_begins_at_the_clean_offset_or_the_log_start(start: int, clean: int, dirty: int) -> None:
    plan = planned(THREE, {"min.cleanable.dirty.ratio": "0"}, start=start, clean=clean).partitions[0]
    assert (plan.start, plan.dirty, plan.end) == (start, dirty, 20)
    assert [s.base_offset for s in plan.segments] == ([0, 10] if start < 10 else [10])


@pytest.mark.parametrize(
    ("waited_s", "retention_ms", "start", "expected"),
    [
        pytest.param(100, 100_000, 0, (20, 20, 20), id="due: a reason by itself"),
        pytest.param(99, 100_000, 0, None, id="still waiting"),
        pytest.param(0, 0, 0, (20, 20, 20), id="no retention: the next run"),
        pytest.param(100, 100_000, 20, None, id="the log start has passed them"),
    ],
)
def test_tombstones_go_after_delete_retention(waited_s: int, retention_ms: int, start: int, expected: Any) -> None:
    mark = TombstoneMark(20, NOW - waited_s * 1000)
    assert due(THREE, {"delete.retention.ms": str(retention_ms)}, clean=20, start=start, mark=mark) == expected


def test_the_dirtiest_partition_comes_first() -> None:
    state = state_of(THREE, clean=10)
    state.metadata = Metadata("id", "t", "", (), {TOPIC_ID: "life", PARTITIONS: "2"}, 0)
    state.segments[1], state.ends[1] = state.segments[0], 30
    plan = plan_compaction(
        state, TopicConfig.parse({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}), NOW
    )
    assert [one.partition for one in plan.partitions] == [1, 0]
    assert plan.topic_id == "life"


def partition(dirty: int, end: int, below: int = 0, mark: TombstoneMark | None = None) -> PartitionCompaction:
    return PartitionCompaction(0, 0, dirty, end, below, mark, ())


WAITING = TombstoneMark(20, NOW - 1)


@pytest.mark.parametrize(
    ("plan", "tombstones", "noted"),
    [
        pytest.param(partition(0, 20), 0, {"clean": 20}, id="no tombstones, no mark"),
        pytest.param(partition(0, 20), 3, {"clean": 20, "tombstones": 20, "tombstones-since": NOW}, id="some: a mark"),
        pytest.param(partition(20, 30, 0, WAITING), 3, {"clean": 30}, id="the mark waits, later ones with the next"),
        pytest.param(partition(20, 20, 20, MARK), 0, {"tombstones": 0}, id="all are gone"),
        pytest.param(
            partition(20, 30, 20, MARK), 0, {"clean": 30, "tombstones": 0}, id="all are gone, and no new ones came"
        ),
        pytest.param(
            partition(20, 30, 20, MARK),
            1,
            {"clean": 30, "tombstones": 30, "tombstones-since": NOW},
            id="the old ones are gone, a new one begins to wait",
        ),
        pytest.param(
            partition(25, 25, 20, MARK),
            0,
            {"tombstones": 25, "tombstones-since": NOW},
            id="those that came while the mark waited begin to wait",
        ),
    ],
)
def test_what_a_compaction_notes(plan: PartitionCompaction, tombstones: int, noted: dict[str, int]) -> None:
    told = {
        txn.app_id.removeprefix("tidelog/").removesuffix("/0"): txn.version for txn in completed(plan, tombstones, NOW)
    }
    assert told == noted


def test_whether_a_segment_is_active_is_told_by_its_commit() -> None:
    config = TopicConfig.parse({"segment.ms": "60000"})
    assert is_active([Seg(0, 10, age_s=60).segment()], config, NOW)
    assert not is_active([Seg(0, 10, age_s=61, newest_s=-100).segment()], config, NOW)
    assert not is_active([], config, NOW)
