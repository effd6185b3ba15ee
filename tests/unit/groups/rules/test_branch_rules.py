"""Groups of a branch begin without the members that they have at the other lake, whatever their protocol is."""

import pytest
from support.streams_members import Streams

from tidelog.groups.model import AnyGroup, CommittedOffset, GroupPhase, GroupView, Member
from tidelog.groups.rules.branches import begin_anew
from tidelog.groups.rules.members import join
from tidelog.groups.rules.modern.heartbeat import Heartbeat, heartbeat
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.transactions.model import TransactionKey


def classic() -> AnyGroup:
    member = Member("m", "client", "host", 10_000, 60_000, (("range", b""),))
    return join(GroupView(), "g", member, rejoins=False, now_ms=1).response


def modern() -> AnyGroup:
    asked = Heartbeat(group_id="g", member_id="m", epoch=0, topics=frozenset(["t"]), owned=frozenset())
    return heartbeat(GroupView(), {"t": AssignableTopic("id", 2)}, asked, now_ms=1).response.group


def streams() -> AnyGroup:
    made = Streams()
    made.join("m")
    return made.group


@pytest.mark.parametrize("group", [classic(), modern(), streams()], ids=["classic", "modern", "streams"])
def test_members_stay_behind_and_offsets_come_along(group: AnyGroup) -> None:
    assert group.members
    at = {("t", 0): CommittedOffset(9), ("t", 1): CommittedOffset(3)}
    decision = begin_anew(GroupView(group, at), ends={("t", 0): ("", 7)}, left_open=(), now_ms=5)
    assert decision.group is not None
    assert (decision.group.type, decision.group.members, decision.group.phase) == (group.type, {}, GroupPhase.EMPTY)
    assert decision.group.generation > group.generation
    assert decision.offsets == {("t", 0): CommittedOffset(7)}


def test_what_waits_for_a_transaction_that_none_ends_here_goes() -> None:
    committed, open_here = TransactionKey("a", 1, 0, 3), TransactionKey("a", 1, 1, 1)
    pending = {(key, ("t", 0)): CommittedOffset(5) for key in (committed, open_here)}
    decision = begin_anew(GroupView(None, {}, pending), ends={}, left_open=[open_here], now_ms=5)
    assert decision.pending == {(open_here, ("t", 0)): None}
    assert decision.offsets == {}
