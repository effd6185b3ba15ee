"""Two brokers over one lake: the coordinator of a group stops in mid-session, and its members go on at the other."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kio.schema.errors import ErrorCode
from support.brokers import running_broker
from support.waiting import eventually
from support.wire_members import OK, QUICK, Clients, WireMember, shared_out, until

from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

ALL = [("t", number) for number in range(4)]


async def coordinator(clients: Clients, group: str) -> str:
    """The address of the group's coordinator, as a broker says."""
    client = await clients.one()
    answer = await client.ask(ApiKey.FIND_COORDINATOR, 4, coordinator_keys=[group])
    (found,) = answer.coordinators
    return f"{found.host}:{found.port}"


async def brokers(clients: Clients) -> set[str]:
    """The addresses of all brokers, as a broker says."""
    answer = await (await clients.one()).ask(ApiKey.METADATA, 1, topics=[])
    return {f"{one.host}:{one.port}" for one in answer.brokers}


@contextmanager
def two_brokers(root: Path) -> Iterator[tuple[Any, str, str]]:
    """A way to stop the first broker, the addresses of both, and all groups' coordinators known."""
    with Lake(str(root)) as one, Lake(str(root)) as other, running_broker(other, id=2, groups=QUICK) as stays:
        goes = running_broker(one, id=1, groups=QUICK)
        address = goes.__enter__()
        running = True

        def stop() -> None:
            nonlocal running
            if running:
                running = False
                goes.__exit__(None, None, None)

        def know_each_other() -> bool:
            return all(asyncio.run(_known(each)) == {address, stays} for each in (address, stays))

        try:
            eventually(know_each_other, "both brokers know of both")
            yield stop, address, stays
        finally:
            stop()


async def _known(address: str) -> set[str]:
    async with Clients(address) as clients:
        return await brokers(clients)


async def group_of(clients: Clients, address: str) -> str:
    """A group that this broker coordinates."""
    for number in range(100):
        if await coordinator(clients, f"g{number}") == address:
            return f"g{number}"
    raise AssertionError("no group has this coordinator")


def test_members_go_on_at_the_next_coordinator_without_a_round(lake: Lake, tmp_path: Path) -> None:
    async def test(stop: Any, goes: str, stays: str) -> None:
        async with Clients(goes) as clients, Clients(stays) as others:
            group = await group_of(clients, goes)
            members = [await clients.member(group=group) for _ in range(2)]
            await asyncio.gather(*(member.take_part() for member in members))
            elsewhere = await others.member(group=group)
            assert (await elsewhere.join()).error_code is ErrorCode.not_coordinator
            before = GroupLog(lake).group(group)
            await asyncio.to_thread(stop)

            async def has_moved() -> bool:
                return await coordinator(others, group) == stays

            await until(has_moved)
            for member in members:
                member.client = await others.one()
                assert await member.beat() is OK
            assert shared_out(*members) == ALL
            assert GroupLog(lake).group(group) == before

    with two_brokers(tmp_path) as (stop, goes, stays):
        asyncio.run(test(stop, goes, stays))


def test_a_parked_join_is_sent_to_the_next_coordinator(lake: Lake, tmp_path: Path) -> None:
    async def test(stop: Any, goes: str, stays: str) -> None:
        async with Clients(goes) as clients, Clients(stays) as others:
            group = await group_of(clients, goes)
            first = await clients.member(group=group)
            await first.take_part()
            newcomer = await clients.member(group=group)
            assert (await newcomer.join()).error_code is ErrorCode.member_id_required
            joins = asyncio.create_task(newcomer.join())

            async def waits() -> bool:
                return await first.beat() is ErrorCode.rebalance_in_progress

            await until(waits)
            stops = asyncio.create_task(asyncio.to_thread(stop))
            assert (await joins).error_code is ErrorCode.not_coordinator
            await stops

            async def has_moved() -> bool:
                return await coordinator(others, group) == stays

            await until(has_moved)
            for member in (first, newcomer):
                member.client = await others.one()
            await asyncio.gather(first.take_part(), newcomer.take_part())
            assert shared_out(first, newcomer) == ALL
            assert {first.member_id, newcomer.member_id} == set(GroupLog(lake).group(group).members)

    with two_brokers(tmp_path) as (stop, goes, stays):
        asyncio.run(test(stop, goes, stays))


def test_members_that_are_silent_after_the_move_are_evicted(lake: Lake, tmp_path: Path) -> None:
    """The new coordinator reads them from the log: no request brings them to its notice."""

    async def begin(goes: str) -> str:
        async with Clients(goes) as clients:
            group = await group_of(clients, goes)
            member: WireMember = await clients.member(group=group, session_ms=3_000)
            await member.take_part()
            return group

    with two_brokers(tmp_path) as (stop, goes, _):
        group = asyncio.run(begin(goes))
        stop()
        assert GroupLog(lake).group(group).members
        eventually(lambda: not GroupLog(lake).group(group).members, "the member is evicted")
