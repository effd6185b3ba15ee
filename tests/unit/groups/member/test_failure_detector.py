"""Which member watches which, what watching costs, and watching from outside."""

from collections.abc import Mapping

import pytest
from support.group_members import GROUP, FakeGroup

from tidelog.groups.member.failure_detector import ExternalFailureDetector
from tidelog.groups.member.membership import BUSY_LOOK_S
from tidelog.groups.model import GroupPhase
from tidelog.log.base.errors import StorageUnavailableError


@pytest.fixture(autouse=True, params=[False, True], ids=["looking", "woken"])
def _watched(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeGroup, "watched", request.param)


def test_a_group_whose_members_were_all_killed_is_emptied_from_outside() -> None:
    group = FakeGroup()
    for name in "abc":
        group.join(name)
    group.run(3)
    for name in "abc":
        group.kill(name)
    detector = ExternalFailureDetector(group.log, group.leases, GROUP, group.clock)
    began = group.clock.seconds
    while (seen := detector.step()) is not None and seen.members:
        assert detector.due_s() > 0
        assert group.clock.seconds - began < 60
        group.clock.pass_s(detector.due_s())
    assert group.clock.seconds - began == pytest.approx(10)
    assert group.state.phase is GroupPhase.EMPTY
    assert group.state.empty_since_ms == group.clock.ms


def test_from_outside_the_living_stay() -> None:
    group = FakeGroup()
    a, _ = group.join("a"), group.join("b")
    group.run(3)
    group.kill("b")
    detector = ExternalFailureDetector(group.log, group.leases, GROUP, group.clock)
    for _ in range(300):
        detector.step()
        group.run(0.1)
    assert list(group.state.members) == [a.membership.member_id]


def test_a_group_that_is_not_there_has_nobody_to_watch() -> None:
    group = FakeGroup()
    assert ExternalFailureDetector(group.log, group.leases, "other", group.clock).step() is None


def test_followers_look_at_the_leader_only() -> None:
    group = FakeGroup({"t": 10})
    for name in "abcdefghij":
        group.join(name)
    group.run(5)
    reads: list[str] = []
    counter = group.leases.counter

    def counted(group_id: str, member_id: str) -> int | None:
        reads.append(member_id)
        return counter(group_id, member_id)

    group.leases.counter = counted  # type: ignore[method-assign]
    group.run(10)
    assert len(reads) == pytest.approx(10 * (9 + 9), rel=0.15)  # a second: the leader all nine, nine the leader


def test_a_lease_that_can_not_be_read_counts_against_nobody() -> None:
    group = FakeGroup()
    group.join("a")
    b = group.join("b")
    group.run(3)
    b.frozen = True
    real = group.leases.counter

    def away(group_id: str, member_id: str) -> int | None:
        raise StorageUnavailableError("no answer")

    group.leases.counter = away  # type: ignore[method-assign]
    group.run(30)
    assert len(group.state.members) == 2
    group.leases.counter = real  # type: ignore[method-assign]
    group.run(8)
    assert len(group.state.members) == 2, "a gap begins the clock again"
    group.run(4)
    assert len(group.state.members) == 1


def test_a_leader_that_can_not_share_out_loses_its_office() -> None:
    group = FakeGroup()
    a = group.join("a", max_poll_interval_ms=20_000)
    group.run(2)
    real = a.membership._session._partition_counts

    def away(topics: object) -> Mapping[str, int]:
        raise StorageUnavailableError("no answer")

    a.membership._session._partition_counts = away  # type: ignore[assignment]
    b = group.join("b", max_poll_interval_ms=20_000)
    group.run_until(lambda: len(b.owned) == 4, 30)
    assert b.membership.leads
    a.membership._session._partition_counts = real
    group.run_until(lambda: len(a.owned) == 2, 30)


def test_who_is_woken_looks_at_once_and_then_not_all_the_time() -> None:
    group = FakeGroup()
    a = group.join("a")
    group.run(3)
    a.step()
    group.clock.pass_s(min(0.1, a.membership.due_s() / 2))
    assert a.membership.due_s() > 0
    a.membership.wake()
    assert a.membership.due_s() == 0
    a.step()
    a.membership.wake()
    assert 0 < a.membership.due_s() <= BUSY_LOOK_S


def test_who_is_woken_sees_a_newcomer_before_its_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks of a member that is not woken: twice a second; heartbeats are no reason to look."""
    took = {}
    for watched in (False, True):
        monkeypatch.setattr(FakeGroup, "watched", watched)
        group = FakeGroup()
        a = group.join("a", heartbeat_interval_ms=3_000)
        group.run(4.3)
        b = group.join("b", heartbeat_interval_ms=3_000)
        took[watched] = group.run_until(lambda: bool(b.owned) and len(a.owned) == 2, 5)  # noqa: B023 - called at once
    assert took[True] <= 0.2
    assert took[True] < took[False]


def test_a_calm_member_is_stepped_a_few_times_a_second() -> None:
    group = FakeGroup()
    a = group.join("a")
    group.run(3)
    steps = 0
    until = group.clock.seconds + 10
    while group.clock.seconds < until:
        group.clock.pass_s(a.membership.due_s())
        a.membership.polled()
        a.membership.step()
        steps += 1
    assert steps <= 32  # twenty looks and ten heartbeats
