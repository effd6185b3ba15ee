"""The topic's rules but for appends: what each decision writes, and every refusal."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS, add, apply_all, created, end_txn, entry, remove, start_txn

from tidelog.log.base.errors import (
    InvalidPartitionsError,
    OffsetOutOfRangeError,
    TopicChangedError,
    TopicExistsError,
    UnknownPartitionError,
    UnknownTopicError,
)
from tidelog.log.delta.actions import Metadata, Remove, Txn
from tidelog.log.delta.disk_format import PROTOCOL
from tidelog.log.rules.topics import (
    Outcome,
    decide_alter,
    decide_create,
    decide_delete,
    decide_delete_records,
    require_partition,
    require_topic,
)
from tidelog.log.state.topic_state import TopicState
from tidelog.log.state.verify import verify_entry

A, B, C = add(0, 0, 5), add(0, 5, 8), add(1, 0, 3)
NOW = START_MS + 1000


def there() -> TopicState:
    """p0: [0, 5) A, [5, 8) B; p1: [0, 3) C; a sink's and a purger's marker."""
    return apply_all(
        TopicState(),
        [
            created(tidelog_retention_ms="7", delta_checkpointInterval="9"),
            entry(1, A, B, C, end_txn(0, 8), end_txn(1, 3)),
            entry(2, Txn("tidelog/sink/q", 4), Txn("tidelog/purge", 1), Txn("tidelog/clean/0", 5)),
        ],
    )


def deleted() -> TopicState:
    return after(there(), decide_delete(there(), "t", now_ms=NOW))


def after(state: TopicState, outcome: Outcome[Any]) -> TopicState:
    """The state after the outcome's entry, which the format's rules must allow."""
    one = entry(state.version + 1, *outcome.actions)
    verify_entry(state, one, "t")
    state.apply(one)
    return state


def create(state: TopicState, partitions: Any = 2, **overrides: str) -> Outcome[str]:
    return decide_create(
        state,
        "t",
        partitions,
        overrides,
        {"delta.p": "1"},
        topic_id="id-new",
        table_id="table-new",
        now_ms=NOW,
    )


# --- what every request asks first -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "topic_id", "error", "says"),
    [
        (TopicState(), None, UnknownTopicError, "'t' does not exist. Create it"),
        (TopicState(), "id-1", UnknownTopicError, "does not exist"),
        (deleted(), None, UnknownTopicError, "does not exist"),
        (deleted(), "id-1", TopicChangedError, "was deleted since it was opened"),
        (
            there(),
            "id-0",
            TopicChangedError,
            r"deleted and created again since.*\(its id was id-0\).*Open the topic again",
        ),
    ],
)
def test_a_topic_that_is_not_there(state: TopicState, topic_id: str | None, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        require_topic(state, "t", topic_id)


@pytest.mark.parametrize("topic_id", [None, "", "id-1"])
def test_a_topic_that_is_there(topic_id: str | None) -> None:
    require_topic(there(), "t", topic_id)


@pytest.mark.parametrize("partition", [-1, 2, 100])
def test_a_partition_that_is_not_there(partition: int) -> None:
    with pytest.raises(UnknownPartitionError, match=f"no partition {partition}: it has 2, numbered from 0"):
        require_partition(there(), "t", partition)


# --- create ------------------------------------------------------------------------------------------------


def test_create() -> None:
    outcome = create(TopicState(), 3, **{"retention.ms": "5"})
    protocol, made = outcome.actions
    assert outcome.response == "id-new"
    assert protocol == PROTOCOL
    assert isinstance(made, Metadata)
    assert (made.table_id, made.name, made.created_ms) == ("table-new", "t", NOW)
    assert made.partition_columns == ("partition", "base_offset")
    assert made.configuration == {
        "delta.p": "1",
        "tidelog.format": "2",
        "tidelog.topic.id": "id-new",
        "tidelog.partitions": "3",
        "tidelog.retention.ms": "5",
    }
    state = after(TopicState(), outcome)
    assert (state.exists, state.topic_id, state.partitions) == (True, "id-new", 3)


@pytest.mark.parametrize("partitions", [0, -1, 2**31, "3", 2.0, True])
def test_a_number_of_partitions_that_can_not_be(partitions: Any) -> None:
    with pytest.raises(InvalidPartitionsError, match=r"must be larger than 0.*Give a whole number from 1"):
        create(TopicState(), partitions)
    with pytest.raises(InvalidPartitionsError):
        decide_alter(there(), "t", partitions, {}, {})


def test_create_what_is_there() -> None:
    with pytest.raises(TopicExistsError, match="'t' already exists"):
        create(there())


def test_a_topic_created_again_is_another_one_that_begins_at_0() -> None:
    state = deleted()
    version = state.version
    state = after(state, create(state, 1))
    assert (state.version, state.topic_id, state.partitions) == (version + 1, "id-new", 1)
    assert [(state.start(p), state.end(p), state.cleans.get(p, 0)) for p in (0, 1)] == [(0, 0, 0)] * 2
    assert state.overrides == {}
    assert state.metadata is not None
    assert state.metadata.table_id == "table-1"  # the table goes on: streams of other engines stay on it
    assert state.protocol == PROTOCOL


def test_a_new_life_knows_no_batch_of_the_old_one_but_its_purge_floor() -> None:
    """Versions go on, and with them what a purge floor says; a streaming query's batches are not in this topic."""
    state = after(deleted(), create(deleted()))
    assert state.txn("tidelog/sink/q") is None
    assert state.txn("tidelog/purge") == 1


