"""Native members of the consumer protocol, on a clock that the test turns: alone, and with classic ones."""

from dataclasses import replace

import pytest
from support.group_members import GROUP, FakeGroup, FakeMember

from tidelog.groups.member.events import ModernConfig
from tidelog.groups.model import CommittedOffset, ConsumerGroup, Group, GroupView
from tidelog.groups.rules.configuring import configure
from tidelog.groups.rules.members import leave
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import (
    FencedInstanceError,
    InvalidConfigError,
    InvalidGroupError,
    StorageUnavailableError,
    UnknownMemberError,
)

ALL = ["t0", "t1", "t2", "t3"]


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeGroup, "watched", request.param)


def together(*members: FakeMember) -> list[str]:
    return sorted(place for member in members for place in member.owned)


def commit(group: FakeGroup, member: FakeMember) -> None:
    offsets = {("t", 0): CommittedOffset(1)}
    group.log.decide(GROUP, lambda view: decide_commit(view, member.membership.identity(), offsets))


def test_one_member_owns_all_at_once_and_writes_nothing_more() -> None:
    group = FakeGroup()
    a = group.join_modern("a")
    a.step()
    assert a.events() == ["assigned t0,t1,t2,t3"]
    assert (a.membership.generation, a.membership.leads) == (1, True)
    entries = len(group.log.history)
    group.run(60)
    assert len(group.log.history) == entries
    commit(group, a)


def test_a_newcomer_gets_what_another_gives_up_and_what_stays_stays() -> None:
    group = FakeGroup()
    a = group.join_modern("a")
    a.step()
    a.events()
    b = group.join_modern("b")
    took_s = group.run_until(lambda: len(b.owned) == 2, 5)
    assert took_s <= (0.25 if FakeGroup.watched else 1.0)
    assert together(a, b) == ALL
    (revoked,) = a.events()
    assert revoked.startswith("revoke ")
    assert len(revoked.split(",")) == 2


def test_what_is_not_given_up_is_no_others_and_then_its_member_goes() -> None:
    group = FakeGroup()
    a = group.join_modern("a", max_poll_interval_ms=20_000)
    a.step()
    a.answers = False
    b = group.join_modern("b")
    group.run(10)
    assert b.owned == []
    group.run_until(lambda: b.owned == ALL, 60)
    group.run(5)
    assert any(event.startswith("lost") for event in a.events())


def test_a_killed_member_is_out_after_its_session() -> None:
    group = FakeGroup()
    a, b, c = (group.join_modern(name) for name in "abc")
    group.run(5)
    assert together(a, b, c) == ALL
    group.kill("a")
    took_s = group.run_until(lambda: together(b, c) == ALL, 80)
    assert 40 <= took_s <= 60


def test_a_session_is_as_long_as_the_group_is_configured() -> None:
    group = FakeGroup()
    group.log.decide(GROUP, lambda view: configure(view, GROUP, {"consumer.session.timeout.ms": "6000"}))
    _, b = group.join_modern("a"), group.join_modern("b")
    group.run(3)
    group.kill("a")
    assert group.run_until(lambda: b.owned == ALL, 20) <= 12
    assert together(b) == ALL


def test_a_session_is_never_so_short_that_members_evict_each_other() -> None:
    """Whatever program, and by whatever bounds, has configured the group."""
    group = FakeGroup()
    group.log.decide(GROUP, lambda view: configure(view, GROUP, {"consumer.session.timeout.ms": "1"}))
    a, b = group.join_modern("a"), group.join_modern("b")
    group.run(20)
    assert together(a, b) == ALL
    assert {member.session_timeout_ms for member in group.state.members.values()} == {6_000}
    assert [event for one in (a, b) for event in one.events() if event.startswith("lost")] == []


def test_one_that_leaves_is_out_at_once() -> None:
    group = FakeGroup()
    a, b = group.join_modern("a"), group.join_modern("b")
    group.run(3)
    a.membership.leave()
    assert a.membership.member_id == ""
    group.run_until(lambda: b.owned == ALL, 5)


def test_a_frozen_member_learns_that_it_is_out_and_joins_again() -> None:
    group = FakeGroup()
    a, b = group.join_modern("a"), group.join_modern("b")
    group.run(3)
    a.frozen = True
    identity = a.membership.identity()
    group.run_until(lambda: b.owned == ALL, 80)
    with pytest.raises(UnknownMemberError):
        group.log.decide(GROUP, lambda view: decide_commit(view, identity, {("t", 0): CommittedOffset(1)}))
    a.frozen = False
    a.events()
    group.run_until(lambda: together(a, b) == ALL and len(a.owned) == 2, 10)
    assert a.events()[0].startswith("lost")


def test_one_that_is_out_joins_again_also_in_a_group_that_has_turned_back() -> None:
    group = FakeGroup()
    a, old = group.join_modern("a"), group.join("old")
    group.run(5)
    a.frozen = True
    group.run_until(lambda: isinstance(group.log.group(GROUP), Group) and old.owned == ALL, 120)
    a.frozen = False
    group.run_until(lambda: len(a.owned) == 2 and together(a, old) == ALL, 10)


def test_one_that_does_not_poll_leaves_until_it_does() -> None:
    group = FakeGroup()
    a, b = group.join_modern("a", max_poll_interval_ms=10_000), group.join_modern("b")
    group.run(3)
    a.polls = False
    group.run_until(lambda: b.owned == ALL, 20)
    assert a.membership.owned == frozenset()
    a.polls = True
    group.run_until(lambda: len(a.owned) == 2, 10)


