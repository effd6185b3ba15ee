"""Memberships on a clock that the test turns: joining, rebalancing, going, coming back."""

import pytest
from support.group_members import GROUP, FakeGroup, FakeGroupLog

from tidelog.groups.consumer_protocol import newest_claims
from tidelog.groups.member.events import MemberConfig
from tidelog.groups.member.heartbeats import FOLDER, lease_path
from tidelog.groups.model import CommittedOffset, ConsumerGroup, ConsumerMember, Decision, GroupPhase
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidGroupError,
    StorageUnavailableError,
    UnknownMemberError,
)
from tidelog.log.storage.port import ObjectInfo
from tidelog.transactions.ports import GroupIdentity

EAGER = ("range", "roundrobin", "sticky")


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeGroup, "watched", request.param)


def test_one_member_owns_all_at_once() -> None:
    group = FakeGroup()
    a = group.join("a")
    a.step()
    assert a.events() == ["assigned t0,t1,t2,t3"]
    assert a.membership.leads
    assert a.membership.generation == 1
    assert a.membership.member_id == "a-00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize("strategy", EAGER)
def test_eager_members_give_all_up_and_share_again(strategy: str) -> None:
    group = FakeGroup()
    a = group.join("a", strategies=(strategy,))
    a.step()
    a.events()
    b = group.join("b", strategies=(strategy,))
    took = group.run_until(lambda: bool(b.owned), 5)
    assert took <= 1.0
    assert a.events()[0] == "revoke t0,t1,t2,t3"
    assert sorted(a.owned + b.owned) == ["t0", "t1", "t2", "t3"]
    assert len(a.owned) == 2


def test_sticky_remembers_what_it_gave_up() -> None:
    group = FakeGroup({"t": 6})
    a, b, c = (group.join(name, strategies=("sticky",)) for name in "abc")
    group.run(5)
    before = group.shares()
    group.kill("c")
    group.run_until(lambda: len(a.owned) == 3 and len(b.owned) == 3, 20)
    assert set(before["a"]) < set(a.owned)
    assert set(before["b"]) < set(b.owned)
    assert len(c.owned) == 2


def test_cooperative_members_keep_what_stays_in_two_rounds() -> None:
    group = FakeGroup()
    a = group.join("a", strategies=("cooperative-sticky",))
    a.step()
    a.events()
    b = group.join("b", strategies=("cooperative-sticky",))
    group.run_until(lambda: bool(b.owned), 5)
    assert a.owned == ["t0", "t1"]
    assert a.events() == ["revoke t2,t3", "assigned", "assigned"]
    assert b.events()[-1] == "assigned t2,t3"
    group.run(30)
    assert a.events() == b.events() == []
    assert group.state.generation == 3


def test_cooperative_members_read_on_while_another_gives_up() -> None:
    group = FakeGroup()
    a = group.join("a", strategies=("cooperative-sticky",))
    a.answers = False
    a.step()
    b = group.join("b", strategies=("cooperative-sticky",))
    group.run(5)
    assert a.events() == ["assigned t0,t1,t2,t3", "revoke t2,t3"]
    assert a.owned == ["t0", "t1", "t2", "t3"]
    assert b.owned == []
    a.membership.revoked()
    group.run_until(lambda: b.owned == ["t2", "t3"], 5)


def test_nobody_gets_what_an_eager_member_has_not_given_up() -> None:
    group = FakeGroup()
    a = group.join("a")
    a.answers = False
    a.step()
    b = group.join("b")
    group.run(40)
    assert a.owned == ["t0", "t1", "t2", "t3"]
    assert b.owned == []
    assert group.state.phase is GroupPhase.PREPARING
    a.membership.revoked()
    group.run_until(lambda: b.owned == ["t2", "t3"], 5)
    assert a.owned == ["t0", "t1"]


def test_more_members_than_partitions_leave_some_idle() -> None:
    group = FakeGroup({"t": 2})
    for name in "abcd":
        group.join(name)
    group.run(5)
    assert sorted(map(len, group.shares().values())) == [0, 0, 1, 1]


def test_who_leaves_is_replaced_at_once() -> None:
    group = FakeGroup()
    a, b = group.join("a"), group.join("b")
    group.run(3)
    group.members.pop("a")
    a.membership.leave()
    assert a.membership.due_s() > 1e9
    assert group.run_until(lambda: len(b.owned) == 4, 5) <= 1.0
    assert [lease.path for lease in leases(group)] == [lease_path(GROUP, b.membership.member_id)]


@pytest.mark.parametrize("dies", ["a", "b"])
def test_who_dies_is_replaced_after_its_session(dies: str) -> None:
    group = FakeGroup()
    group.join("a")
    group.join("b")
    group.run(3)
    group.kill(dies)
    (heir,) = group.members.values()
    took = group.run_until(lambda: len(heir.owned) == 4, 20)
    assert 9 < took <= 12
    assert [lease.path for lease in leases(group)] == [lease_path(GROUP, heir.membership.member_id)]


