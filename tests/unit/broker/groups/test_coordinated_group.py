"""A group at its coordinator by a clock that tests set: parked requests, sessions, rounds that take too long."""

from dataclasses import replace

import pytest

from tidelog.broker.base.group_configs import SESSION, GroupConfigs
from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.groups import coordinated_group
from tidelog.broker.groups.coordinated_group import (
    AGAIN_S,
    Admit,
    CoordinatedGroup,
    Evict,
    EvictLate,
    JoinAnswer,
    Joining,
    ShareAnswer,
)
from tidelog.broker.groups.errors import GroupFullError
from tidelog.groups.config import GroupConfig
from tidelog.groups.model import ConsumerGroup, Group, GroupPhase, Member, StreamsGroup
from tidelog.log.base.errors import RebalanceInProgressError, UnknownMemberError

SESSION_S = 10.0


def member(name: str, **changed) -> Member:
    return replace(Member(name, "c", "/h", 10_000, 30_000, (("range", b"m"),)), **changed)


def group(phase: GroupPhase, *members: Member, generation: int = 1) -> Group:
    leader = members[0].member_id if members else None
    return Group("g", phase, generation, "consumer", "range", leader, {one.member_id: one for one in members})


def coordinated(delay_ms: int = 0, **changed) -> CoordinatedGroup:
    settings = GroupSettings(initial_rebalance_delay_ms=delay_ms, **changed)
    return CoordinatedGroup("g", settings, GroupConfigs(settings))


def joining(name: str, ticket: str = "", **changed) -> Joining:
    return replace(Joining(member(name), "consumer", known=False, ticket=ticket or name), **changed)


def stable(*names: str) -> CoordinatedGroup:
    """A Stable group of members that were heard at 0."""
    made = coordinated()
    made.seen(group(GroupPhase.STABLE, *map(member, names)), 0.0)
    for name in names:
        made.heard(name, 0.0)
    return made


# --- parked requests -------------------------------------------------------------------------------------------


def test_a_join_waits_until_its_round_is_over() -> None:
    one = coordinated()
    one.joined(joining("a"))
    preparing = group(GroupPhase.PREPARING, member("a", joined=True), member("b"))
    assert one.seen(preparing, 0.0) == []
    assert one.due(20.0) == []  # no session runs while its request is parked; b's lease is not looked at yet
    completing = group(GroupPhase.COMPLETING, member("a"), member("b"), generation=2)
    assert one.seen(completing, 21.0) == [("a", JoinAnswer(completing, "a"))]
    assert one.due(21.0 + SESSION_S - 0.1) == []
    assert one.due(21.0 + SESSION_S) == [Evict({"a": 0})]


def test_a_join_is_answered_when_the_next_round_has_begun_already() -> None:
    one = coordinated()
    one.joined(joining("a"))
    again = group(GroupPhase.PREPARING, member("a"), member("b", joined=True), generation=2)
    assert one.seen(again, 0.0) == [("a", JoinAnswer(again, "a"))]


def test_a_parked_member_that_is_evicted_hears_of_it() -> None:
    one = stable("a", "b")
    one.joined(joining("a"))
    one.syncs("b", 1, "sync", 0.0)
    answers = dict(one.seen(group(GroupPhase.STABLE, member("c")), 1.0))
    assert isinstance(answers["a"], UnknownMemberError)
    one.joined(joining("b"))
    ((_, answer),) = one.seen(None, 2.0)
    assert isinstance(answer, UnknownMemberError)


def test_a_repeated_join_takes_the_place_of_the_first() -> None:
    one = coordinated()
    one.joined(joining("a", "first"))
    ((ticket, answer),) = one.joined(joining("a", "second"))
    assert ticket == "first"
    assert isinstance(answer, RebalanceInProgressError)


def test_a_sync_waits_for_the_share_out() -> None:
    one = coordinated()
    completing = group(GroupPhase.COMPLETING, member("a"), member("b"))
    one.seen(completing, 0.0)
    assert one.syncs("b", 1, "sync", 0.0) == []
    shared = group(GroupPhase.STABLE, member("a"), member("b", assignment=b"b"))
    assert one.seen(shared, 1.0) == [("sync", ShareAnswer(shared, "b"))]
    assert one.syncs("a", 1, "late", 2.0) == [("late", ShareAnswer(shared, "a"))]


@pytest.mark.parametrize(
    "after",
    [
        group(GroupPhase.PREPARING, member("a"), member("b")),
        group(GroupPhase.COMPLETING, member("a"), member("b"), generation=2),
        group(GroupPhase.STABLE, member("a"), member("b"), generation=2),
    ],
    ids=["a round begins", "a round is over", "two rounds are over"],
)
def test_a_sync_ends_when_a_round_begins(after: Group) -> None:
    one = coordinated()
    one.seen(group(GroupPhase.COMPLETING, member("a"), member("b")), 0.0)
    one.syncs("b", 1, "sync", 0.0)
    ((ticket, answer),) = one.seen(after, 1.0)
    assert ticket == "sync"
    assert isinstance(answer, RebalanceInProgressError)


