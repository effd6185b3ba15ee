"""A heartbeat of the consumer protocol, case by case (KIP-848)."""

from typing import Any

import pytest
from support.heartbeating import AWAY, JOINS, LEAVES, Client, Heard, topics

from tidelog.groups.model import AssignedPartition, CommittedOffset, ConsumerGroup, Group, GroupPhase, GroupView, Member
from tidelog.groups.rules.expiry import expire
from tidelog.groups.rules.members import evict_silent, join, leave
from tidelog.groups.rules.migration import Migration
from tidelog.groups.rules.modern import drafts
from tidelog.groups.rules.modern.heartbeat import HeartbeatAnswer
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError
from tidelog.groups.rules.offsets import decide_commit, delete_group, delete_offsets
from tidelog.log.base.errors import (
    FencedInstanceError,
    FencedMemberEpochError,
    GroupNotEmptyError,
    GroupNotFoundError,
    InconsistentProtocolError,
    StaleMemberEpochError,
    TidelogError,
    UnknownMemberError,
    UnreleasedInstanceError,
)
from tidelog.transactions.ports import GroupIdentity


def heard(**partitions: int) -> Heard:
    return Heard(topics(**(partitions or {"t": 4})))


def parts(*numbers: int, topic: str = "t") -> frozenset[AssignedPartition]:
    return frozenset(AssignedPartition(f"id-{topic}", topic, number) for number in numbers)


def owned(*numbers: int, topic: str = "t") -> list[tuple[str, int]]:
    return [(f"id-{topic}", number) for number in numbers]


def classic(member_id: str = "c") -> Member:
    return Member(member_id, "", "", 1000, 1000, (("range", b""),))


def test_the_first_member_gets_all_at_once() -> None:
    group = heard()
    answer = group.beat("a", JOINS)
    assert (answer.epoch, answer.assigned) == (1, parts(0, 1, 2, 3))
    assert group.group.phase is GroupPhase.STABLE
    writes = group.writes
    assert group.beat("a", 1, refresh=True).assigned is None
    assert group.writes == writes


def test_a_newcomer_waits_for_what_another_has_to_give_up() -> None:
    group = heard()
    group.beat("a", JOINS)
    assert group.beat("b", JOINS).assigned == frozenset()
    assert group.group.phase is GroupPhase.RECONCILING
    told = group.beat("a", 1, owned=owned(0, 1, 2, 3))
    assert (told.epoch, told.assigned) == (1, parts(0, 1))
    assert group.beat("b", 2).assigned is None  # a has not said yet that it gave them up
    assert group.beat("a", 1).assigned == parts(0, 1)  # it may not have heard
    assert group.beat("a", 1, owned=owned(0, 1)).epoch == 2
    got = group.beat("b", 2)
    assert (got.epoch, got.assigned) == (2, parts(2, 3))
    assert group.group.phase is GroupPhase.STABLE


def test_a_repeated_request_is_answered_again() -> None:
    group = heard()
    group.beat("a", JOINS)
    assert group.beat("a", JOINS) == group.beat("a", JOINS)
    group.beat("b", JOINS)
    group.beat("a", 1, owned=owned(0, 1, 2, 3))
    group.beat("a", 1, owned=owned(0, 1))
    again = group.beat("a", 1, owned=owned(0, 1))  # its epoch is 2 by now
    assert (again.epoch, again.assigned) == (2, parts(0, 1))


@pytest.mark.parametrize(
    ("member", "epoch", "says", "error"),
    [
        ("a", 7, {}, FencedMemberEpochError),
        ("a", 1, {"owned": ()}, None),
        ("x", 1, {}, UnknownMemberError),
        ("x", LEAVES, {}, UnknownMemberError),
        ("s", 1, {"instance_id": "none"}, UnknownMemberError),
        ("x", JOINS, {"instance_id": "i"}, UnreleasedInstanceError),
        ("x", 1, {"instance_id": "i"}, FencedInstanceError),
        ("x", AWAY, {"instance_id": "i"}, FencedInstanceError),
    ],
)
def test_who_is_refused(member: str, epoch: int, says: dict[str, Any], error: type[Exception] | None) -> None:
    group = heard()
    group.beat("a", JOINS)
    group.beat("s", JOINS, instance_id="i")
    before = group.view
    if error is None:
        group.beat(member, epoch, **says)
        return
    with pytest.raises(error):
        group.beat(member, epoch, **says)
    assert group.view is before


