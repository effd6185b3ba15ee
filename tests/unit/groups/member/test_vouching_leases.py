"""A broker vouches for members that have no leases of their own: one object of its own, one that names it a group."""

import pytest
from support.group_members import FakeGroup

from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import Member
from tidelog.groups.rules.members import join
from tidelog.log.storage.memory import MemoryStorage


@pytest.fixture
def leases() -> Leases:
    return Leases(MemoryStorage("leases"))


def test_a_member_without_a_lease_has_the_brokers(leases: Leases) -> None:
    assert leases.counter("g", "kafka") is None
    leases.vouch("g", 7)
    assert leases.counter("g", "kafka") is None  # it has not shown life yet
    leases.of_broker(7, 40).renew()
    assert leases.counter("g", "kafka") == 41
    assert leases.counter("h", "kafka") is None
    assert leases.of_member("g", "kafka").seen() is None
    leases.of_member("g", "native").renew()
    assert leases.counter("g", "native") == 1


def test_a_broker_ends_its_own_vouching_only(leases: Leases) -> None:
    leases.vouch("g", 7)
    leases.vouch("g", 8)
    leases.end_vouching("g", 7)
    assert leases.voucher("g") == 8
    leases.end_vouching("g", 8)
    assert leases.voucher("g") is None


@pytest.mark.parametrize("vouched", [True, False])
def test_a_native_leader_evicts_kafkas_members_when_their_broker_falls_silent(vouched: bool) -> None:
    world = FakeGroup()
    world.join("native")
    world.run(1)
    kafka = Member("kafka", "c", "/h", 10_000, 10_000, world.state.members[world.state.leader].protocols)
    world.log.decide("g", lambda view: join(view, "g", kafka, rejoins=False, now_ms=0))
    world.leases.vouch("g", 7)
    broker = world.leases.of_broker(7)
    for _ in range(30):
        if vouched:
            broker.renew()
        world.run(1)
    assert ("kafka" in world.state.members) is vouched