def test_a_static_member_is_away_and_comes_back_to_what_it_had() -> None:
    group = FakeGroup()
    a, b = group.join_modern("a", instance_id="i"), group.join_modern("b")
    group.run(3)
    had, other = a.owned, b.owned
    a.membership.leave()
    group.kill("a")
    group.run(5)
    assert b.owned == other
    again = group.join_modern("a2", instance_id="i")
    group.run_until(lambda: again.owned == had, 5)
    assert b.owned == other


def test_of_two_with_one_static_id_the_later_one_is_refused_for_good() -> None:
    group = FakeGroup()
    group.join_modern("a", instance_id="i")
    group.run(1)
    b = group.join_modern("b", instance_id="i")
    group.run(1)
    assert isinstance(b.membership.fenced, FencedInstanceError)
    with pytest.raises(FencedInstanceError):
        b.membership.identity()


@pytest.mark.parametrize("gives_up", [False, True])
def test_one_that_was_replaced_does_not_take_its_place_back(gives_up: bool) -> None:
    """Its group has turned back by then, as it was the last one of its protocol, so that it could join again."""
    group = FakeGroup()
    a = group.join_modern("a", instance_id="i")
    group.run(3)
    a.answers = not gives_up
    old = group.join("old")
    if gives_up:
        group.run_until(lambda: any(event.startswith("revoke") for event in a.events()), 10)
    a.frozen = not gives_up
    later = group.join("later", instance_id="i")
    group.run_until(lambda: isinstance(group.log.group(GROUP), Group) and together(old, later) == ALL, 20)
    a.frozen = False
    group.run(20)
    assert isinstance(a.membership.fenced, FencedInstanceError)
    assert together(old, later) == ALL
    assert a.owned == []


def test_one_that_was_replaced_may_leave() -> None:
    group = FakeGroup()
    a, b = group.join_modern("a", instance_id="i"), group.join_modern("b")
    group.run(3)
    a.frozen = True
    later = group.join("later", instance_id="i")
    group.run_until(lambda: later.owned != [] and together(b, later) == ALL, 20)
    a.membership.leave()
    assert a.membership.member_id == ""


def test_one_that_was_replaced_while_it_did_not_poll_stays_out() -> None:
    """It was replaced after it looked last, so that it learns of it as it leaves."""
    group = FakeGroup()
    a = group.join_modern("a", instance_id="i", max_poll_interval_ms=10_000)
    group.run(3)
    a.polls, late_s, state = False, group.clock.seconds + 9.9, group.state
    assert isinstance(state, ConsumerGroup)
    (member,) = state.members.values()
    later = replace(state, members={"later": replace(member, member_id="later")})

    def replaced() -> None:
        if group.clock.seconds > late_s:
            group.log.views[GROUP] = GroupView(later)

    group.log.before = replaced
    group.run(20)
    assert isinstance(a.membership.fenced, FencedInstanceError)
    assert (a.owned, list(group.state.members)) == ([], ["later"])


def test_another_subscription_and_topics_that_grow() -> None:
    group = FakeGroup({"t": 2, "u": 2})
    a = group.join_modern("a")
    group.run(1)
    a.membership.subscribe(["t", "u"])
    group.run_until(lambda: a.owned == ["t0", "t1", "u0", "u1"], 5)
    group.counts["u"] = 3
    group.run_until(lambda: a.owned == ["t0", "t1", "u0", "u1", "u2"], 10)
    a.membership.subscribe(["u"])
    group.run_until(lambda: a.owned == ["u0", "u1", "u2"], 5)


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    group = FakeGroup()
    a = group.join_modern("a")
    group.run(1)

    def away() -> None:
        raise StorageUnavailableError("no answer")

    group.log.before = away
    group.run(5)
    assert isinstance(a.membership.trouble, StorageUnavailableError)
    assert a.owned == ALL
    group.log.before = lambda: None
    group.run(6)
    assert a.membership.trouble is None


def test_members_of_both_protocols_share_and_the_group_turns_back() -> None:
    group = FakeGroup()
    old = group.join("old")
    group.run(2)
    assert isinstance(group.log.group(GROUP), Group)
    new = group.join_modern("new")
    group.run_until(lambda: len(new.owned) == 2 and len(old.owned) == 2, 10)
    assert isinstance(group.log.group(GROUP), ConsumerGroup)
    assert together(old, new) == ALL
    late = group.join("late")
    group.run_until(lambda: len(late.owned) >= 1 and together(old, new, late) == ALL, 10)
    new.membership.leave()
    group.kill("new")
    group.run_until(lambda: isinstance(group.log.group(GROUP), Group) and together(old, late) == ALL, 15)
    assert not any(event.startswith("lost") for event in [*old.events(), *late.events()])
    commit(group, old)


def test_cooperative_members_read_on_while_the_group_turns() -> None:
    group = FakeGroup()
    old = group.join("old", strategies=("cooperative-sticky",))
    group.run(2)
    new = group.join_modern("new")
    group.run_until(lambda: len(new.owned) == 2, 10)
    assert together(old, new) == ALL
    assert next(event for event in old.events() if event.startswith("revoke")).count(",") == 1


def test_an_administrator_removes_one_and_it_comes_back() -> None:
    group = FakeGroup()
    a = group.join_modern("a")
    group.run(1)
    member_id = a.membership.member_id
    group.log.decide(GROUP, lambda view: leave(view, GROUP, member_id, now_ms=1))
    a.events()
    group.run_until(lambda: a.owned == ALL, 10)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"group_id": ""}, InvalidGroupError),
        ({"group_id": "g", "assignor": "sticky"}, InvalidConfigError),
        ({"group_id": "g", "instance_id": ""}, InvalidConfigError),
    ],
)
def test_what_no_member_can_be_configured_with(config: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        ModernConfig(**config)
