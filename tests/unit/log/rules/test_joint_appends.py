"""The rule of a joint append: several writers' parts in one entry, an answer for each, and none of them twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry

from tidelog.log.base.errors import (
    DuplicateSegmentError,
    OutOfOrderSequenceError,
    SegmentTooOldError,
    TopicChangedError,
    UnknownPartitionError,
)
from tidelog.log.delta.actions import Txn
from tidelog.log.delta.layout import PURGE_TXN
from tidelog.log.rules.appends import (
    ConfigurationChangedError,
    LogAppendTimeError,
    PartlyRepeatedError,
    UnsettledRequestError,
)
from tidelog.log.rules.joint_appends import StagedShare, decide_joint_append
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.rules.topics import decide_delete_records
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

NOW = START_MS + 1000
EPOCH = 2**32


def there(*more: Any) -> TopicState:
    """p0 ends at 5, its newest record at START_MS; p1 is empty. Then an entry of `more`."""
    entries = [created(), entry(1, add(0, 0, 5), end_txn(0, 5))]
    return apply_all(TopicState(), [*entries, *([entry(2, *more)] if more else [])])


def segment(partition: int, records: int, name: str, **more: Any) -> Staged:
    known = {"min_timestamp_ms": NOW, "max_timestamp_ms": NOW, "known_version": 1, "topic_id": "id-1", **more}
    return Staged(partition, f"partition={partition}/1-{name}.parquet", records, size=10, **known)


def part(*segments: Staged, producers: Any = (), configuration: str = "c", **more: Any) -> StagedShare:
    return StagedShare(segments, configuration, producers, **more)


def decide(state: TopicState, *parts: StagedShare, **more: Any) -> Any:
    return decide_joint_append(state, "t", parts, **{"configuration": "c", "now_ms": NOW, **more})


def landed(state: TopicState, *parts: StagedShare, **more: Any) -> Any:
    """The answers, after the entry was applied."""
    outcome = decide(state, *parts, **more)
    if outcome.actions:
        one = entry(state.version + 1, *outcome.actions)
        verify_entry(state, one, "t")
        state.apply(one)
    return outcome.response


def sends(first: int, count: int, producer: int = 7, partition: int = 0) -> ProducerBatch:
    return ProducerBatch(producer, 0, {partition: (first, count)}, is_pipelined=True)


@given(st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=1, max_size=4), max_size=4))
def test_parts_lie_end_to_end_in_their_order_and_each_hears_where(given_: list[list[tuple[int, int]]]) -> None:
    state = there()
    parts = [part(*(segment(p, n, f"{at}.{i}") for i, (p, n) in enumerate(of))) for at, of in enumerate(given_)]
    answers = landed(state, *parts)
    ends = {0: 5, 1: 0}
    for of, answer in zip(given_, answers, strict=True):
        expected = {}
        for p, n in of:
            expected[p] = (expected.get(p, (ends[p],))[0], ends[p] + n)
            ends[p] += n
        assert answer == expected
    assert {p: state.end(p) for p in (0, 1)} == ends
    # A repeat, of all or of one, gets the first answer.
    assert landed(state, *parts) == answers
    for one, answer in zip(parts, answers, strict=True):
        assert landed(state, one.repeated()) == [answer]


def test_a_part_that_landed_adds_nothing_beside_a_new_one() -> None:
    state = there()
    first, second = part(segment(0, 2, "a")), part(segment(0, 3, "b"))
    assert landed(state, first) == [{0: (5, 7)}]
    assert landed(state, first.repeated(), second) == [{0: (5, 7)}, {0: (7, 10)}]
    assert state.end(0) == 10


REFUSED = [
    (part(segment(5, 1, "x")), UnknownPartitionError),
    (part(segment(0, 1, "x", topic_id="id-0")), TopicChangedError),
    (part(segment(0, 1, "x"), configuration="other"), ConfigurationChangedError),
    (part(segment(0, 2, "x"), producers=[sends(4, 2)]), OutOfOrderSequenceError),
    (part(segment(0, 4, "x"), producers=[sends(0, 2), sends(2, 2)]), PartlyRepeatedError),
    # All that has sequences is there, and the part has more.
    (part(segment(0, 4, "x"), producers=[sends(0, 2)]), PartlyRepeatedError),
]


@pytest.mark.parametrize(("refused", "error"), REFUSED)
@pytest.mark.parametrize("at", [0, 1])
def test_what_is_wrong_with_one_part_is_its_own_matter(refused: StagedShare, error: type, at: int) -> None:
    state = there(Txn("tidelog/producer/7/0", 1, START_MS))
    good = part(segment(0, 1, "a"), producers=[sends(2, 1)])
    answers = landed(state, *([refused, good] if at == 0 else [good, refused]))
    assert answers[1 - at] == {0: (5, 6)}
    # Behind the other part, a part of what is new overlaps with that one.
    assert isinstance(answers[at], OutOfOrderSequenceError if at and error is PartlyRepeatedError else error)
    assert state.end(0) == 6
    # A refused part leaves nothing behind of its producers.
    assert state.producer(7, 0) == 2


def test_a_segment_that_comes_twice_is_refused_the_second_time() -> None:
    state = there()
    first, second = landed(state, part(segment(0, 1, "a")), part(segment(0, 1, "a")))
    assert first == {0: (5, 6)}
    assert isinstance(second, DuplicateSegmentError)


def test_a_part_below_the_purge_floor_is_refused() -> None:
    state = there(Txn(PURGE_TXN, 2))
    (answer,) = landed(state, part(segment(0, 1, "a")))
    assert isinstance(answer, SegmentTooOldError)


def test_batches_of_one_producer_in_several_parts_are_judged_one_after_another() -> None:
    state = there()
    parts = [
        part(segment(0, 2, "a"), producers=[sends(0, 2)]),
        part(segment(0, 3, "b"), producers=[sends(2, 3)]),
        part(segment(0, 2, "c"), producers=[sends(0, 2)]),  # the first one again, staged by another broker
        part(segment(0, 1, "d"), producers=[sends(9, 1)]),
    ]
    *good, gap = landed(state, *parts)
    assert good == [{0: (5, 7)}, {0: (7, 10)}, {}]
    assert isinstance(gap, OutOfOrderSequenceError)
    assert state.producer(7, 0) == 4


def test_log_append_time_does_not_fall_within_an_entry() -> None:
    state = there()
    late, early = NOW + 10, NOW - 10
    parts = [
        part(segment(0, 1, "a", min_timestamp_ms=late, max_timestamp_ms=late)),
        part(segment(0, 1, "b", min_timestamp_ms=early, max_timestamp_ms=early)),
        part(segment(1, 1, "c", min_timestamp_ms=early, max_timestamp_ms=early)),
    ]
    first, second, other = landed(state, *parts, log_append_time=True)
    assert (first, other) == ({0: (5, 6)}, {1: (0, 1)})
    assert isinstance(second, LogAppendTimeError)
    assert second.at_least_ms == late


def test_the_log_is_asked_where_segments_have_left_since_the_part_was_staged() -> None:
    state = there(*decide_delete_records(there(), "t", {0: 5}, now_ms=NOW).actions)
    assert state.removed_at == 2
    fresh, doubtful = part(segment(0, 1, "a")), part(segment(1, 1, "b"), new_until=-1)
    asked = part(segment(1, 1, "c"), new_until=2)
    answers = landed(state, fresh, doubtful, asked)
    assert (answers[0], answers[2]) == ({0: (5, 6)}, {1: (0, 1)})
    assert isinstance(answers[1], UnsettledRequestError)