def test_a_client_that_is_gone_has_a_session_from_then_on() -> None:
    one = coordinated()
    one.joined(joining("a"))
    one.seen(group(GroupPhase.PREPARING, member("a", joined=True), member("b")), 0.0)
    assert one.gone("a", 5.0) is None
    assert one.due(5.0 + SESSION_S) == [Evict({"a": 0})]


def test_a_client_that_never_heard_its_id_goes_at_once() -> None:
    one = coordinated()
    one.joined(joining("a", fresh=True))
    one.seen(group(GroupPhase.PREPARING, member("a", joined=True, turn=7), member("b")), 0.0)
    assert one.gone("a", 5.0) == Evict({"a": 7})


def test_a_static_member_is_given_its_session_all_the_same() -> None:
    one = coordinated()
    one.joined(joining("a", fresh=True))
    one.seen(group(GroupPhase.PREPARING, member("a", joined=True, instance_id="i"), member("b")), 0.0)
    assert one.gone("a", 5.0) is None


# --- sessions --------------------------------------------------------------------------------------------------


def test_a_silent_member_is_evicted_after_its_session() -> None:
    one = stable("a", "b")
    one.heard("b", 5.0)
    assert one.due(SESSION_S - 0.1) == []
    assert one.due(SESSION_S) == [Evict({"a": 0})]
    assert one.due(SESSION_S + 0.1) == []  # it is on its way
    assert one.due(SESSION_S + AGAIN_S) == [Evict({"a": 0})]  # and was not written


def test_a_pause_of_the_coordinator_counts_against_no_member() -> None:
    one = stable("a")
    one.paused(60.0)
    assert one.due(60.0 + SESSION_S - 0.1) == []
    assert one.due(60.0 + SESSION_S) == [Evict({"a": 0})]


def test_members_that_are_known_from_the_log_have_a_full_session() -> None:
    one = coordinated()
    one.seen(group(GroupPhase.STABLE, member("a"), member("n")), 0.0)
    assert one.unsorted == {"a", "n"}
    one.sort("a", native=False, now_s=3.0)
    one.sort("n", native=True, now_s=3.0)
    assert (one.unsorted, one.native) == (set(), {"n"})
    assert one.never_heard("a")
    assert one.due(3.0 + SESSION_S) == [Evict({"a": 0})]


def test_a_native_member_that_is_taken_for_one_of_kafkas_is_left_to_its_lease() -> None:
    one = coordinated()
    one.seen(group(GroupPhase.STABLE, member("n")), 0.0)
    one.sort("n", native=False, now_s=0.0)
    one.turns_native("n")
    assert one.due(1000.0) == []


def test_a_heartbeat_sorts_a_member() -> None:
    one = coordinated()
    one.seen(group(GroupPhase.STABLE, member("a")), 0.0)
    one.heard("a", 1.0)
    assert not one.unsorted
    assert not one.never_heard("a")
    assert one.kafka_members


def test_a_group_is_idle_when_its_members_are_gone() -> None:
    one = stable("a")
    assert not one.is_idle
    one.seen(None, 1.0)
    assert one.is_idle
    one.expect("x", 5.0, 1.0)
    assert one.expects("x")
    assert not one.is_idle
    one.due(6.0)
    assert one.is_idle
    assert not one.expects("x")


# --- rounds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", [GroupPhase.PREPARING, GroupPhase.COMPLETING])
def test_a_round_has_the_longest_rebalance_timeout(phase: GroupPhase) -> None:
    one = coordinated()
    members = member("a", joined=True), member("b", rebalance_timeout_ms=40_000)
    one.seen(group(phase, *members, generation=3), 0.0)
    one.seen(group(phase, *members, member("c"), generation=3), 20.0)  # it goes on
    assert one.due(39.9) == []
    assert one.due(40.0) == [EvictLate(3)]
    assert one.due(41.0) == []


def test_a_round_for_which_no_member_has_joined_waits_on() -> None:
    one = coordinated()
    one.seen(group(GroupPhase.PREPARING, member("a")), 0.0)
    assert one.due(1000.0) == []


def test_the_first_round_waits_and_longer_while_members_come() -> None:
    one, a, b = coordinated(3_000), joining("a"), joining("b")
    assert one.holds(a, 0.0) == []
    assert one.due(2.9) == []
    assert one.holds(b, 2.9) == []
    assert one.due(3.0) == []
    assert one.due(5.9) == []
    assert one.due(6.0) == [Admit((a, b))]
    assert one.due(7.0) == []


