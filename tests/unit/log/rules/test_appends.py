"""The rules of an append: which offsets segments get, which appends are refused, and which are repeats."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry, metadata
from support.shares import decide_alone

from tidelog.log.base.errors import (
    OffsetOutOfRangeError,
    SegmentTooOldError,
    StaleBatchError,
    TopicChangedError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.delta.actions import Add, Txn
from tidelog.log.rules.appends import LogAppendTimeError, Marker
from tidelog.log.rules.topics import decide_delete_records
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

NOW = START_MS + 1000


def there(*more: Any) -> TopicState:
    """p0 ends at 5, its newest record at START_MS; p1 is empty. Then an entry of `more`."""
    entries = [created(), entry(1, add(0, 0, 5), end_txn(0, 5))]
    return apply_all(TopicState(), [*entries, *([entry(2, *more)] if more else [])])


def staged(partition: int, records: int, path: str = "", **more: Any) -> Staged:
    known = {"min_timestamp_ms": NOW, "max_timestamp_ms": NOW, "known_version": 1, "topic_id": "id-1", **more}
    return Staged(partition, path or f"{partition}-{records}", records, size=10, **known)


def decide(state: TopicState, *segments: Staged, **more: Any) -> Any:
    return decide_alone(state, segments, **{"now_ms": NOW, **more})


@pytest.mark.parametrize("segments", [(9,), (8, 1), (1, 8, 1), (2**40,)])
def test_no_offset_is_given_that_no_reader_can_hold(segments: tuple[int, ...]) -> None:
    state = there()
    state.ends[1] = 2**63 - 9
    with pytest.raises(OffsetOutOfRangeError, match=r"partition 1 ends at offset \d+, and .*Nothing was appended"):
        decide(state, *(staged(1, records, f"f{i}") for i, records in enumerate(segments)))


def test_the_last_offset_but_one_is_given() -> None:
    state = there()
    state.ends[1] = 2**63 - 9
    outcome = decide(state, staged(1, 8))
    assert outcome.response == {1: (2**63 - 9, 2**63 - 1)}
    verify_entry(state, entry(2, *outcome.actions), "t")


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=1, max_size=8))
def test_segments_lie_end_to_end_in_their_order(given_: list[tuple[int, int]]) -> None:
    state = there()
    segments = [staged(p, n, f"f{i}") for i, (p, n) in enumerate(given_)]
    outcome = decide(state, *segments)
    one = entry(2, *outcome.actions)
    verify_entry(state, one, "t")
    state.apply(one)
    assert outcome.blind_append
    for p, old_end in ((0, 5), (1, 0)):
        appended = [n for q, n in given_ if q == p]
        assert state.end(p) == old_end + sum(appended)
        if appended:
            assert outcome.response[p] == (old_end, state.end(p))
        assert [s.end - s.base_offset for s in state.live(p) if s.base_offset >= old_end] == appended
    assert outcome.response.keys() == {p for p, _ in given_}


def test_what_an_append_says_of_its_segment() -> None:
    (added, end) = decide(there(), staged(0, 3, "p", min_timestamp_ms=NOW - 2, max_timestamp_ms=NOW)).actions
    assert end == end_txn(0, 8)
    assert isinstance(added, Add)
    assert (added.base_offset, added.end, added.size, added.data_change) == (5, 8, 10, True)
    assert added.stats == (
        '{"numRecords":3,'
        '"minValues":{"position":0,"timestamp":"2023-11-14T22:13:20.998Z"},'
        '"maxValues":{"position":2,"timestamp":"2023-11-14T22:13:21.000Z"}}'
    )


def test_the_modification_time_never_falls() -> None:
    """Delta streams deliver files in its order."""
    for now_ms, wanted in ((START_MS - 5000, START_MS), (NOW, NOW)):
        assert decide(there(), staged(1, 1), now_ms=now_ms).actions[0].modification_ms == wanted


REFUSALS: dict[str, tuple[TopicState, Staged, type[Exception], str]] = {
    "no topic": (TopicState(), staged(0, 1), UnknownTopicError, "does not exist"),
    "a deleted topic": (there(metadata(tidelog_deleted="true")), staged(0, 1), TopicChangedError, "was deleted since"),
    "another life": (there(), staged(0, 1, topic_id="id-0"), TopicChangedError, "deleted and created again"),
    "no such partition": (there(), staged(2, 1), UnknownPartitionError, "no partition 2: it has 2"),
    "below the purge floor": (
        there(Txn("tidelog/purge", 2)),
        staged(0, 1),
        SegmentTooOldError,
        "at version 1, below the purge floor 2",
    ),
}


@pytest.mark.parametrize(("state", "segment", "error", "says"), REFUSALS.values(), ids=REFUSALS)
def test_refusals(state: TopicState, segment: Staged, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        decide(state, staged(1, 1, topic_id=segment.topic_id, known_version=9), segment)


def test_at_the_purge_floor_is_young_enough() -> None:
    assert decide(there(Txn("tidelog/purge", 1)), staged(0, 1)).response == {0: (5, 6)}


# --- markers -----------------------------------------------------------------------------------------------

SEEN = Txn("q", 4)
#  batch, strict -> appended (the new marker), a repeat, or an error
BATCHES = [
    (5, True, "appended"),
    (4, True, "repeat"),
    (3, True, StaleBatchError),
    (5, False, "appended"),
    (4, False, "repeat"),
    (3, False, "repeat"),
]


@pytest.mark.parametrize(("batch", "strict", "wanted"), BATCHES)
def test_a_batch_is_appended_once(batch: int, strict: bool, wanted: Any) -> None:
    marker = Marker("q", batch, strict)
    if wanted is StaleBatchError:
        with pytest.raises(StaleBatchError, match=r"already taken batch 4 .* batch 3.*new checkpoint folder"):
            decide(there(SEEN), staged(0, 1), marker=marker)
        return
    outcome = decide(there(SEEN), staged(0, 1), marker=marker)
    assert bool(outcome.actions) == (wanted == "appended")
    assert outcome.response == ({0: (5, 6)} if outcome.actions else {})
    assert (Txn("q", batch) in outcome.actions) == bool(outcome.actions)


def test_an_empty_batch_leaves_its_marker() -> None:
    assert decide(there(), marker=Marker("q", 0, strict=True)).actions == (Txn("q", 0),)


def test_a_marker_is_not_looked_at_before_the_topic() -> None:
    with pytest.raises(UnknownTopicError):
        decide(TopicState(), marker=Marker("q", 0, strict=True))


# --- LogAppendTime -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("time_ms", "allowed"), [(START_MS - 1, False), (START_MS, True), (NOW, True)])
def test_log_append_time_never_falls_though_clocks_do(time_ms: int, allowed: bool) -> None:
    segment = staged(0, 1, min_timestamp_ms=time_ms, max_timestamp_ms=time_ms)
    assert decide(there(), segment).response  # CreateTime may fall
    if allowed:
        assert decide(there(), segment, log_append_time=True).response
    else:
        with pytest.raises(LogAppendTimeError) as early:
            decide(there(), segment, staged(1, 1), log_append_time=True)
        assert early.value.at_least_ms == START_MS
        assert early.value.retriable


def test_another_partitions_time_does_not_matter() -> None:
    segment = staged(1, 1, min_timestamp_ms=5, max_timestamp_ms=5)
    assert decide(there(), segment, log_append_time=True).response == {1: (0, 1)}


def test_log_append_time_outlives_the_records() -> None:
    state = there()
    state.apply(entry(2, *decide_delete_records(state, "t", {0: -1}, now_ms=NOW).actions))
    assert state.live(0) == []
    early = replace(staged(0, 1), min_timestamp_ms=START_MS - 1)
    with pytest.raises(LogAppendTimeError):
        decide(state, early, log_append_time=True)
