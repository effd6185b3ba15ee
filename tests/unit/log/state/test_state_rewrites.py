"""Which offsets were rewritten, as a topic's state tells readers that remember records."""

import pytest
from support.logs import memory_lake
from support.rewrites import KEYS, SEGMENTS, TAKE_RECORDS_AWAY, append_new, fill_rounds, merge

from tidelog.log.state.rewrites import MOST_REWRITES, Rewrite, Rewrites

EVERYTHING = SEGMENTS * KEYS


@pytest.mark.parametrize(
    ("kind", "ranges"),
    [
        ("forget", [(0, EVERYTHING)]),
        ("compaction", [(0, EVERYTHING - KEYS)]),
        ("delete-records", [(0, 10), (0, 12)]),
        ("retention", [(0, 15), (0, 15)]),
        ("repair", [(10, 15)]),
    ],
)
def test_what_takes_records_away_is_a_rewrite_of_their_offsets(kind, ranges):
    lake = memory_lake()[0]
    fill_rounds(lake)
    before = lake.topic("t").state().version
    TAKE_RECORDS_AWAY[kind](lake, "t")
    state = lake.topic("t").state()
    found = state.rewrites.since(before)
    assert [(one.partition, one.first, one.end) for one in found] == [(0, *one) for one in ranges]
    assert {one.version for one in found} == {state.rewrites.version} == {state.removed_at}
    assert not state.rewrites.since(state.version)
    append_new(lake)
    assert state.rewrites.touch(0, 0, 30, before)
    assert not state.rewrites.touch(0, 30, 31, before)


def test_a_merge_moves_records_and_is_none():
    lake = memory_lake()[0]
    fill_rounds(lake)
    merge(lake, "t")
    state = lake.topic("t").state()
    assert state.removed_at == state.version
    assert state.rewrites.since(-1) == []


def test_a_deleted_topic_takes_all_of_it():
    lake = memory_lake()[0]
    fill_rounds(lake)
    before = lake.topic("t").state().version
    lake.delete_topic("t")
    state = lake.log("t").door.refresh()
    assert [one[1:] for one in state.rewrites.since(before)] == [(0, 0, EVERYTHING)]


def test_what_came_before_a_checkpoint_is_not_known():
    rewrites = Rewrites()
    rewrites.add([Rewrite(3, 0, 0, 10)])
    rewrites.restored(7)
    assert rewrites.since(6) is None
    assert rewrites.touch(0, 50, 60, 6)
    assert rewrites.since(7) == []
    assert (rewrites.version, rewrites.touch(0, 50, 60, 7)) == (7, False)


def test_only_the_newest_are_kept_and_an_entry_is_kept_or_forgotten_whole():
    rewrites = Rewrites()
    for version in range(1, MOST_REWRITES + 2):
        rewrites.add([Rewrite(version, 0, version, version + 1), Rewrite(version, 1, 0, 1)])
    assert rewrites.since(rewrites.known_since - 1) is None
    found = rewrites.since(rewrites.known_since)
    assert len(found) <= MOST_REWRITES
    assert [one.version for one in found[:2]] == [rewrites.known_since + 1] * 2
    assert rewrites.touch(0, 5, 6, 0)
    assert not rewrites.touch(2, 5, 6, rewrites.known_since)
    assert not rewrites.touch_at_all(0, MOST_REWRITES + 2, MOST_REWRITES + 3)


@pytest.mark.parametrize(
    ("partition", "first", "end", "version", "expected"),
    [
        (0, 10, 20, 4, True),
        (0, 19, 30, 4, True),
        (0, 0, 10, 4, False),
        (0, 20, 30, 4, False),
        (1, 10, 20, 4, False),
        (0, 10, 20, 5, False),
    ],
)
def test_only_what_overlaps_and_is_of_before_is_touched(partition, first, end, version, expected):
    rewrites = Rewrites()
    rewrites.add([Rewrite(5, 0, 10, 20)])
    assert rewrites.touch(partition, first, end, version) is expected