def test_the_first_round_waits_no_longer_than_a_rebalance_may_take() -> None:
    one = coordinated(3_000)
    short = joining("a", member=member("a", rebalance_timeout_ms=4_000))
    one.holds(short, 0.0)
    one.holds(joining("b"), 1.0)
    assert one.due(3.0) == []
    one.holds(joining("c"), 3.5)
    ((admitted),) = one.due(4.0)
    assert isinstance(admitted, Admit)
    assert [each.member.member_id for each in admitted.joinings] == ["a", "b", "c"]


def test_the_wait_ends_when_the_group_has_members() -> None:
    one, a = coordinated(3_000), joining("a")
    one.holds(a, 0.0)
    one.seen(group(GroupPhase.STABLE, member("n")), 1.0)
    assert Admit((a,)) in one.due(1.0)
    assert one.holds(joining("b"), 1.0) is None


def test_a_held_client_that_is_gone_does_not_join() -> None:
    one, b = coordinated(3_000), joining("b")
    one.holds(joining("a"), 0.0)
    one.holds(b, 0.0)
    one.gone("a", 1.0)
    one.due(3.0)
    assert one.due(6.0) == [Admit((b,))]
    one.holds(joining("c"), 7.0)
    one.gone("c", 7.0)
    assert one.due(100.0) == []
    assert one.is_idle


def test_known_members_do_not_wait() -> None:
    assert coordinated(3_000).holds(joining("a", known=True), 0.0) is None
    assert coordinated(0).holds(joining("a"), 0.0) is None


def test_a_group_is_full_with_those_that_wait() -> None:
    one = coordinated(3_000, max_size=2)
    one.holds(joining("a"), 0.0)
    with one.room_for("b", Group):
        pass
    one.holds(joining("b"), 0.0)
    with pytest.raises(GroupFullError, match=r"2 members, `group\.max\.size`"), one.room_for("c", Group):
        pass


def test_a_group_is_full_with_those_that_are_decided() -> None:
    one = coordinated(0, max_size=3)
    one.seen(group(GroupPhase.STABLE, member("a")), 0.0)
    with one.room_for("b", Group), one.room_for("b", Group):  # it repeats its request
        with one.room_for("c", Group), one.room_for("a", Group):
            with pytest.raises(GroupFullError), one.room_for("d", Group):
                pass
            one.seen(group(GroupPhase.STABLE, member("a"), member("b"), member("c")), 0.0)
            with pytest.raises(GroupFullError), one.room_for("d", Group):
                pass
        one.seen(group(GroupPhase.STABLE, member("a"), member("b")), 0.0)
        with one.room_for("d", Group):
            pass
    assert not one.newcomers


@pytest.mark.parametrize(("becomes", "name"), [(Group, ""), (ConsumerGroup, "consumer."), (StreamsGroup, "streams.")])
def test_how_many_members_a_group_has_is_a_matter_of_the_type_that_it_comes_to_have(becomes, name) -> None:
    sizes = dict.fromkeys(("max_size", "consumer_max_size", "streams_max_size"), 9)
    one = coordinated(**sizes | {name.replace(".", "_") + "max_size": 2})
    one.seen(group(GroupPhase.STABLE, member("a"), member("b")), 0.0)
    with pytest.raises(GroupFullError, match=rf"2 members, `group\.{name}max\.size`"):
        one.room_for("c", becomes).__enter__()
    for other in {Group, ConsumerGroup, StreamsGroup} - {becomes}:
        with one.room_for("c", other):
            pass


def test_a_group_that_has_not_changed_is_not_gone_through_again(monkeypatch) -> None:
    one, state, asked = coordinated(), group(GroupPhase.STABLE, member("a"), member("b")), []
    monkeypatch.setattr(coordinated_group, "is_to_give_up", lambda _, member: asked.append(member.member_id))
    for _ in range(3):
        one.seen(state, 0.0)
    assert asked == ["a", "b"]
    one.seen(replace(state, generation=2), 0.0)
    assert asked == ["a", "b"] * 2


def test_all_that_wait_hear_of_the_end() -> None:
    one, why = coordinated(3_000), UnknownMemberError("x")
    one.holds(joining("a"), 0.0)
    one.joined(joining("b"))
    one.syncs("c", 1, "sync", 0.0)
    tickets = {ticket for ticket, answer in one.close(why)}
    assert tickets == {"a", "b"}  # c was no member, and has its answer
    assert one.is_idle


def test_a_configuration_is_read_once_for_many_heartbeats(monkeypatch) -> None:
    one, parse, parsed = coordinated(consumer_min_session_timeout_ms=6_000), GroupConfig.parse, []
    monkeypatch.setattr(GroupConfig, "parse", lambda texts: parsed.append(dict(texts)) or parse(texts))
    assert one.limits()[SESSION] == one.limits({})[SESSION] == 45_000
    short = {SESSION: "7000"}
    one.configured(short)
    for _ in range(3):
        one.configured(dict(short))
        assert one.limits()[SESSION] == one.limits(dict(short))[SESSION] == 7_000
    assert parsed == [short]
    assert one.limits({SESSION: "1"})[SESSION] == 6_000
