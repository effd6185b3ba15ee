"""Kafka members and tidelog's own consumers in one group: a death is noticed, whichever of them dies."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.brokers import running_broker
from support.consumers import consumer
from support.waiting import eventually, eventually_async
from support.wire_members import QUICK, Clients, WireMember, against, shared_out

from tidelog.groups.member.events import MemberConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.lake import Lake

ALL = [("t", number) for number in range(4)]
SESSION_MS = 1_000


class NativeMember:
    """A native member that a thread steps; when that is over it is dead, as after a kill."""

    def __init__(self, lake: Lake) -> None:
        config = MemberConfig(group_id="g", session_timeout_ms=SESSION_MS, heartbeat_interval_ms=200)
        self._membership = Membership(
            GroupLog(lake), Leases(lake.storage), lambda _: {"t": 4}, config, clock=SystemClock(), ids=SystemIds()
        )
        self._membership.subscribe(["t"])
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    @property
    def owned(self) -> list[tuple[str, int]]:
        return sorted(self._membership.owned)

    def _live(self) -> None:
        while not self._over.wait(min(0.02, self._membership.due_s())):
            self._membership.polled()
            for event in self._membership.step():
                if isinstance(event, Revoke):
                    self._membership.revoked()

    def kill(self) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def native_member(lake: Lake) -> Iterator[NativeMember]:
    member = NativeMember(lake)
    try:
        yield member
    finally:
        member.kill()


@contextmanager
def polled(lake: Lake) -> Iterator:
    """A native consumer that a thread polls, and that leaves at the end."""
    native, over = consumer(lake), threading.Event()
    native.subscribe(["t"])

    def poll() -> None:
        while not over.is_set():
            native.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield native
    finally:
        over.set()
        thread.join()
        native.close()


def halves(kafka: WireMember, native: NativeMember) -> bool:
    return len(native.owned) == 2 and sorted([*native.owned, *kafka.owned]) == ALL


def test_partitions_are_shared_with_a_native_consumer(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        kafka = await clients.member()
        await kafka.take_part()
        life = asyncio.create_task(kafka.live())
        with polled(lake) as native:

            def both() -> bool:
                owned = [(one.topic, one.partition) for one in native.assignment()]
                return len(owned) == 2 and sorted([*owned, *kafka.owned]) == ALL

            await eventually_async(both, "both have a share")
        await eventually_async(lambda: shared_out(kafka) == ALL, "the share of the one that left")
        life.cancel()

    against(lake, test)


@pytest.mark.parametrize("leads", ["kafka", "native"])
def test_members_that_live_stay_and_one_that_dies_goes(lake: Lake, leads: str) -> None:
    async def test(clients: Clients) -> None:
        kafka = await clients.member(session_ms=SESSION_MS)
        lives = asyncio.create_task(kafka.live()) if leads == "kafka" else None
        if leads == "kafka":
            await eventually_async(lambda: kafka.owned, "the first member's share")
        with native_member(lake) as native:
            await eventually_async(lambda: leads == "kafka" or native.owned, "the first member's share")
            lives = lives or asyncio.create_task(kafka.live())
            await eventually_async(lambda: halves(kafka, native), "both have a share")
            group, leases = GroupLog(lake).group("g"), Leases(lake.storage)
            assert (group.leader == kafka.member_id) == (leads == "kafka")
            first = await eventually_async(lambda: leases.counter("g", kafka.member_id), "the broker vouches")
            # The broker beats thrice a session: over three sessions no member takes another for dead.
            await eventually_async(lambda: leases.counter("g", kafka.member_id) > first + 9, "three sessions")
            assert GroupLog(lake).group("g").generation == group.generation
            if leads == "kafka":
                native.kill()
                await eventually_async(lambda: shared_out(kafka) == ALL, "the share of the native member")
                lives.cancel()
            else:
                lives.cancel()
                await eventually_async(lambda: native.owned == ALL, "the share of the member of Kafka's")

    against(lake, test)


def test_members_of_a_broker_that_died_go(lake: Lake) -> None:
    """No broker takes over, so that no object vouches any more: the native member notices."""

    async def test(clients: Clients, native: NativeMember) -> None:
        kafka = await clients.member(session_ms=SESSION_MS)
        life = asyncio.create_task(kafka.live())
        await eventually_async(lambda: halves(kafka, native), "both have a share")
        life.cancel()

    async def run(address: str, native: NativeMember) -> None:
        async with Clients(address) as clients:
            await test(clients, native)

    with native_member(lake) as native:
        with running_broker(lake, groups=QUICK) as address:
            asyncio.run(run(address, native))
        eventually(lambda: native.owned == ALL, "the share of the broker's member")
