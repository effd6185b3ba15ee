"""Group commit whose entries are committed elsewhere: answered, refused, or never answered; each record lands once."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from support.group_commits import LONG_S, lake_with, records, sent
from support.logs import CountingIds, open_lake, read, values

from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.errors import DeliveryTimeoutError, ObjectNotFoundError, StorageUnavailableError
from tidelog.log.group_commit.engine import GroupCommit, PendingEntry
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import AppendAnswer, CommitOutcome, StagedShare

NOT_TAKEN = AppendAnswer(CommitOutcome.REFUSED, elsewhere=True)
UNANSWERED = AppendAnswer(CommitOutcome.UNKNOWN, elsewhere=True)


class Elsewhere:
    """A committer in place of another process: it keeps what was handed over. What is committed here is in the lake."""

    def __init__(self, lake: Lake) -> None:
        self.handed: list[tuple[StagedShare, Future[AppendAnswer]]] = []
        self.here: list[StagedShare] = []
        self._joint = JointAppend(lake.topic("t"), lake.clock)
        self.digest = self._joint.digest

    def hand_over(self, share: StagedShare) -> Future[AppendAnswer]:
        self.handed.append((share, Future()))
        return self.handed[-1][1]

    def commit(self, share: StagedShare, timeout_s: float) -> AppendAnswer:
        self.here.append(share)
        return self._joint.commit(share, timeout_s)


def begun(
    *requests: Any, **config: str
) -> tuple[Lake, Any, Elsewhere, PendingEntry, Callable[[StagedShare], AppendAnswer]]:
    """A lake, its clock, what was handed over, the entry after its first step, and how another process commits."""
    lake, storage, clock = lake_with(**config)
    elsewhere = Elsewhere(lake)
    engine = GroupCommit(lambda: lake.topic("t"), clock, CountingIds(10**12), committer=elsewhere)
    entry = engine.begin(*requests)
    entry.advance()
    other = open_lake(storage.inner, clock)

    def commit(share: StagedShare) -> AppendAnswer:
        joint = JointAppend(other.topic("t"), other.clock)
        return replace(joint.commit(share.repeated()), elsewhere=True)

    return lake, clock, elsewhere, entry, commit


def test_what_is_handed_over_has_its_outcome_when_it_is_answered() -> None:
    lake, _, elsewhere, entry, commit = begun(records("a"), records("b", partition=1))
    ((share, answer),) = elsewhere.handed
    assert (entry.is_done, entry.waits_for) == (False, answer)
    assert share.new_until is None
    topic = lake.topic("t")
    before = topic.known.version
    answer.set_result(commit(share))
    entry.advance()
    assert (entry.is_done, entry.waits_for, elsewhere.here) == (True, None, [])
    assert entry.outcomes.offsets(2).tolist() == [0, 0]
    # What the other process has committed is known here at once.
    assert topic.known.version == before + 1
    assert (read(lake, "t"), read(lake, "t", 1)) == (["a"], ["b"])


def test_what_is_not_taken_is_committed_here_as_new() -> None:
    lake, _, elsewhere, entry, _ = begun(records("a"))
    elsewhere.handed[0][1].set_result(NOT_TAKEN)
    entry.advance()
    assert entry.is_done
    assert [share.new_until for share in elsewhere.here] == [None]
    assert read(lake, "t") == ["a"]


@pytest.mark.parametrize("had_landed", [False, True])
def test_without_an_answer_it_is_committed_here_once(*, had_landed: bool) -> None:
    lake, _, elsewhere, entry, commit = begun(records("a", "b"), sent(7, 0, "c"))
    ((share, answer),) = elsewhere.handed
    if had_landed:
        commit(share)
        lake.topic("t").append(values("later", partition=[0]))
    answer.set_result(UNANSWERED)
    entry.advance()
    assert entry.is_done
    assert entry.outcomes.offsets(3).tolist() == [0, 1, 2]
    # The other process comes late with it.
    assert commit(share).ranges == {0: (0, 3)}
    assert read(lake, "t")[:3] == ["a", "b", "c"]
    assert len(read(lake, "t")) == 3 + had_landed


@pytest.mark.parametrize("came", [False, True])
def test_what_may_be_committed_elsewhere_is_never_staged_again(*, came: bool) -> None:
    """The log refuses it now; but the other process may have been asked before that, or the refusal may end."""
    lake, _, elsewhere, entry, commit = begun(records("a"))
    ((share, answer),) = elsewhere.handed
    if came:
        commit(share)
    lake.alter_topic("t", config={"retention.ms": "1000000"})
    answer.set_result(UNANSWERED)
    entry.advance()
    assert entry.is_done
    if came:
        assert entry.outcomes.offsets(1).tolist() == [0]
    else:
        error = entry.outcomes.errors[0]
        assert isinstance(error, DeliveryTimeoutError)
        assert error.maybe_persisted
        # The configuration is again as it was: the other process may commit it, and its file is there.
        lake.alter_topic("t", config={"retention.ms": None})
        assert commit(share).ranges == {0: (0, 1)}
    assert read(lake, "t") == ["a"]


def test_what_was_refused_for_good_is_staged_again() -> None:
    lake, _, elsewhere, entry, commit = begun(records("a"))
    lake.alter_topic("t", config={"retention.ms": "1000000"})
    ((share, answer),) = elsewhere.handed
    assert commit(share).outcome is CommitOutcome.STALE
    answer.set_result(NOT_TAKEN)
    entry.advance()
    # Staged by the new configuration, and handed over once more: nothing is in doubt.
    (_, (again, second)) = elsewhere.handed
    assert again.segments[0].path != share.segments[0].path
    second.set_result(commit(again))
    entry.advance()
    assert entry.is_done
    assert read(lake, "t") == ["a"]
    with pytest.raises(ObjectNotFoundError):
        lake.storage.head(f"t/{share.segments[0].path}")


def test_a_batch_that_landed_by_another_way_is_left_out() -> None:
    """A pipelined producer went to another broker with its first batch, and got here with both."""
    lake, _, elsewhere, entry, commit = begun(sent(7, 0, "a"), sent(7, 1, "b"))
    other = GroupCommit(lambda: lake.topic("t"), lake.clock, CountingIds(10**13))
    one = other.begin(sent(7, 0, "a"))
    one.advance()
    ((share, answer),) = elsewhere.handed
    assert commit(share).outcome is CommitOutcome.STALE
    answer.set_result(NOT_TAKEN)
    entry.advance()
    (_, (again, second)) = elsewhere.handed
    second.set_result(commit(again))
    entry.advance()
    assert entry.outcomes.offsets(2).tolist() == [-1, 1]
    assert read(lake, "t") == ["a", "b"]


def test_time_may_run_out_for_what_was_handed_over() -> None:
    lake, clock, elsewhere, entry, commit = begun(records("a", timeout_s=1.0), records("b", timeout_s=LONG_S))
    ((share, answer),) = elsewhere.handed
    clock.pass_s(2.0)
    answer.set_result(UNANSWERED)
    entry.advance()
    assert entry.is_done
    assert isinstance(entry.outcomes.errors[0], DeliveryTimeoutError)
    assert entry.outcomes.offsets(2).tolist()[1] == 1
    commit(share)
    assert read(lake, "t") == ["a", "b"]


def test_a_store_that_fails_here_is_asked_again_for_the_same_segments() -> None:
    lake, clock, elsewhere, entry, commit = begun(records("a"))
    ((share, answer),) = elsewhere.handed
    answer.set_result(UNANSWERED)
    lake.storage.hook = _no_entries
    entry.advance()
    assert not entry.is_done
    lake.storage.hook = lambda *_: None
    commit(share)
    for _ in range(20):
        clock.pass_s(1.0)
        entry.advance()
    assert entry.outcomes.offsets(1).tolist() == [0]
    assert read(lake, "t") == ["a"]


def _no_entries(method: str, path: str, phase: str) -> None:
    if method == "put_if_absent" and "_delta_log" in path and phase == "before":
        raise StorageUnavailableError("no answer")
