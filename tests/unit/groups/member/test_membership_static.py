"""Members with a static id: they come back to what they had, and of two with one id the later goes on."""

import pytest
from support.group_town import GROUP, Town

from tidelog.groups.model import CommittedOffset, Phase
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import IllegalGenerationError


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Town, "watched", request.param)


def test_a_static_member_comes_back_to_what_it_had() -> None:
    town = Town()
    a, b = town.enter("a", instance_id="i"), town.enter("b")
    town.run(3)
    share, generation = a.owned, town.group.generation
    a.membership.leave()
    b.heard()
    again = town.enter("a", instance_id="i")
    again.step()
    town.run(20)
    assert again.owned == share
    assert b.heard() == []
    assert town.group.generation == generation
    assert again.membership.leads


def test_a_static_leader_that_comes_back_notices_what_changed_meanwhile() -> None:
    town = Town()
    a, b = town.enter("a", instance_id="i"), town.enter("b")
    town.run(3)
    town.kill("a")
    town.counts["t"] = 6
    again = town.enter("a", instance_id="i")
    town.run_until(lambda: len(again.owned) + len(b.owned) == 6, 5)
    assert a.owned == ["t0", "t1"]


def test_a_static_member_that_stays_away_is_evicted() -> None:
    town = Town()
    a, b = town.enter("a", instance_id="i"), town.enter("b")
    town.run(3)
    town.people.pop("a")
    a.membership.leave()
    assert town.run_until(lambda: len(b.owned) == 4, 20) > 8


def test_of_two_with_one_static_id_the_later_goes_on() -> None:
    town = Town()
    first = town.enter("a", instance_id="i")
    town.run(3)
    first.heard()
    second = town.enter("b", instance_id="i")
    town.run(30)
    assert first.heard() == ["lost t0,t1,t2,t3 FencedInstanceError", "failed FencedInstanceError for good"]
    assert first.membership.due_s() > 1e9
    assert len(second.owned) == 4


def test_a_static_member_that_missed_a_generation_says_so_and_joins_again() -> None:
    town = Town()
    a = town.enter("a", instance_id="i", session_timeout_ms=60_000, max_poll_interval_ms=15_000)
    b = town.enter("b", max_poll_interval_ms=15_000)
    town.run(3)
    a.heard()
    a.frozen = True
    town.enter("c", max_poll_interval_ms=15_000)
    town.run_until(lambda: town.group.generation > 2 and town.group.phase is Phase.STABLE, 30)
    assert len(town.group.members) == 3
    assert len(b.owned) <= 2
    old = a.membership.identity()
    with pytest.raises(IllegalGenerationError):
        town.log.decide(
            GROUP,
            lambda view: decide_commit(
                view, GROUP, {("t", 0): CommittedOffset(1)}, member_id=old.member_id, generation=old.generation,
                instance_id="i",
            ),
        )  # fmt: skip
    a.frozen = False
    a.step()
    assert a.heard()[0].startswith("lost")
    town.run_until(lambda: bool(a.owned), 5)
