"""Joint appends over a store: a committer and the writer may both commit a share, however late one of them is."""

from dataclasses import replace
from typing import Any

import pytest
from support.faults import FaultyStorage
from support.group_commits import failing
from support.logs import (
    FakeClock,
    add,
    end_txn,
    entry,
    memory_lake,
    open_lake,
    put_checkpoint,
    read,
    stage,
    values,
)
from support.rewrites import MIN_AGE_MS, age, merge
from support.shares import in_short

from tidelog.log.appends.joint import JointAppend, configuration_digest
from tidelog.log.base.errors import MissingSegmentError, OutcomeUnknownError, RequestForgottenError, TopicChangedError
from tidelog.log.delta.actions import encode_entry
from tidelog.log.delta.layout import entry_path
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import StagedShare
from tidelog.log.rules.sequences import ProducerBatch


def made() -> tuple[Lake, FaultyStorage, FakeClock]:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 2, {"log.min.age.ms": str(MIN_AGE_MS)})
    return lake, storage, clock


def joint(lake: Lake) -> JointAppend:
    return JointAppend(lake.topic("t"), lake.clock)


def commit(joint: JointAppend, *shares: StagedShare, timeout_s: float | None = None) -> list[Any]:
    return in_short(joint.commit_all(shares, timeout_s))


def staged(lake: Lake, *texts: str, partition: int = 0, acks: int = -1) -> StagedShare:
    topic = lake.topic("t")
    segments = stage(topic, *texts, partition=[partition] * len(texts))
    return StagedShare(segments, configuration_digest(topic.known.metadata), acks=acks)


def test_two_writers_shares_are_one_entry() -> None:
    lake, storage, clock = made()
    other = open_lake(storage.inner, clock)
    shares = [staged(lake, "a", "b"), staged(other, "c"), staged(other, "d", partition=1)]
    before = lake.topic("t").state().version
    assert commit(joint(lake), *shares) == [{0: (0, 2)}, {0: (2, 3)}, {1: (0, 1)}]
    assert lake.topic("t").state().version == before + 1
    assert (read(other, "t"), read(other, "t", 1)) == (["a", "b", "c"], ["d"])


def test_a_committer_that_wakes_up_adds_only_what_has_not_landed() -> None:
    lake, storage, clock = made()
    committer = open_lake(storage.inner, clock)
    late = joint(committer)
    committer.topic("t").state()
    mine, others = staged(lake, "mine"), staged(lake, "other")
    # The writer of `mine` has no answer, and commits; the committer sees that when it has lost the race.
    assert commit(joint(lake), mine.repeated()) == [{0: (0, 1)}]
    assert commit(late, mine.repeated(), others.repeated()) == [{0: (0, 1)}, {0: (1, 2)}]
    assert read(lake, "t") == ["mine", "other"]


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_a_committer_finds_in_the_entries_what_a_merge_has_taken_out_of_the_topic(*, from_checkpoint: bool) -> None:
    lake, storage, clock = made()
    late = None if from_checkpoint else joint(open_lake(storage.inner, clock))
    lake.topic("t").append(values("before", partition=[0]))
    mine, others = staged(lake, "mine"), staged(lake, "other")
    assert commit(joint(lake), mine) == [{0: (1, 2)}]
    merge(lake, "t")
    put_checkpoint(storage.inner, "t", lake.topic("t").state().version)
    late = late or joint(open_lake(storage.inner, clock))
    assert commit(late, mine.repeated(), others.repeated()) == [{0: (1, 2)}, {0: (2, 3)}]
    assert read(lake, "t") == ["before", "mine", "other"]


def test_a_share_that_the_log_tells_nothing_of_any_more_is_in_no_entry_and_the_others_are() -> None:
    lake, _, clock = made()
    mine = staged(lake, "mine")
    lake.topic("t").append(values("x", partition=[0]))
    lake.topic("t").append(values("y", partition=[0]))
    merge(lake, "t")
    age(lake, clock)
    others = staged(lake, "other")
    forgotten, found = commit(joint(lake), mine.repeated(), others.repeated())
    assert isinstance(forgotten, RequestForgottenError)
    assert found == {0: (2, 3)}
    assert read(lake, "t") == ["x", "y", "other"]


def test_the_entry_of_a_writer_that_was_frozen_past_a_trim_is_no_answer() -> None:
    lake, storage, clock = made()
    mine = staged(lake, "mine")
    version = lake.topic("t").state().version + 1
    lake.topic("t").append(values("x", partition=[0]))
    lake.topic("t").append(values("y", partition=[0]))
    merge(lake, "t")
    age(lake, clock)
    late = entry(version, add(0, 0, 1, mine.segments[0].path), end_txn(0, 1))
    assert storage.inner.put_if_absent(f"t/{entry_path(version)}", encode_entry(late.actions, late.info))
    (answer,) = commit(joint(open_lake(storage.inner, clock)), mine.repeated())
    assert isinstance(answer, RequestForgottenError)


@pytest.mark.parametrize("had_landed", [False, True])
def test_sequences_tell_of_a_share_that_the_log_tells_nothing_of_any_more(*, had_landed: bool) -> None:
    lake, _, clock = made()
    mine = replace(staged(lake, "mine"), producers=[ProducerBatch(7, 0, {0: (0, 1)})])
    if had_landed:
        assert commit(joint(lake), mine) == [{0: (0, 1)}]
    lake.topic("t").append(values("x", partition=[0]))
    lake.topic("t").append(values("y", partition=[0]))
    merge(lake, "t")
    age(lake, clock)
    assert commit(joint(lake), mine.repeated()) == [{} if had_landed else {0: (2, 3)}]
    assert sorted(read(lake, "t")) == ["mine", "x", "y"]


def test_a_share_without_its_files_holds_up_no_other() -> None:
    lake, storage, _ = made()
    good, bad = staged(lake, "good"), staged(lake, "bad", partition=1)
    storage.inner.delete(f"t/{bad.segments[0].path}")
    found, missing = commit(joint(lake), good, bad)
    assert found == {0: (0, 1)}
    assert isinstance(missing, MissingSegmentError)
    assert (read(lake, "t"), read(lake, "t", 1)) == (["good"], [])


def test_the_strongest_acks_count_for_all() -> None:
    lake, storage, _ = made()
    weak, strong = staged(lake, "weak", acks=1), staged(lake, "strong", acks=-1)
    for shares, durable in (([weak], False), ([replace(strong), staged(lake, "w", acks=1)], True)):
        commit(joint(lake), *shares)
        version = lake.topic("t").state().version
        said = storage.inner.get(f"t/_delta_log/{version:020}.json")
        assert (b'"durable":true' in said) is durable


def test_without_an_answer_of_the_store_every_share_may_have_landed() -> None:
    lake, storage, clock = made()
    shares = [staged(lake, "a"), staged(lake, "b")]
    storage.hook = failing(10**9, "put_if_absent", "after")
    answers = commit(joint(lake), *shares, timeout_s=1.0)
    assert [type(answer) for answer in answers] == [OutcomeUnknownError] * 2
    found = commit(joint(open_lake(storage.inner, clock)), *(share.repeated() for share in shares))
    assert found == [{0: (0, 1)}, {0: (1, 2)}]
    assert read(lake, "t") == ["a", "b"]


def test_a_topic_that_is_gone_refuses_all_shares() -> None:
    lake, _, _ = made()
    shares, late = [staged(lake, "a"), staged(lake, "b")], joint(lake)
    lake.delete_topic("t")
    assert [type(answer) for answer in commit(late, *shares)] == [TopicChangedError] * 2
