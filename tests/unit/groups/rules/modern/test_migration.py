"""How groups turn from one protocol to the other with their members, case by case."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from support.heartbeating import AWAY, JOINS, LEAVES, Heard, topics

from tidelog.groups.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from tidelog.groups.model import ConsumerGroup, ConsumerMember, Group, GroupPhase, GroupView, Member
from tidelog.groups.rules.members import join, leave, sync
from tidelog.groups.rules.migration import Migration, must_rejoin, seen_by
from tidelog.groups.rules.modern.joining import ClassicGroupError, join_among_modern
from tidelog.groups.rules.modern.topics import MissingTopicsError
from tidelog.groups.rules.modern.turning import turned
from tidelog.log.base.errors import (
    FencedInstanceError,
    GroupNotFoundError,
    InconsistentProtocolError,
    RebalanceInProgressError,
    UnknownMemberError,
)

FOUR = [("t", 0), ("t", 1), ("t", 2), ("t", 3)]


def member(name: str, owned: tuple[Any, ...] = (), assignor: str = "range", **more: Any) -> Member:
    data = encode_subscription(Subscription(("t",), None, owned, 1))
    return Member(name, "", "", 1000, 1000, ((assignor, data),), **more)


def stable(shares: dict[str, list[Any]]) -> Group:
    """A classic group of these members, in generation 1."""
    view = GroupView()
    for name in shares:
        view = GroupView(join(view, "g", member(name), rejoins=False, now_ms=1, ends_round=False).response)
    assert isinstance(view.group, Group)
    last = sorted(shares)[-1]
    view = GroupView(join(view, "g", member(last), rejoins=True, now_ms=1).group or view.group)
    assert isinstance(view.group, Group)
    while view.group.phase is GroupPhase.PREPARING:
        for name in shares:
            view = GroupView(join(view, "g", member(name), rejoins=True, now_ms=1).group or view.group)
    given = {name: encode_assignment(Assignment(tuple(share))) for name, share in shares.items()}
    group = view.group
    assert isinstance(group, Group)
    done = sync(view, "g", group.leader or "", group.generation, assignments=given).group
    assert isinstance(done, Group)
    return done


def held(group: ConsumerGroup) -> dict[str, list[int]]:
    return {name: sorted(one.partition for one in member.held) for name, member in sorted(group.members.items())}


def heard(group: Any) -> Heard:
    return Heard(topics(t=4), GroupView(group))


def joined(group: Heard, who: Member, rejoins: bool = True, **more: Any) -> Group:
    return group.decide(lambda view: join_among_modern(view, group.topics, "g", who, rejoins=rejoins, **more))


def test_the_first_member_of_the_new_protocol_turns_the_group_and_its_members_keep_what_they_own() -> None:
    classic = stable({"a": FOUR[:2], "b": FOUR[2:]})
    group = heard(classic)
    answer = group.beat("c", JOINS)
    assert (answer.epoch, answer.assigned) == (classic.generation + 1, frozenset())
    assert held(group.group) == {"a": [0, 1], "b": [2, 3], "c": []}
    for name in "ab":
        assert group.commits(name, classic.generation)
        assert seen_by(group.group, group.group.members[name]).phase is GroupPhase.PREPARING
    seen = joined(group, member("a"))  # eager: it owns nothing any more
    assert (seen.phase, seen.generation) == (GroupPhase.STABLE, classic.generation + 1)
    assert not group.commits("a", classic.generation)
    joined(group, member("b"))
    group.beat("c", answer.epoch)
    assert sorted(map(len, held(group.group).values())) == [1, 1, 2]


def test_a_cooperative_member_gives_up_before_others_get() -> None:
    group = heard(stable({"a": FOUR}))
    epoch = group.beat("c", JOINS).epoch
    seen = joined(group, member("a", tuple(FOUR)))
    assert (seen.generation, seen.phase) == (epoch - 1, GroupPhase.STABLE)  # it reads on, and has to give up two
    assert group.beat("c", epoch).assigned is None
    a = group.group.members["a"]
    assert (len(a.assigned), len(a.revoking), must_rejoin(group.group, a)) == (2, 2, True)
    kept = tuple((one.topic, one.partition) for one in a.assigned)
    assert joined(group, member("a", kept)).generation == epoch
    assert len(group.beat("c", epoch).assigned or ()) == 2


def test_members_that_have_all_that_they_are_to_have_are_not_compared_with_others() -> None:
    """Each member of a large group is asked a few times a second."""
    group = heard(stable({"a": FOUR[:2], "b": FOUR[2:]}))
    epoch = group.beat("c", JOINS).epoch
    for _ in range(3):
        for name in "ab":
            joined(group, member(name, tuple((one.topic, one.partition) for one in group.group.members[name].assigned)))
        group.beat("c", epoch)
    assert group.group.phase is GroupPhase.STABLE
    with patch.object(ConsumerMember, "held", property(lambda _: pytest.fail("it was added up"))):
        assert not any(must_rejoin(group.group, group.group.members[name]) for name in "ab")


@pytest.mark.parametrize("migration", [Migration.DISABLED, Migration.DOWNGRADE])
def test_a_group_turns_only_where_it_may(migration: Migration) -> None:
    with pytest.raises(GroupNotFoundError):
        heard(stable({"a": FOUR})).beat("c", JOINS, migration=migration)


def test_the_last_member_of_the_new_protocol_turns_the_group_back_into_a_round() -> None:
    group = heard(stable({"a": FOUR}))
    group.beat("c", JOINS)
    generation = joined(group, member("a")).generation
    group.beat("c", LEAVES)
    back = group.view.group
    assert isinstance(back, Group)
    assert (back.phase, back.generation, back.leader, list(back.members)) == (
        GroupPhase.PREPARING, generation, "a", ["a"]
    )  # fmt: skip
    assert group.commits("a", generation)
    after = join(group.view, "g", member("a"), rejoins=True, now_ms=1).response
    assert (after.phase, after.generation, after.leader) == (GroupPhase.COMPLETING, generation + 1, "a")


def test_it_turns_back_when_the_last_of_its_members_has_come_to_its_epoch() -> None:
    group = heard(stable({"a": FOUR[:2], "b": FOUR[2:]}))
    group.beat("c", JOINS)
    joined(group, member("a"))
    group.beat("c", LEAVES)  # b is behind
    assert group.group.type == "consumer"
    assert group.commits("b", 1)
    for _ in range(2):
        for name in "ab":
            if isinstance(group.view.group, ConsumerGroup):
                joined(group, member(name))
    assert isinstance(group.view.group, Group)


def test_a_group_that_may_not_turn_back_goes_on_with_members_of_the_classic_protocol() -> None:
    group = heard(stable({"a": FOUR}))
    group.beat("c", JOINS)
    joined(group, member("a"))
    group.decide(lambda view: leave(view, "g", "c", now_ms=1, migration=Migration.UPGRADE))
    joined(group, member("a"), migration=Migration.UPGRADE)
    assert held(group.group) == {"a": [0, 1, 2, 3]}


def test_a_leader_that_hands_in_assignments_when_the_group_has_turned_joins_again() -> None:
    group = heard(stable({"a": FOUR}))
    group.beat("c", JOINS)
    with pytest.raises(RebalanceInProgressError):
        sync(group.view, "g", "a", 1, assignments={"a": b""})
    with pytest.raises(UnknownMemberError):
        sync(group.view, "g", "b", 1)


def test_in_a_round_members_keep_what_they_said_that_they_own() -> None:
    classic = stable({"a": FOUR[:2], "b": FOUR[2:]})
    shares = {"a": tuple(FOUR[:2]), "b": tuple(FOUR[1:])}  # b says so of an older generation, too
    round_ = replace(
        classic,
        phase=GroupPhase.COMPLETING,
        members={name: replace(member(name, share), assignment=b"") for name, share in shares.items()},
    )
    assert held(turned(round_, topics(t=4))) == {"a": [0, 1], "b": [2, 3]}
    with pytest.raises(MissingTopicsError):
        turned(round_, {})


def test_a_cooperative_member_that_has_not_given_up_yet_owns_that_too() -> None:
    """It was assigned two of its four, and the others none of the rest: that is for the round after it gives up."""
    classic = stable({"a": FOUR[:2], "b": []})
    said = replace(member("a", tuple(FOUR)), assignment=classic.members["a"].assignment)
    group = replace(classic, members={**classic.members, "a": said})
    assert held(turned(group, topics(t=4))) == {"a": [0, 1, 2, 3], "b": []}


def test_a_partition_that_the_new_member_has_not_heard_of_stays_its_owners() -> None:
    assert held(turned(stable({"a": FOUR}), topics(t=1))) == {"a": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    "broken",
    [
        {"protocols": (("range", b"\x00"),)},
        {"assignment": encode_assignment(Assignment((("t", 0),), b"of its own")), "protocol": "of.our.own"},
        {"assignment": b"\x00\x01\x7f\xff\xff\xff"},
    ],
    ids=["subscription", "user data", "assignment"],
)
def test_what_is_not_of_the_consumer_protocol_does_not_turn(broken: dict[str, Any]) -> None:
    classic = stable({"a": FOUR})
    group = replace(classic, protocol=broken.pop("protocol", "range"))
    group = replace(group, members={"a": replace(classic.members["a"], **broken)})
    with pytest.raises(GroupNotFoundError, match="can't become one of the type consumer"):
        heard(group).beat("c", JOINS)
    with pytest.raises(GroupNotFoundError, match="not of the type consumer"):
        heard(replace(classic, protocol_type="connect")).beat("c", JOINS)


def test_who_joins_among_members_of_the_new_protocol() -> None:
    group = Heard(topics(t=4))
    group.beat("c", JOINS)
    with pytest.raises(InconsistentProtocolError, match="of that protocol type"):
        joined(group, member("a"), False, protocol_type="connect")
    with pytest.raises(UnknownMemberError):
        joined(group, member("a"))
    with pytest.raises(UnknownMemberError, match="one of the consumer protocol"):
        joined(group, member("c"))
    joined(group, member("a", instance_id="i"), False)
    with pytest.raises(InconsistentProtocolError, match="in common"):
        joined(group, member("b", assignor="sticky"), False)
    joined(group, member("a2", instance_id="i"), False)  # it takes the place of a
    with pytest.raises(FencedInstanceError):
        joined(group, member("a", instance_id="i"))
    assert sorted(group.group.members) == ["a2", "c"]
    group.beat("a3", JOINS, instance_id="i")  # and the new protocol takes that of the classic one
    assert not any(one.is_classic for one in group.group.members.values())
    group.beat("c", LEAVES)
    group.beat("a3", LEAVES)
    with pytest.raises(ClassicGroupError):
        joined(group, member("a"), False)


@pytest.mark.parametrize("epoch", [1, LEAVES, AWAY])
def test_one_that_was_replaced_is_fenced_also_in_a_group_that_has_turned_back(epoch: int) -> None:
    group = Heard(topics(t=4))
    group.beat("a", JOINS, instance_id="i")
    joined(group, member("a2", instance_id="j"), False)
    joined(group, member("b", instance_id="i"), False)  # it takes the place of a, which was the last of its protocol
    assert isinstance(group.view.group, Group)
    with pytest.raises(FencedInstanceError):
        group.beat("a", epoch, instance_id="i")
    with pytest.raises(GroupNotFoundError):
        group.beat("a", epoch, instance_id="none")
    with pytest.raises(GroupNotFoundError):
        group.beat("a", epoch)
