"""Series since the start in bounded memory, and figures of topics."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.figures import figures_of
from tidelog.console.sampler import History
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.state.topic_state import Segment, TopicState

DEFAULTS = LakeConfig.parse({"log.segment.bytes": "16000"})


def test_counts_are_given_as_rates():
    history = History(["records_in", "lag"], rates=["records_in"])
    for at_ms, records, lag in ((1_000, 10, 5), (3_000, 30, None), (4_000, 30, 7), (5_000, 12, 7)):
        history.add(at_ms, {"records_in": records, "lag": lag})
    times, series = history.shown()
    assert times == [1_000, 3_000, 4_000, 5_000]
    assert series["records_in"] == [None, 10.0, 0.0, 0.0]  # a count that falls began again
    assert series["lag"] == [5, None, 7, 7]
    assert history.last() == {"records_in": 0.0, "lag": 7}


def test_nothing_is_known_before_the_first_point():
    history = History(["a"], rates=["a"])
    assert history.shown() == ([], {"a": []})
    assert history.last() == {"a": None}


def test_a_rate_across_an_unknown_point_is_unknown():
    history = History(["a"], rates=["a"])
    for at_ms, value in ((1, 1.0), (2, None), (3, 3.0)):
        history.add(at_ms, {"a": value})
    assert history.shown()[1]["a"] == [None, None, None]


def test_points_that_go_back_in_time_are_left_out():
    history = History(["a"])
    for at_ms in (5, 5, 4, 6):
        history.add(at_ms, {"a": at_ms})
    assert history.shown() == ([5, 6], {"a": [5, 6]})


@given(st.integers(0, 500), st.integers(4, 20))
def test_memory_is_bounded_and_the_start_is_kept(added, points):
    history = History(["a"], rates=["a"], points=points)
    for at in range(added):
        history.add(at * 1_000, {"a": at * 3})
    times, series = history.shown()
    assert len(times) <= points
    assert times[:1] == ([0] if added else [])
    assert len({after - before for before, after in pairwise(times)}) <= 1  # even steps
    assert series["a"][1:] == [3.0] * (len(times) - 1 if times else 0)  # wider steps keep the rates


def segment(base, end, size=100):
    return Segment(f"{base}-{end}", 0, base, end, size, 0, None)


def state(version, *segments, start=0):
    found = TopicState(version=version, segments={0: list(segments)}, starts={0: start})
    found.ends[0] = segments[-1].end if segments else start
    return found


def test_figures_count_what_was_produced_and_not_what_maintenance_wrote():
    first = figures_of(state(1, segment(0, 10)), DEFAULTS)
    assert (first.records, first.bytes, first.files, first.produced) == (10, 100, 1, 0)
    second = figures_of(state(2, segment(0, 10), segment(10, 25, 300)), DEFAULTS, first)
    assert (second.produced, second.produced_bytes) == (15, 300)
    merged = figures_of(state(3, segment(0, 25, 380), start=5), DEFAULTS, second)
    assert (merged.records, merged.files, merged.produced, merged.produced_bytes) == (20, 1, 15, 300)


def test_figures_of_the_same_version_are_not_computed_again():
    first = figures_of(state(1, segment(0, 10)), DEFAULTS)
    assert figures_of(state(1, segment(0, 10), segment(10, 20)), DEFAULTS, first) is first


def test_small_files_are_those_far_below_segment_bytes():
    found = figures_of(
        state(1, segment(0, 1, 99), segment(1, 2, 100), segment(2, 3, 1)),
        LakeConfig.parse({"log.segment.bytes": "1600"}),
    )
    assert (found.files, found.small_files) == (3, 2)