def test_the_first_member_has_an_epoch_also_without_topics() -> None:
    """Epoch 0 is that of members that join."""
    group = heard()
    assert group.beat("a", JOINS, topics=()).epoch == 1
    assert group.beat("a", 1, topics={"t"}, owned=()).assigned == parts(0, 1, 2, 3)


def test_an_epoch_of_long_ago_is_fenced_and_one_that_joins_again_begins_anew() -> None:
    group = heard(t=8)
    group.beat("a", JOINS)
    for name in "bcd":  # each of them gets some of its partitions
        epoch = group.beat("a", group.group.members["a"].epoch, owned=()).epoch
        group.beat(name, JOINS)
    epoch = group.beat("a", epoch, owned=()).epoch
    with pytest.raises(FencedMemberEpochError):
        group.beat("a", 1, owned=())
    answer = group.beat("a", JOINS)
    assert answer.epoch > epoch
    assert not group.commits("a", epoch)


def test_a_group_that_is_not_there_takes_those_who_join_alone() -> None:
    for epoch in (1, LEAVES):
        with pytest.raises(GroupNotFoundError):
            heard().beat("a", epoch)


def test_a_static_member_comes_back_to_its_place() -> None:
    group = heard()
    first = group.beat("a", JOINS, instance_id="i")
    group.beat("a", AWAY, instance_id="i")
    epoch = group.group.epoch
    assert not group.commits("a", first.epoch)
    again = group.beat("b", JOINS, instance_id="i")
    assert (again.epoch, again.assigned) == (epoch, first.assigned)
    assert list(group.group.members) == ["b"]
    group.beat("b", AWAY, instance_id="i")
    assert group.beat("b", JOINS, instance_id="i").assigned == first.assigned
    group.beat("b", LEAVES, instance_id="i")
    assert group.group.phase is GroupPhase.EMPTY


def test_what_a_static_member_holds_waits_for_it_until_it_is_evicted() -> None:
    group = heard()
    group.beat("a", JOINS, instance_id="i")
    group.beat("a", AWAY, instance_id="i")
    assert group.beat("b", JOINS).assigned == frozenset()
    turns = {"a": group.group.members["a"].turn}
    group.decide(lambda view: evict_silent(view, "g", turns, now_ms=1))
    assert group.beat("b", group.group.members["b"].epoch).assigned == parts(0, 1, 2, 3)


def test_topics_that_change_begin_an_epoch_when_they_are_looked_at() -> None:
    group = heard()
    group.beat("a", JOINS)
    group.topics = topics(t=5)
    assert group.beat("a", 1).epoch == 1
    assert group.beat("a", 1, refresh=True).assigned == parts(0, 1, 2, 3, 4)
    group.topics = {"t": AssignableTopic("other", 1)}
    told = group.beat("a", 2, refresh=True, owned=owned(0, 1, 2, 3, 4))
    assert told.assigned == frozenset()  # first it gives up those of the topic that is gone
    got = group.beat("a", 2, owned=())
    assert got.assigned == {AssignedPartition("other", "t", 0)}


def test_a_topic_that_is_not_there_yet_counts_when_it_is() -> None:
    group = heard(t=1)
    group.topics["u"] = None
    assert group.beat("a", JOINS, topics={"u"}).assigned == frozenset()
    group.topics = topics(u=2)
    assert group.beat("a", 1, refresh=True).assigned == parts(0, 1, topic="u")


def test_a_rule_says_which_topics_it_needs() -> None:
    group = heard(t=1)
    group.beat("a", JOINS)
    with pytest.raises(MissingTopicsError) as e:
        group.beat("b", JOINS, topics={"t", "other"})
    assert e.value.names == {"t", "other"}