def test_all_but_one_die() -> None:
    group = FakeGroup()
    for name in "abcdef":
        group.join(name)
    group.run(5)
    for name in "abcde":
        group.kill(name)
    assert group.run_until(lambda: len(group.members["f"].owned) == 4, 40) <= 22


def test_a_frozen_member_loses_what_it_owned_and_can_not_commit() -> None:
    group = FakeGroup()
    a, b = group.join("a"), group.join("b")
    group.run(3)
    a.frozen = True
    frozen_as = a.membership.identity()
    group.run_until(lambda: len(b.owned) == 4, 20)
    with pytest.raises(UnknownMemberError):
        commit(group, frozen_as.member_id, frozen_as.generation)
    a.events()
    a.frozen = False
    a.step()
    assert a.events() == ["lost t0,t1 UnknownMemberError"]
    with pytest.raises(UnknownMemberError, match="no generation"):
        a.membership.identity()
    group.run_until(lambda: len(a.owned) == 2, 5)


def test_a_frozen_observer_evicts_nobody() -> None:
    group = FakeGroup()
    a, b = group.join("a"), group.join("b")
    group.run(3)
    for member in (a, b):  # the whole machine sleeps
        member.frozen = True
    group.run(100)
    for member in (a, b):
        member.frozen = False
    generation = group.state.generation
    group.run(30)
    assert group.state.generation == generation


def test_a_late_member_is_left_behind() -> None:
    group = FakeGroup()
    a, _ = group.join("a", max_poll_interval_ms=20_000), group.join("b", max_poll_interval_ms=20_000)
    group.run(3)
    a.answers = False
    c = group.join("c", max_poll_interval_ms=20_000)
    took = group.run_until(lambda: bool(c.owned), 40)  # a's heartbeats go on, but it does not give up what it owns
    assert took == pytest.approx(20.5, abs=1.5)
    group.run(1)
    assert "lost t0,t1 UnknownMemberError" in a.events()


def test_an_application_that_does_not_poll_loses_its_partitions_until_it_does() -> None:
    group = FakeGroup()
    a, b = group.join("a", max_poll_interval_ms=30_000), group.join("b")
    group.run(3)
    a.events()
    a.polls = False
    group.run_until(lambda: len(b.owned) == 4, 35)
    assert a.events() == ["lost t0,t1 MaxPollExceededError"]
    group.run(60)
    assert len(b.owned) == 4
    a.polls = True
    group.run_until(lambda: len(a.owned) == 2, 5)


def test_time_asleep_is_not_the_applications_fault() -> None:
    group = FakeGroup()
    a = group.join("a", max_poll_interval_ms=30_000)
    group.run(3)
    a.events()
    a.frozen = True
    group.run(100)
    a.frozen, a.polls = False, False
    group.run(25)
    assert a.events() == []
    group.run(10)
    assert a.events() == ["lost t0,t1,t2,t3 MaxPollExceededError"]


def test_another_subscription_is_another_round() -> None:
    group = FakeGroup({"t": 2, "u": 2})
    a, b = group.join("a"), group.join("b")
    group.run(3)
    b.membership.subscribe(["t", "u"])
    group.run_until(lambda: b.owned == ["t1", "u0", "u1"], 5)
    assert a.owned == ["t0"]


def test_a_share_that_is_no_longer_wanted_goes_back() -> None:
    group = FakeGroup({"t": 3, "u": 3})
    leader, a, b = (group.join(name) for name in ("leader", "a", "b"))
    group.run(3)
    b.frozen = True
    a.membership.subscribe(["t", "u"])
    group.run(1)
    leader.frozen, b.frozen = True, False
    group.run_until(lambda: group.state.phase is GroupPhase.COMPLETING, 2)
    a.membership.subscribe(["u"])
    a.step()
    leader.frozen = False
    group.run_until(lambda: a.owned == ["u0", "u1", "u2"] and len(leader.owned + b.owned) == 3, 5)


def test_another_subscription_while_others_are_waited_for() -> None:
    group = FakeGroup({"t": 2, "u": 2})
    a, b = group.join("a"), group.join("b")
    group.run(3)
    b.answers = False
    a.membership.subscribe(["t", "u"])
    group.run(2)
    a.membership.subscribe(["u"])
    group.run(2)
    b.answers = True
    b.membership.revoked()
    took = group.run_until(lambda: a.owned == ["u0", "u1"] and b.owned == ["t0", "t1"], 5)
    assert took <= 0.2, "it joined anew at once, not after a share that it does not want"


def test_cooperative_members_give_up_topics_that_they_no_longer_want() -> None:
    group = FakeGroup({"t": 2, "u": 2})
    a = group.join("a", ["t", "u"], strategies=("cooperative-sticky",))
    a.step()
    a.membership.subscribe(["u"])
    group.run(3)
    assert a.events() == ["assigned t0,t1,u0,u1", "revoke t0,t1", "assigned"]
    assert a.owned == ["u0", "u1"]


