"""Who watches whom, what watching costs, and watching from outside."""

from collections.abc import Mapping

import pytest
from support.group_town import GROUP, Town

from tidelog.groups.member.failure_detector import Bystander
from tidelog.groups.member.membership import BUSY_LOOK_S
from tidelog.groups.model import Phase
from tidelog.log.base.errors import StorageUnavailableError


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Town, "watched", request.param)


def test_a_group_whose_members_were_all_killed_is_emptied_from_outside() -> None:
    town = Town()
    for name in "abc":
        town.enter(name)
    town.run(3)
    for name in "abc":
        town.kill(name)
    bystander = Bystander(town.log, town.leases, GROUP, town.clock)
    began = town.clock.seconds
    while (group := bystander.step()) is not None and group.members:
        assert bystander.due_s() > 0
        assert town.clock.seconds - began < 60
        town.clock.pass_s(bystander.due_s())
    assert town.clock.seconds - began == pytest.approx(10)
    assert town.group.phase is Phase.EMPTY
    assert town.group.empty_since_ms == town.clock.ms


def test_from_outside_the_living_stay() -> None:
    town = Town()
    a, _ = town.enter("a"), town.enter("b")
    town.run(3)
    town.kill("b")
    bystander = Bystander(town.log, town.leases, GROUP, town.clock)
    for _ in range(300):
        bystander.step()
        town.run(0.1)
    assert list(town.group.members) == [a.membership.member_id]


def test_a_group_that_is_not_there_has_nobody_to_watch() -> None:
    town = Town()
    assert Bystander(town.log, town.leases, "other", town.clock).step() is None


def test_followers_look_at_the_leader_only() -> None:
    town = Town({"t": 10})
    for name in "abcdefghij":
        town.enter(name)
    town.run(5)
    reads: list[str] = []
    counter = town.leases.counter

    def counted(group_id: str, member_id: str) -> int | None:
        reads.append(member_id)
        return counter(group_id, member_id)

    town.leases.counter = counted  # type: ignore[method-assign]
    town.run(10)
    assert len(reads) == pytest.approx(10 * (9 + 9), rel=0.15)  # a second: the leader all nine, nine the leader


def test_a_lease_that_can_not_be_read_counts_against_nobody() -> None:
    town = Town()
    town.enter("a")
    b = town.enter("b")
    town.run(3)
    b.frozen = True
    real = town.leases.counter

    def away(group_id: str, member_id: str) -> int | None:
        raise StorageUnavailableError("no answer")

    town.leases.counter = away  # type: ignore[method-assign]
    town.run(30)
    assert len(town.group.members) == 2
    town.leases.counter = real  # type: ignore[method-assign]
    town.run(8)
    assert len(town.group.members) == 2, "a gap begins the clock again"
    town.run(4)
    assert len(town.group.members) == 1


def test_a_leader_that_can_not_share_out_loses_its_office() -> None:
    town = Town()
    a = town.enter("a", max_poll_interval_ms=20_000)
    town.run(2)
    real = a.membership._seat._partition_counts

    def away(topics: object) -> Mapping[str, int]:
        raise StorageUnavailableError("no answer")

    a.membership._seat._partition_counts = away  # type: ignore[assignment]
    b = town.enter("b", max_poll_interval_ms=20_000)
    town.run_until(lambda: len(b.owned) == 4, 30)
    assert b.membership.leads
    a.membership._seat._partition_counts = real
    town.run_until(lambda: len(a.owned) == 2, 30)


def test_who_is_woken_looks_at_once_and_then_not_all_the_time() -> None:
    town = Town()
    a = town.enter("a")
    town.run(3)
    a.step()
    town.clock.pass_s(min(0.1, a.membership.due_s() / 2))
    assert a.membership.due_s() > 0
    a.membership.wake()
    assert a.membership.due_s() == 0
    a.step()
    a.membership.wake()
    assert 0 < a.membership.due_s() <= BUSY_LOOK_S


def test_who_is_woken_sees_a_newcomer_before_its_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks of who is not woken: twice a second; heartbeats are no reason to look."""
    took = {}
    for watched in (False, True):
        monkeypatch.setattr(Town, "watched", watched)
        town = Town()
        a = town.enter("a", heartbeat_interval_ms=3_000)
        town.run(4.3)
        b = town.enter("b", heartbeat_interval_ms=3_000)
        took[watched] = town.run_until(lambda: bool(b.owned) and len(a.owned) == 2, 5)  # noqa: B023 - called at once
    assert took[True] <= 0.2
    assert took[True] < took[False]


def test_a_calm_member_is_stepped_a_few_times_a_second() -> None:
    town = Town()
    a = town.enter("a")
    town.run(3)
    steps = 0
    until = town.clock.seconds + 10
    while town.clock.seconds < until:
        town.clock.pass_s(a.membership.due_s())
        a.membership.polled()
        a.membership.step()
        steps += 1
    assert steps <= 32  # twenty looks and ten heartbeats
