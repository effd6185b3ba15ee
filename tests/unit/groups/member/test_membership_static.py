"""Members with a static id: they come back to what they had, and of two with one id the later goes on."""

import pytest
from support.group_members import GROUP, FakeGroup

from tidelog.groups.model import CommittedOffset, GroupPhase
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import IllegalGenerationError


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeGroup, "watched", request.param)


def test_a_static_member_comes_back_to_what_it_had() -> None:
    group = FakeGroup()
    a, b = group.join("a", instance_id="i"), group.join("b")
    group.run(3)
    share, generation = a.owned, group.state.generation
    a.membership.leave()
    b.events()
    again = group.join("a", instance_id="i")
    again.step()
    group.run(20)
    assert again.owned == share
    assert b.events() == []
    assert group.state.generation == generation
    assert again.membership.leads


def test_a_static_leader_that_comes_back_notices_what_changed_meanwhile() -> None:
    group = FakeGroup()
    a, b = group.join("a", instance_id="i"), group.join("b")
    group.run(3)
    group.kill("a")
    group.counts["t"] = 6
    again = group.join("a", instance_id="i")
    group.run_until(lambda: len(again.owned) + len(b.owned) == 6, 5)
    assert a.owned == ["t0", "t1"]


def test_a_static_member_that_stays_away_is_evicted() -> None:
    group = FakeGroup()
    a, b = group.join("a", instance_id="i"), group.join("b")
    group.run(3)
    group.members.pop("a")
    a.membership.leave()
    assert group.run_until(lambda: len(b.owned) == 4, 20) > 8


def test_of_two_with_one_static_id_the_later_goes_on() -> None:
    group = FakeGroup()
    first = group.join("a", instance_id="i")
    group.run(3)
    first.events()
    second = group.join("b", instance_id="i")
    group.run(30)
    assert first.events() == ["lost t0,t1,t2,t3 FencedInstanceError", "failed FencedInstanceError for good"]
    assert first.membership.due_s() > 1e9
    assert len(second.owned) == 4


def test_a_static_member_that_missed_a_generation_says_so_and_joins_again() -> None:
    group = FakeGroup()
    a = group.join("a", instance_id="i", session_timeout_ms=60_000, max_poll_interval_ms=15_000)
    b = group.join("b", max_poll_interval_ms=15_000)
    group.run(3)
    a.events()
    a.frozen = True
    group.join("c", max_poll_interval_ms=15_000)
    group.run_until(lambda: group.state.generation > 2 and group.state.phase is GroupPhase.STABLE, 30)
    assert len(group.state.members) == 3
    assert len(b.owned) <= 2
    old = a.membership.identity()
    with pytest.raises(IllegalGenerationError):
        group.log.decide(GROUP, lambda view: decide_commit(view, old, {("t", 0): CommittedOffset(1)}))
    a.frozen = False
    a.step()
    assert a.events()[0].startswith("lost")
    group.run_until(lambda: bool(a.owned), 5)