def test_a_regular_expression_counts_by_what_it_matches() -> None:
    group = heard(t=1, u=1)
    answer = group.beat("a", JOINS, topics=(), regex="[tu]", matched={"t"})
    assert answer.assigned == parts(0)
    answer = group.beat("a", answer.epoch, matched={"t", "u"}, owned=owned(0))
    assert answer.assigned == parts(0) | parts(0, topic="u")
    answer = group.beat("a", answer.epoch, regex="", topics={"u"}, owned=[*owned(0), *owned(0, topic="u")])
    assert answer.assigned == parts(0, topic="u")


def test_the_assignor_that_most_ask_for_is_taken() -> None:
    group = heard(t=3, u=3)
    group.beat("a", JOINS, topics={"t", "u"})
    assert group.group.assignor == "uniform"
    group.beat("b", JOINS, topics={"t", "u"}, assignor="range")
    assert group.group.assignor == "range"
    assert group.group.target("a") == parts(0, 1) | parts(0, 1, topic="u")


# --- with the rules of all groups -----------------------------------------------------------------------------


def test_types_change_only_while_there_are_no_members_where_members_must_not_migrate() -> None:
    group = heard()
    group.beat("a", JOINS)
    with pytest.raises(InconsistentProtocolError, match="of the type consumer"):
        join(group.view, "g", classic(), rejoins=False, now_ms=1)
    group.beat("a", LEAVES)
    epoch = group.group.epoch
    joined = join(group.view, "g", classic(), rejoins=False, now_ms=1)
    assert isinstance(joined.group, Group)
    assert joined.group.generation == epoch + 1
    group.view = GroupView(joined.group)
    with pytest.raises(GroupNotFoundError, match="not of the type consumer"):
        group.beat("b", JOINS, migration=Migration.DISABLED)
    group.view = GroupView(leave(group.view, "g", "c", now_ms=1).group)
    assert group.beat("b", JOINS).epoch > epoch + 1


def test_only_a_member_in_its_epoch_commits() -> None:
    group = heard()
    offsets = {("t", 0): CommittedOffset(3)}
    group.beat("a", JOINS)
    assert decide_commit(group.view, GroupIdentity("g", "a", 1), offsets).offsets
    with pytest.raises(StaleMemberEpochError):
        decide_commit(group.view, GroupIdentity("g", "a", 2), offsets)
    for stranger in (GroupIdentity("g", "x", 1), GroupIdentity("g")):
        with pytest.raises(UnknownMemberError):
            decide_commit(group.view, stranger, offsets)
    group.beat("a", LEAVES)
    assert decide_commit(group.view, GroupIdentity("g"), offsets).offsets
    with pytest.raises(UnknownMemberError):
        decide_commit(group.view, GroupIdentity("g", "a", 1), offsets)


def test_a_group_with_members_is_not_deleted_nor_the_offsets_of_its_topics() -> None:
    group = heard(t=1, u=1)
    group.beat("a", JOINS)
    view = GroupView(group.group, {("t", 0): CommittedOffset(1), ("u", 0): CommittedOffset(1)})
    with pytest.raises(GroupNotEmptyError):
        delete_group(view, "g")
    refused = delete_offsets(view, "g", [("t", 0), ("u", 0)]).response
    assert [place for place, why in refused.items() if why is not None] == [("t", 0)]
    assert expire(view, 10**9, 1000).response == [("u", 0)]
    group.beat("a", LEAVES)
    gone = delete_group(GroupView(group.group), "g").group
    assert gone is not None
    assert gone.phase is GroupPhase.DEAD
    expired = expire(GroupView(group.group, view.offsets), 10**9, 1000)
    assert expired.group is not None
    assert isinstance(group.group, ConsumerGroup)


def test_only_those_whose_share_changes_write_when_one_joins() -> None:
    """The others go on in the epoch that they have, and hear of nothing."""
    group = heard(t=100)
    clients = [Client(f"m{number:02d}", frozenset({"t"})) for number in range(11)]

    def rounds(of: list[Client]) -> None:
        for client in [*of, *of, *of]:
            epoch, says = client.request()
            client.hear(group.beat(client.member_id, epoch, **says))
            client.revoke()

    rounds(clients[:10])
    before, epochs, writes = dict(group.group.members), [client.epoch for client in clients[:10]], group.writes
    assert group.group.phase == GroupPhase.STABLE
    rounds([clients[10], *clients[:10]])
    rounds(clients)
    assert group.group.phase == GroupPhase.STABLE
    assert len(clients[10].owned) == 9
    changed = [client for client in clients[:10] if group.group.members[client.member_id] != before[client.member_id]]
    assert sum(len(before[client.member_id].assigned) - len(client.owned) for client in changed) == 9
    assert group.writes - writes <= 1 + 2 * len(changed)
    stay = [client for client in clients[:10] if client not in changed]
    assert stay
    for client in stay:
        assert client.epoch == epochs[clients.index(client)]
        assert group.commits(client.member_id, client.epoch)
        assert group.group.reached(group.group.members[client.member_id]) == group.group.assignment_epoch