def test_the_leader_notices_new_partitions_and_topics() -> None:
    group = FakeGroup()
    a, b = group.join("a", ["t", "u"]), group.join("b", ["t", "u"])
    group.run(3)
    group.counts.update(t=6, u=2)
    group.run_until(lambda: len(a.owned) + len(b.owned) == 8, 5)


def test_a_member_that_does_not_fit_is_told_once_and_goes_on_trying() -> None:
    group = FakeGroup()
    a = group.join("a", strategies=("range",))
    b = group.join("b", strategies=("sticky",))
    group.run(5)
    assert b.events() == ["failed InconsistentProtocolError"]
    a.membership.leave()
    group.run_until(lambda: len(b.owned) == 4, 5)


def test_a_store_that_does_not_answer_is_waited_for() -> None:
    group = FakeGroup()
    a = group.join("a")
    group.run(2)
    a.events()
    away = StorageUnavailableError("gone")
    group.log.before = lambda: (_ for _ in ()).throw(away)
    group.run(20)
    assert a.membership.trouble is away
    assert len(a.owned) == 4
    calls = []
    group.log.before = lambda: calls.append(1)
    group.run(2)
    assert a.membership.trouble is None
    assert a.events() == []
    assert len(calls) <= 6, "calm looks come twice a second, or with the heartbeats"


def test_a_lost_answer_to_a_join_does_not_double_the_member() -> None:
    class Deaf(FakeGroupLog):
        deaf = 1

        def decide(self, group_id: str, rule: object) -> object:
            answer = super().decide(group_id, rule)  # type: ignore[arg-type]
            self.deaf -= 1
            if self.deaf == 0:
                raise StorageUnavailableError("no answer")
            return answer

    group = FakeGroup()
    group.log = Deaf()
    a = group.join("a")
    group.run(3)
    assert len(a.owned) == 4
    assert len(group.state.members) == 1


def leases(group: FakeGroup) -> list[ObjectInfo]:
    (folder,) = group.storage.list_folders(FOLDER)
    return list(group.storage.list_after(f"{FOLDER}/{folder}"))


def commit(group: FakeGroup, member_id: str, generation: int, instance_id: str | None = None) -> None:
    committer = GroupIdentity(GROUP, member_id, generation, instance_id)
    group.log.decide(GROUP, lambda view: decide_commit(view, committer, {("t", 0): CommittedOffset(1)}))


def test_a_member_is_cooperative_when_all_its_assignors_are() -> None:
    assert MemberConfig(group_id="g", strategies=("cooperative-sticky",)).cooperative
    assert not MemberConfig(group_id="g", strategies=("cooperative-sticky", "range")).cooperative


def test_of_claims_to_one_partition_the_newest_counts() -> None:
    claims = {"a": ([("t", 0), ("t", 1)], 3), "b": ([("t", 1), ("t", 2)], 4), "c": ([("t", 0)], 3), "d": ([], -1)}
    assert newest_claims(claims) == {"a": [("t", 0)], "b": [("t", 1), ("t", 2)], "c": [("t", 0)], "d": []}


def test_time_without_a_subscription_is_no_time_to_poll_in() -> None:
    group = FakeGroup()
    a = group.join("a", max_poll_interval_ms=30_000)
    group.run(3)
    a.membership.leave()
    group.clock.pass_s(500)
    a.membership.subscribe(["t"])
    a.step()
    a.polls = False
    a.events()
    group.run(31)
    assert a.events() == ["lost t0,t1,t2,t3 MaxPollExceededError"]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"group_id": ""}, InvalidGroupError),
        ({"strategies": ("rnage",)}, InvalidConfigError),
        ({"strategies": ()}, InvalidConfigError),
        ({"heartbeat_interval_ms": 6_000, "session_timeout_ms": 10_000}, InvalidConfigError),
        ({"heartbeat_interval_ms": 0}, InvalidConfigError),
        ({"instance_id": ""}, InvalidConfigError),
    ],
)
def test_what_no_member_can_be(config: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        MemberConfig(**{"group_id": "g", **config})  # type: ignore[arg-type]


def test_a_member_finds_that_its_group_is_of_another_type_by_now() -> None:
    group = FakeGroup()
    a = group.join("a")
    a.step()
    a.events()
    other = ConsumerGroup(GROUP, 9, 9, "uniform", 1, {"m": ConsumerMember("m", epoch=9)})
    group.log.decide(GROUP, lambda view: Decision(response=None, group=other))
    group.run(5)
    assert a.events() == ["lost t0,t1,t2,t3 UnknownMemberError", "assigned t0,t1,t2,t3"]
    state = group.log.group(GROUP)
    assert isinstance(state, ConsumerGroup)
    assert state.members[a.membership.member_id].is_classic
