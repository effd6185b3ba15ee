"""Branches whose makers die at each of their steps."""

from itertools import count

import pytest
from support.branched_lakes import Branched, a_lake, green
from support.crashes import Crash, CrashAt
from support.logs import quiet, read, values
from support.transactions import SharedLake, copy

from tidelog.log.base.errors import LakeNotWholeError
from tidelog.mirror.branch.plan import NotABranchError
from tidelog.operations.branches import BranchState


def test_a_branch_may_break_off_between_any_two_steps_and_the_same_call_goes_on() -> None:
    for moment in count():
        shared = SharedLake()
        copy(shared.first.ready(), "one", 1)
        pair = Branched(shared.storage, shared.clock)
        if not pair.breaks_off(moment):
            break
        shared.first.lake.topic("a").append(values("later"))
        facts = pair.facts()
        if facts is None or not facts.is_whole:
            pair.make()
        assert read(pair.branch(), "a")[0] == "one"
        assert read(pair.branch(), "b") == ["one"]
        assert pair.process().stable() == {("in", 0): 1}
        assert green(pair.branch())
        assert [one.state for one in pair.notes()][-1] is BranchState.WHOLE
    assert moment > 20


def test_the_source_may_fail_between_any_two_steps() -> None:
    for moment in count():
        pair = a_lake()
        pair.source.hook = hook = CrashAt(moment)
        try:
            pair.make()
        except Crash:
            pass
        finally:
            pair.source.hook = quiet
        if not hook.crashed:
            break
        pair.make()
        assert pair.differences() == []
    assert moment > 20


def test_a_discarded_branch_leaves_nothing_and_may_break_off_anywhere() -> None:
    for moment in count():
        pair = a_lake()
        pair.make()
        assert [one.state for one in pair.notes()] == [BranchState.WHOLE]
        pair.target.hook = hook = CrashAt(moment)
        try:
            pair.discard()
        except Crash:
            pass
        finally:
            pair.target.hook = quiet
        if hook.crashed and list(pair.target.list_after("")):
            facts = pair.facts()
            assert facts is not None
            if facts.discarding:
                with pytest.raises(LakeNotWholeError, match="is being discarded"):
                    pair.branch().create_topic("v", 1)
                with pytest.raises(NotABranchError, match="being discarded"):
                    pair.make()
            pair.discard()
        assert (list(pair.target.list_after("")), pair.target.list_folders("")) == ([], [])
        if not hook.crashed:
            break
    assert pair.notes() == []
    assert read(pair.lake(), "t") == ["a", "b", "c"]
    assert green(pair.lake())
