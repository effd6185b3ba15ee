"""How far a group is behind: in records, and in the age of the oldest of them."""

import pytest

from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.operations.groups import Lag, lag_of

NOW_MS = 100_000


def topic(*segments, end, start=0):
    """A topic of one partition; segments are (first offset, end, time in s)."""
    live = [Segment(f"{base}", 0, base, stop, 1, s * 1000, None) for base, stop, s in segments]
    return TopicState(segments={0: live}, ends={0: end}, starts={0: start})


@pytest.mark.parametrize(
    ("segments", "end", "offset", "lag"),
    [
        ([], 0, 0, Lag(0, 0)),
        ([(0, 10, 40), (10, 20, 90)], 20, 0, Lag(20, 60)),
        ([(0, 10, 40), (10, 20, 90)], 20, 9, Lag(11, 60)),
        ([(0, 10, 40), (10, 20, 90)], 20, 10, Lag(10, 10)),
        ([(0, 10, 40), (10, 20, 90)], 20, 19, Lag(1, 10)),
        ([(0, 10, 40), (10, 20, 90)], 20, 20, Lag(0, 0)),
        # Retention took what the group had yet to read: the oldest that is left counts.
        ([(10, 20, 90)], 20, 3, Lag(17, 10)),
        # Compaction left a gap: the next record's age.
        ([(0, 5, 40), (15, 20, 90)], 20, 7, Lag(13, 10)),
        # All that is behind the offset was removed, and its offsets stay.
        ([(0, 5, 40)], 20, 7, Lag(13, 0)),
        # A group that was ahead of a topic that was created again.
        ([(0, 10, 40)], 10, 25, Lag(0, 0)),
        # A clock that is behind the writer's.
        ([(0, 10, 200)], 10, 0, Lag(10, 0)),
    ],
)
def test_lag(segments, end, offset, lag):
    assert lag_of(topic(*segments, end=end), 0, offset, NOW_MS) == lag


def test_a_partition_without_records_has_none():
    assert lag_of(topic(end=0), 3, 0, NOW_MS) == Lag(0, 0)
