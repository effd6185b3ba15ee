"""The rule of a joint append: several writers' shares in one entry, an answer for each, and none of them twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry
from support.shares import in_short

from tidelog.log.base.errors import (
    DuplicateSegmentError,
    MissingSegmentError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    SegmentTooOldError,
    StorageUnavailableError,
    TopicChangedError,
    UnknownPartitionError,
)
from tidelog.log.delta.actions import Txn
from tidelog.log.delta.layout import PURGE_TXN
from tidelog.log.rules.appends import (
    UNSETTLED,
    AppendAnswer,
    CommitOutcome,
    HeadMovedError,
    LogAppendTimeError,
    Marker,
    PartlyRepeatedError,
    StagedShare,
    committed,
    refusal,
)
from tidelog.log.rules.joint_appends import decide_joint_append
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


def share(*segments: Staged, producers: Any = (), configuration: str = "c", **more: Any) -> StagedShare:
    return StagedShare(segments, configuration, producers, **more)


def decide(state: TopicState, *shares: StagedShare, **more: Any) -> Any:
    return decide_joint_append(state, "t", shares, **{"configuration": "c", "now_ms": NOW, **more})


def landed(state: TopicState, *shares: StagedShare, **more: Any) -> Any:
    """The answers in short, after the entry was applied."""
    outcome = decide(state, *shares, **more)
    if outcome.actions:
        one = entry(state.version + 1, *outcome.actions)
        verify_entry(state, one, "t")
        state.apply(one)
    return in_short(outcome.response)


def sends(first: int, count: int, producer: int = 7, partition: int = 0) -> ProducerBatch:
    return ProducerBatch(producer, 0, {partition: (first, count)}, is_pipelined=True)


@given(st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9)), min_size=1, max_size=4), max_size=4))
def test_shares_lie_end_to_end_in_their_order_and_each_hears_where(given_: list[list[tuple[int, int]]]) -> None:
    state = there()
    shares = [share(*(segment(p, n, f"{at}.{i}") for i, (p, n) in enumerate(of))) for at, of in enumerate(given_)]
    answers = landed(state, *shares)
    ends = {0: 5, 1: 0}
    for of, answer in zip(given_, answers, strict=True):
        expected = {}
        for p, n in of:
            expected[p] = (expected.get(p, (ends[p],))[0], ends[p] + n)
            ends[p] += n
        assert answer == expected
    assert {p: state.end(p) for p in (0, 1)} == ends
    # A repeat, of all or of one, gets the first answer.
    assert landed(state, *shares) == answers
    for one, answer in zip(shares, answers, strict=True):
        assert landed(state, one.repeated()) == [answer]


def test_a_share_that_landed_adds_nothing_beside_a_new_one() -> None:
    state = there()
    first, second = share(segment(0, 2, "a")), share(segment(0, 3, "b"))
    assert landed(state, first) == [{0: (5, 7)}]
    assert landed(state, first.repeated(), second) == [{0: (5, 7)}, {0: (7, 10)}]
    assert state.end(0) == 10


REFUSED = [
    (share(segment(5, 1, "x")), UnknownPartitionError),
    (share(segment(0, 1, "x", topic_id="id-0")), TopicChangedError),
    (share(segment(0, 1, "x"), configuration="other"), AppendAnswer),
    (share(segment(0, 2, "x"), producers=[sends(4, 2)]), OutOfOrderSequenceError),
    (share(segment(0, 4, "x"), producers=[sends(0, 2), sends(2, 2)]), PartlyRepeatedError),
    # All that has sequences is there, and the share has more.
    (share(segment(0, 4, "x"), producers=[sends(0, 2)]), PartlyRepeatedError),
]


@pytest.mark.parametrize(("refused", "error"), REFUSED)
@pytest.mark.parametrize("at", [0, 1])
def test_what_is_wrong_with_one_share_is_its_own_matter(refused: StagedShare, error: type, at: int) -> None:
    state = there(Txn("tidelog/producer/7/0", 1, START_MS))
    good = share(segment(0, 1, "a"), producers=[sends(2, 1)])
    answers = landed(state, *([refused, good] if at == 0 else [good, refused]))
    assert answers[1 - at] == {0: (5, 6)}
    # Behind the other share, a part of what is new overlaps with that one.
    assert isinstance(answers[at], OutOfOrderSequenceError if at and error is PartlyRepeatedError else error)
    assert state.end(0) == 6
    # A refused share leaves nothing behind of its producers.
    assert state.producer(7, 0) == 2


def test_a_segment_that_comes_twice_is_refused_the_second_time() -> None:
    state = there()
    first, second = landed(state, share(segment(0, 1, "a")), share(segment(0, 1, "a")))
    assert first == {0: (5, 6)}
    assert isinstance(second, DuplicateSegmentError)


def test_a_share_below_the_purge_floor_is_refused() -> None:
    state = there(Txn(PURGE_TXN, 2))
    (answer,) = landed(state, share(segment(0, 1, "a")))
    assert isinstance(answer, SegmentTooOldError)


def test_batches_of_one_producer_in_several_parts_are_judged_one_after_another() -> None:
    state = there()
    shares = [
        share(segment(0, 2, "a"), producers=[sends(0, 2)]),
        share(segment(0, 3, "b"), producers=[sends(2, 3)]),
        share(segment(0, 2, "c"), producers=[sends(0, 2)]),  # the first one again, staged by another broker
        share(segment(0, 1, "d"), producers=[sends(9, 1)]),
    ]
    *good, gap = landed(state, *shares)
    assert good == [{0: (5, 7)}, {0: (7, 10)}, {}]
    assert isinstance(gap, OutOfOrderSequenceError)
    assert state.producer(7, 0) == 4


def test_log_append_time_does_not_fall_within_an_entry() -> None:
    state = there()
    late, early = NOW + 10, NOW - 10
    shares = [
        share(segment(0, 1, "a", min_timestamp_ms=late, max_timestamp_ms=late)),
        share(segment(0, 1, "b", min_timestamp_ms=early, max_timestamp_ms=early)),
        share(segment(1, 1, "c", min_timestamp_ms=early, max_timestamp_ms=early)),
    ]
    first, second, other = landed(state, *shares, log_append_time=True)
    assert (first, other) == ({0: (5, 6)}, {1: (0, 1)})
    assert isinstance(second, LogAppendTimeError)
    assert second.at_least_ms == late


def test_the_log_is_asked_where_segments_have_left_since_the_share_was_staged() -> None:
    state = there(*decide_delete_records(there(), "t", {0: 5}, now_ms=NOW).actions)
    assert state.removed_at == 2
    fresh, doubtful = share(segment(0, 1, "a")), share(segment(1, 1, "b"), new_until=-1)
    asked = share(segment(1, 1, "c"), new_until=2)
    answers = landed(state, fresh, doubtful, asked)
    assert (answers[0], answers[2]) == ({0: (5, 6)}, {1: (0, 1)})
    assert answers[1] is UNSETTLED


@pytest.mark.parametrize(
    ("share_", "outcome"),
    [(one, CommitOutcome.STALE) for one, _ in REFUSED]
    + [
        (share(segment(0, 1, "x"), segment(0, 1, "x")), CommitOutcome.REFUSED),
        (share(segment(0, 1, "x"), only_at=4), CommitOutcome.REFUSED),
        (share(segment(0, 1, "x"), only_at=5), CommitOutcome.COMMITTED),
        (share(segment(0, 1, "x"), marker=Marker("q", 1, strict=True)), CommitOutcome.COMMITTED),
    ],
)
def test_what_another_staging_may_mend_is_stale_and_all_else_is_refused(
    share_: StagedShare, outcome: CommitOutcome
) -> None:
    (answer,) = decide(there(Txn("tidelog/producer/7/0", 1, START_MS)), share_).response
    assert answer.outcome is outcome


def test_a_share_for_the_head_counts_what_comes_before_it_in_its_entry() -> None:
    state = there()
    first, second = landed(state, share(segment(0, 2, "a")), share(segment(0, 1, "b"), only_at=5))
    assert first == {0: (5, 7)}
    assert isinstance(second, HeadMovedError)


NEW, IN_DOUBT = share(segment(0, 1, "x")), share(segment(0, 1, "x")).repeated()


@pytest.mark.parametrize(
    ("answer", "share_", "settles"),
    [
        (committed({}), IN_DOUBT, True),
        (refusal(UnknownPartitionError("gone")), IN_DOUBT, True),
        (refusal(OutcomeUnknownError("no answer", request_id="")), NEW, False),
        (refusal(StorageUnavailableError("no answer")), NEW, True),
        (refusal(StorageUnavailableError("no answer")), IN_DOUBT, False),
        (refusal(MissingSegmentError("gone")), IN_DOUBT, True),
    ],
)
def test_what_settles_a_share(answer: AppendAnswer, share_: StagedShare, *, settles: bool) -> None:
    """An error of the store says nothing of a share that may have landed before; that its file is missing does."""
    assert answer.settles(share_) == settles