# --- heartbeats that are decided together --------------------------------------------------------------------


def test_members_that_join_together_get_one_assignment(monkeypatch: pytest.MonkeyPatch) -> None:
    assignments: list[int] = []
    real = drafts.assigned

    def counted(group: ConsumerGroup, *rest: Any) -> ConsumerGroup:
        assignments.append(len(group.members))
        return real(group, *rest)

    monkeypatch.setattr(drafts, "assigned", counted)
    of = heard(t=400)
    answers = of.beat_together([(f"m{number}", JOINS, {}) for number in range(200)])
    assert assignments == [200]
    assert of.writes == 1
    assert of.group.phase == GroupPhase.STABLE
    shares = [answer.assigned for answer in answers if isinstance(answer, HeartbeatAnswer)]
    assert [len(share) for share in shares if share is not None] == [2] * 200
    assert len(frozenset().union(*(share for share in shares if share is not None))) == 400


def test_of_heartbeats_that_are_decided_together_each_has_its_own_answer() -> None:
    of = heard(t=4)
    of.beat("a", JOINS)
    answers = of.beat_together(
        [
            ("stranger", 5, {}),
            ("a", 1, {"owned": owned(0, 1, 2, 3)}),
            ("b", JOINS, {}),
            ("a", 1, {"owned": owned(0, 1)}),  # once more: it gives up at once
            ("b", 2, {"owned": ()}),
            ("c", LEAVES, {}),
            ("a", LEAVES, {}),
            ("b", 2, {"owned": owned(2, 3)}),
        ]
    )
    stranger, *told = [getattr(answer, "assigned", type(answer)) for answer in answers]
    assert stranger is UnknownMemberError
    assert told[:4] == [parts(0, 1), frozenset(), parts(0, 1), parts(2, 3)]
    assert told[4:] == [UnknownMemberError, None, parts(0, 1, 2, 3)]
    assert list(of.group.members) == ["b"]


def test_one_whose_place_is_taken_in_the_same_decision_is_fenced_alone() -> None:
    """A heartbeat of before it went away comes late, without the id that is another's by the end of the decision."""
    of = heard(t=4)
    epoch = of.beat("a", JOINS, instance_id="i").epoch
    of.beat("a", AWAY, instance_id="i")
    late, successor, other = of.beat_together(
        [("a", epoch, {"owned": owned(0, 1, 2, 3)}), ("b", JOINS, {"instance_id": "i"}), ("c", JOINS, {})]
    )
    assert isinstance(late, FencedInstanceError)
    assert isinstance(successor, HeartbeatAnswer)
    assert isinstance(other, HeartbeatAnswer)
    assert of.group.members.keys() == {"b", "c"}


def test_what_is_refused_turns_no_group_over() -> None:
    of = Heard(topics(t=1), GroupView(join(GroupView(), "g", classic(), rejoins=False, now_ms=1).group))
    (answer,) = of.beat_together([("m", 3, {})])
    assert isinstance(answer, TidelogError)
    assert of.writes == 0


def test_one_that_has_not_taken_yet_what_is_another_s_now_hears_that() -> None:
    """It has its answer, and is at its application's callback, when another one's entry gives its share away."""
    of = heard(t=1, u=1)
    epoch = of.beat("a", JOINS, topics={"t", "u"}).epoch
    of.beat("b", JOINS, topics={"t"})
    kept = of.beat("a", epoch, owned=())
    assert kept.assigned == parts(0, topic="u")
    assert of.beat("b", of.group.members["b"].epoch, owned=()).assigned == parts(0)
