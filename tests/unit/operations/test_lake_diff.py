"""What differs between two lakes, and what need not be read to know it."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.branched_lakes import Branched, a_lake
from support.examples import one_in
from support.logs import memory_lake, values
from support.rewrites import merge

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.state.topic_state import Segment
from tidelog.operations.lake_diff.diff import diff
from tidelog.operations.lake_diff.model import LakeDiff, Presence, RecordDiff, TopicDiff
from tidelog.operations.lake_diff.ranges import Side, unshared, windows


def segment(name: str, base: int, end: int, size: int = 100) -> Segment:
    return Segment(name, 0, base, end, size, 0, None)


def side(*segments: Segment, start: int = 0) -> Side:
    return Side(start, segments[-1].end if segments else start, segments)


a, b, c, d = (segment(name, at, at + 10) for name, at in (("a", 0), ("b", 10), ("c", 20), ("d", 20)))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (side(a, b), side(a, b), []),
        (side(a, b), side(a, b, c), [(20, 30)]),
        (side(a, b, c), side(a, b, d), [(20, 30)]),
        (side(segment("merged", 0, 20), c), side(a, b, c), [(0, 20)]),
        (side(a, b), side(b, start=10), [(0, 10)]),
        (side(a, b), side(a, b, start=5), [(0, 5)]),
        (side(a), side(), [(0, 10)]),
        (side(), side(), []),
        (side(a), side(segment("a", 10, 20), start=10), [(0, 20)]),
    ],
)
def test_what_two_lakes_have_in_one_file_is_the_same(ours: Side, theirs: Side, expected: list[tuple[int, int]]) -> None:
    assert unshared(ours, theirs) == expected
    assert unshared(theirs, ours) == expected


def test_large_records_are_compared_a_few_at_once() -> None:
    large = side(segment("large", 0, 10, size=10 * 16 * 1024 * 1024))
    assert list(windows([(0, 5), (8, 10)], large, side())) == [(0, 2), (2, 4), (4, 5), (8, 10)]


# --- topics ------------------------------------------------------------------------------------------------


def branched(**config: str) -> Branched:
    pair = a_lake(**config)
    pair.make()
    return pair


def compared(pair: Branched, topic: str | None = None, **options: object) -> LakeDiff:
    return diff(pair.lake(), pair.branch(), topic, **options)  # type: ignore[arg-type]


def of_topic(pair: Branched, **options: object) -> TopicDiff:
    (found,) = compared(pair, "t", **options).topics
    return found


def test_a_new_branch_holds_the_same_and_nothing_is_read_for_it() -> None:
    found = compared(branched())
    assert not found.differs
    assert [topic.read for topic in found.topics] == [0, 0]


def test_merged_segments_are_read_and_hold_the_same() -> None:
    pair = branched()
    merge(pair.branch(), "t")
    found = of_topic(pair)
    assert (found.differs, found.read) == (False, 3)


def test_records_of_one_side_and_other_records_are_counted_and_shown() -> None:
    pair = branched()
    pair.lake().topic("t").append(values("x", "same"))
    pair.branch().topic("t").append(values("y", "same", "more"))
    found = of_topic(pair)
    assert found.counts == {Presence.A: 0, Presence.B: 1, Presence.BOTH: 1}
    assert found.read == 3
    shown = [(one.where, one.offset, one.a and one.a["value"], one.b and one.b["value"]) for one in found.first]
    assert shown == [(Presence.BOTH, 3, b"x", b"y"), (Presence.B, 5, None, b"more")]
    assert of_topic(pair, shown=1).first == found.first[:1]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"key": [b"k"]}, {"key": [None]}),
        ({"key": [b"k"]}, {"key": [b"l"]}),
        ({"headers": [[{"key": "h", "value": b"1"}]]}, {"headers": [[{"key": "h", "value": b"2"}]]}),
        ({"headers": [[{"key": "h", "value": None}]]}, {}),
        (
            {"timestamp": pa.array([1], pa.timestamp("us", "UTC"))},
            {"timestamp": pa.array([2], pa.timestamp("us", "UTC"))},
        ),
    ],
)
def test_each_part_of_a_record_counts(ours: dict, theirs: dict) -> None:
    pair = branched(**{"message.timestamp.before.max.ms": str(2**62)})
    for lake, columns in ((pair.lake(), ours), (pair.branch(), theirs)):
        lake.topic("t").append(pa.table({"value": [b"v"]} | columns))
    assert of_topic(pair).counts[Presence.BOTH] == 1


def test_deleted_records_and_other_topics_differ() -> None:
    pair = branched()
    pair.lake().delete_records("t", {0: 1})
    pair.branch().create_topic("new", 1)
    pair.lake().delete_topic("u")
    found = {topic.topic: topic for topic in compared(pair).topics}
    assert found["t"].counts[Presence.B] == 1
    assert (found["new"].where, found["u"].where) == (Presence.B, Presence.B)
    with pytest.raises(UnknownTopicError, match="is in neither of"):
        compared(pair, "neither")


def test_topics_that_were_created_apart_are_two() -> None:
    pair = branched()
    for lake in (pair.lake(), pair.branch()):
        lake.create_topic("apart", 1 if lake.uri == pair.source.uri else 2, {})
    (found,) = compared(pair, "apart").topics
    assert found.note == "the two are not one topic: each was created by itself"
    assert found.partitions == (1, 2)


def test_configurations_and_groups_are_compared() -> None:
    pair = branched()
    pair.branch().alter_topic("t", config={"retention.ms": "7"})
    pair.lake().alter_config({"num.partitions": "9"})
    GroupLog(pair.branch()).commit_offsets("g", {("t", 0): CommittedOffset(3)})
    GroupLog(pair.lake()).commit_offsets("h", {("t", 0): CommittedOffset(0)})
    found = compared(pair)
    assert found.config == {"num.partitions": ("9", None)}
    assert [topic.config for topic in found.topics] == [{"retention.ms": (None, "7")}, {}]
    assert [(one.group, one.where, dict(one.positions)) for one in found.groups] == [
        ("g", Presence.BOTH, {("t", 0): (1, 3)}),
        ("h", Presence.A, {("t", 0): (0, None)}),
    ]


# --- by key ------------------------------------------------------------------------------------------------


def key_of(found: RecordDiff) -> bytes:
    return (found.a or found.b or {})["key"]


def keyed(lake: object, *pairs: tuple[str, str | None]) -> None:
    table = {"key": [k.encode() for k, _ in pairs], "value": [None if v is None else v.encode() for _, v in pairs]}
    lake.topic("t").append(pa.table(table))  # type: ignore[attr-defined]


def test_keys_are_compared_by_their_newest_records() -> None:
    pair = a_lake()
    keyed(pair.lake(), ("same", "1"), ("changed", "1"), ("gone", "1"), ("back", "1"))
    pair.make()
    keyed(pair.lake(), ("changed", "2"), ("back", "2"), ("back", "1"), ("mine", "1"))
    keyed(pair.branch(), ("gone", None), ("same", "2"), ("same", "1"), ("theirs", "1"))
    found = of_topic(pair, by_key=True)
    shown = {
        (one.a or one.b)["key"]: (one.where, one.a and one.a["value"], one.b and one.b["value"]) for one in found.first
    }  # type: ignore[index]
    assert shown == {
        b"changed": (Presence.BOTH, b"2", b"1"),
        b"gone": (Presence.A, b"1", None),
        b"mine": (Presence.A, b"1", None),
        b"theirs": (Presence.B, None, b"1"),
    }
    assert found.counts == {Presence.A: 2, Presence.B: 1, Presence.BOTH: 1}


def test_by_key_a_compacted_side_holds_the_same() -> None:
    pair = a_lake(**{"cleanup.policy": "delete"})
    keyed(pair.lake(), ("k", "1"), ("k", "2"))
    pair.make()
    merge(pair.branch(), "t")
    assert not of_topic(pair, by_key=True).differs


@one_in(4)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from(["1", "2", None])), max_size=8))
def test_by_key_is_what_two_folds_say(script: list[tuple[bool, str, str | None]]) -> None:
    pair = a_lake()
    keyed(pair.lake(), ("a", "1"), ("b", "2"))
    pair.make()
    folds: tuple[dict, dict] = ({"a": "1", "b": "2"}, {"a": "1", "b": "2"})
    for ours, key, value in script:
        keyed(pair.lake() if ours else pair.branch(), (key, value))
        folds[not ours][key] = value
    folds = tuple({k: v for k, v in fold.items() if v is not None} for fold in folds)  # type: ignore[assignment]
    expected = {k for k in "abc" if folds[0].get(k) != folds[1].get(k)}
    found = of_topic(pair, by_key=True).first
    assert {key_of(one).decode() for one in found} == expected


def test_two_lakes_that_know_nothing_of_each_other_are_compared() -> None:
    lakes = [memory_lake()[0] for _ in range(2)]
    for lake in lakes:
        lake.create_topic("t", 1)
        lake.topic("t").append(values("a", timestamp=[datetime.fromtimestamp(1_700_000_000, UTC)]))
    (found,) = diff(*lakes, "t").topics
    assert (found.counts[Presence.BOTH], found.read) == (0, 1)
