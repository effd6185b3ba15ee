"""Newcomers that join at once, as those do that wait for a group's first round."""

from dataclasses import replace

from support.group_scripts import GROUP, NOW_MS, member, shown

from tidelog.groups.consumer_protocol import PROTOCOL_TYPE
from tidelog.groups.model import GroupPhase, GroupView
from tidelog.groups.rules.members import join, join_all, sync
from tidelog.log.base.errors import InconsistentProtocolError


def test_one_round_has_all_newcomers() -> None:
    newcomers = [(member(name), PROTOCOL_TYPE) for name in "abc"]
    group, refused = join_all(GroupView(), GROUP, newcomers, now_ms=NOW_MS).response
    assert shown(group) == "Completing 1 a a b c"
    assert refused == {}


def test_a_newcomer_that_does_not_fit_keeps_no_other_out() -> None:
    newcomers = [
        (member("a"), PROTOCOL_TYPE),
        (member("b", "sticky"), PROTOCOL_TYPE),
        (member("c"), "connect"),
        (member("d"), PROTOCOL_TYPE),
    ]
    group, refused = join_all(GroupView(), GROUP, newcomers, now_ms=NOW_MS).response
    assert shown(group) == "Completing 1 a a d"
    assert {name: type(error) for name, error in refused.items()} == dict.fromkeys("bc", InconsistentProtocolError)


def test_nothing_is_written_when_none_fits() -> None:
    decision = join_all(GroupView(), GROUP, [(replace(member("a"), protocols=()), PROTOCOL_TYPE)], now_ms=NOW_MS)
    assert decision.group is None
    assert list(decision.response[1]) == ["a"]


def test_those_that_are_members_already_are_waited_for() -> None:
    group = join(GroupView(), GROUP, member("n"), rejoins=False, now_ms=NOW_MS).response
    stable = sync(GroupView(group), GROUP, "n", 1, assignments={"n": b"1"}).group
    newcomers = [(member(name), PROTOCOL_TYPE) for name in "ab"]
    group, _ = join_all(GroupView(stable), GROUP, newcomers, now_ms=NOW_MS).response
    assert shown(group) == "Preparing 1 n a+ b+ n=1"
    after = join(GroupView(group), GROUP, member("n"), rejoins=True, now_ms=NOW_MS).response
    assert after.phase is GroupPhase.COMPLETING
