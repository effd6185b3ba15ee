"""What may be deleted of a group, and when."""

from dataclasses import replace

import pytest
from support.group_scripts import GROUP, NOW_MS, member
from support.streams_members import Streams

from tidelog.groups.model import CommittedOffset, Group, GroupPhase, GroupView
from tidelog.groups.rules.members import join
from tidelog.groups.rules.offsets import delete_group, delete_offsets
from tidelog.log.base.errors import GroupNotEmptyError, GroupNotFoundError, GroupSubscribedError

OFFSETS = {("t", 0): CommittedOffset(7), ("u", 0): CommittedOffset(8)}
LIVE = join(GroupView(), GROUP, member("a", topics="t,v"), rejoins=False, now_ms=NOW_MS).response


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    decision = delete_group(GroupView(Group(GROUP, generation=3), OFFSETS), GROUP)
    assert decision.group is not None
    assert decision.group.phase is GroupPhase.DEAD
    assert decision.offsets == {("t", 0): None, ("u", 0): None}


def test_a_group_that_only_committed_is_deleted() -> None:
    assert delete_group(GroupView(None, OFFSETS), GROUP).offsets == {("t", 0): None, ("u", 0): None}


def test_a_group_with_members_is_not_deleted() -> None:
    with pytest.raises(GroupNotEmptyError, match="1 members"):
        delete_group(GroupView(LIVE, OFFSETS), GROUP)


def test_there_must_be_a_group() -> None:
    with pytest.raises(GroupNotFoundError):
        delete_group(GroupView(), GROUP)
    with pytest.raises(GroupNotFoundError):
        delete_offsets(GroupView(), GROUP, [("t", 0)])


def test_offsets_of_topics_that_members_read_stay() -> None:
    decision = delete_offsets(GroupView(LIVE, OFFSETS), GROUP, [("t", 0), ("u", 0), ("u", 1), ("v", 0)])
    assert decision.offsets == {("u", 0): None}
    assert {place: type(error) for place, error in decision.response.items()} == {
        ("t", 0): GroupSubscribedError,
        ("u", 0): type(None),
        ("u", 1): type(None),
        ("v", 0): GroupSubscribedError,
    }


def test_all_offsets_of_an_empty_group_go() -> None:
    assert delete_offsets(GroupView(None, OFFSETS), GROUP, OFFSETS).offsets == {("t", 0): None, ("u", 0): None}


def test_who_can_not_be_read_may_read_everything() -> None:
    broken = {"a": replace(LIVE.members["a"], protocols=(("range", b"\0"),))}
    decision = delete_offsets(GroupView(replace(LIVE, members=broken), OFFSETS), GROUP, [("u", 0)])
    assert isinstance(decision.response["u", 0], GroupSubscribedError)
    assert not decision.offsets


def test_members_of_another_type_keep_everything() -> None:
    with pytest.raises(GroupNotEmptyError, match="'connect'"):
        delete_offsets(GroupView(replace(LIVE, protocol_type="connect"), OFFSETS), GROUP, [("u", 0)])


def test_of_a_streams_group_only_what_its_members_read_stays() -> None:
    made = Streams()
    made.join("m")
    offsets = {
        ("lines", 0): CommittedOffset(7),
        ("by-word", 1): CommittedOffset(8),
        ("formerly", 0): CommittedOffset(9),
    }
    decision = delete_offsets(replace(made.view, offsets=offsets), "g", offsets)
    assert decision.offsets == {("formerly", 0): None}
    assert {place[0] for place, error in decision.response.items() if error is not None} == {"lines", "by-word"}