# --- alter -------------------------------------------------------------------------------------------------


def test_alter_sets_the_configuration_and_leaves_what_others_set() -> None:
    outcome = decide_alter(there(), "t", 5, {"segment.ms": "9"}, {"delta.enableExpiredLogCleanup": "false"})
    (changed,) = outcome.actions
    assert isinstance(changed, Metadata)
    assert changed.configuration == {
        "delta.checkpointInterval": "9",
        "delta.enableExpiredLogCleanup": "false",
        "tidelog.format": "2",
        "tidelog.topic.id": "id-1",
        "tidelog.partitions": "5",
        "tidelog.segment.ms": "9",
    }
    state = after(there(), outcome)
    assert (state.partitions, state.end(0), state.end(4), state.topic_id) == (5, 8, 0, "id-1")


def test_alter_to_what_it_is_writes_nothing() -> None:
    same = decide_alter(there(), "t", 2, {"retention.ms": "7"}, {"delta.checkpointInterval": "9"})
    assert same.actions == ()
    assert decide_alter(there(), "t", None, {"retention.ms": "7"}, {}).actions == ()


def test_partitions_only_grow() -> None:
    with pytest.raises(InvalidPartitionsError, match="has 2 partitions, which is higher than the requested 1"):
        decide_alter(there(), "t", 1, {}, {})


@pytest.mark.parametrize("state", [TopicState(), deleted()])
def test_alter_and_delete_of_what_is_not_there(state: TopicState) -> None:
    for decide in (
        lambda: decide_alter(state, "t", None, {}, {}),
        lambda: decide_delete(state, "t", now_ms=NOW),
        lambda: decide_delete_records(state, "t", {0: 1}, now_ms=NOW),
    ):
        with pytest.raises(UnknownTopicError):
            decide()


# --- delete ------------------------------------------------------------------------------------------------


def test_a_delete_takes_every_segment_and_no_stream_of_another_engine_sees_it() -> None:
    outcome = decide_delete(there(), "t", now_ms=NOW)
    removes = [a for a in outcome.actions if isinstance(a, Remove)]
    assert [r.path for r in removes] == [A.path, B.path, C.path]
    assert {(r.data_change, r.deletion_ms) for r in removes} == {(False, NOW)}
    state = after(there(), outcome)
    assert (state.exists, list(state.all_segments())) == (False, [])
    assert (state.end(0), state.topic_id) == (8, "id-1")


# --- delete records ----------------------------------------------------------------------------------------

#  p0: [0 . . . A)[5 . B)8     before -> (start, paths that leave)
CUTS: dict[int, tuple[int, list[str]]] = {
    0: (0, []),
    3: (3, []),
    5: (5, [A.path]),
    6: (6, [A.path]),
    8: (8, [A.path, B.path]),
    -1: (8, [A.path, B.path]),
}


@pytest.mark.parametrize(("before", "wanted"), CUTS.items())
def test_whole_segments_below_the_start_leave(before: int, wanted: tuple[int, list[str]]) -> None:
    outcome = decide_delete_records(there(), "t", {0: before}, now_ms=NOW)
    start, paths = wanted
    assert outcome.response == {0: start}
    assert [a.path for a in outcome.actions if isinstance(a, Remove)] == paths
    assert bool(outcome.actions) == (start > 0)
    state = after(there(), outcome)
    assert (state.start(0), state.end(0), state.start(1)) == (start, 8, 0)


def test_below_the_start_nothing_changes() -> None:
    state = apply_all(there(), [entry(3, remove(A), start_txn(0, 5))])
    outcome = decide_delete_records(state, "t", {0: 2, 1: 0}, now_ms=NOW)
    assert (outcome.actions, outcome.response) == ((), {0: 5, 1: 0})


@pytest.mark.parametrize("before", [9, -2])
def test_past_the_end_is_out_of_range(before: int) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=rf"before offset {before} can't be.*offsets 0 to 8.*-1 for all"):
        decide_delete_records(there(), "t", {1: 1, 0: before}, now_ms=NOW)


@pytest.mark.parametrize("partition", [2, "0", 0.0, True, None])
def test_records_of_a_partition_that_is_not_there(partition: Any) -> None:
    with pytest.raises(UnknownPartitionError, match=f"has no partition {partition}: it has 2"):
        decide_delete_records(there(), "t", {partition: 0}, now_ms=NOW)


@pytest.mark.parametrize("before", [1.5, 2.0, "3", True, None])
def test_an_offset_that_is_no_whole_number_is_refused_before_it_breaks_the_log(before: Any) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=f"before offset {before} can't be deleted"):
        decide_delete_records(there(), "t", {0: before}, now_ms=NOW)


def test_integers_of_numpy_are_integers() -> None:
    asked: Any = {np.int32(0): np.int64(5)}
    outcome = decide_delete_records(there(), "t", asked, now_ms=NOW)
    assert outcome.response == {0: 5}
    assert {type(number) for pair in outcome.response.items() for number in pair} == {int}
    assert after(there(), outcome).start(0) == 5


@given(st.dictionaries(st.integers(0, 1), st.integers(-1, 3), min_size=1))
def test_what_is_above_the_start_stays_covered(before: dict[int, int]) -> None:
    outcome = decide_delete_records(there(), "t", before, now_ms=NOW)
    state = after(there(), outcome)
    for p, start in outcome.response.items():
        covered = {o for s in state.live(p) for o in range(s.base_offset, s.end)}
        assert set(range(start, state.end(p))) <= covered
