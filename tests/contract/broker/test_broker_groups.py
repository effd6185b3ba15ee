"""Groups of Kafka members at a broker, request by request: rounds, sessions, static members."""

import asyncio

import pytest
from kio.schema.errors import ErrorCode
from support.waiting import eventually_async
from support.wire_members import NEWEST, OK, OLDEST, Clients, WireMember, against, shared_out, until, until_rebalance

from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

ALL = [("t", number) for number in range(4)]


@pytest.mark.parametrize("versions", [NEWEST, OLDEST], ids=["newest", "oldest"])
def test_two_members_share_the_partitions(lake: Lake, versions: dict[ApiKey, int]) -> None:
    async def test(clients: Clients) -> None:
        one, other = (
            await clients.member("one", versions=versions),
            await clients.member("other", versions=versions),
        )
        await one.take_part()
        assert one.owned == tuple(ALL)
        assert one.member_id.startswith("one-")
        assert await one.beat() is OK
        joins = asyncio.create_task(other.take_part())

        await until_rebalance(one)
        await asyncio.gather(joins, one.take_part())
        assert one.generation == other.generation
        assert shared_out(one, other) == ALL
        assert one.owned
        assert other.owned
        await other.leave()
        await until_rebalance(one)
        await one.take_part()
        assert one.owned == tuple(ALL)

    against(lake, test)


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_join_group(lake: Lake, version: int) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member(versions=NEWEST | {ApiKey.JOIN_GROUP: version})
        first = await member.join()
        required = ErrorCode.member_id_required if version >= 4 else OK
        assert first.error_code is required
        assert first.member_id
        joined = first if version < 4 else await member.join()
        assert (joined.error_code, joined.leader, joined.protocol_name) == (OK, member.member_id, "range")
        assert [one.member_id for one in joined.members] == [member.member_id]

    against(lake, test)


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_leave_group(lake: Lake, version: int) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member(versions=NEWEST | {ApiKey.LEAVE_GROUP: version})
        await member.take_part()
        for expected in (OK, ErrorCode.unknown_member_id):
            answer = await member.leave()
            assert (answer.error_code if version < 3 else answer.members[0].error_code) is expected

    against(lake, test)


def test_what_a_join_is_refused_for(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member()
        refused = [
            (ErrorCode.invalid_session_timeout, {"session_timeout": 99}),
            (ErrorCode.invalid_session_timeout, {"session_timeout": 1_800_001}),
            (ErrorCode.invalid_group_id, {"group_id": ""}),
            (ErrorCode.unknown_member_id, {"member_id": "nobody"}),
            (ErrorCode.inconsistent_group_protocol, {"protocols": []}),
        ]
        for code, changed in refused:
            assert (
                await member.join(**changed, **({} if "member_id" in changed else {"member_id": ""}))
            ).error_code is code
        member.member_id = ""
        await member.take_part()
        newcomer = await clients.member()
        answer = await newcomer.join(protocols=[{"name": "other", "metadata": b""}])
        assert answer.error_code is ErrorCode.inconsistent_group_protocol
        assert (await newcomer.join(protocol_type="connect")).error_code is ErrorCode.inconsistent_group_protocol

    against(lake, test)


def test_the_first_round_waits_for_more_members(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        members = [await clients.member() for _ in range(5)]
        await asyncio.gather(*(member.take_part() for member in members))
        assert {member.generation for member in members} == {1}
        assert shared_out(*members) == ALL

    against(lake, test, GroupSettings(initial_rebalance_delay_ms=300))


def test_a_silent_member_is_evicted_and_others_are_not(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        stays, falls = await clients.member(), await clients.member(session_ms=400)
        await asyncio.gather(stays.take_part(), falls.take_part())
        life = asyncio.create_task(stays.live())
        await eventually_async(lambda: stays.owned == tuple(ALL), "all is the other's")
        life.cancel()
        assert GroupLog(lake).group("g").members.keys() == {stays.member_id}
        assert await falls.beat() is ErrorCode.unknown_member_id

    against(lake, test)


def test_heartbeats_write_nothing(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member()
        await member.take_part()
        log = GroupLog(lake)
        log.group("g")
        before = log.version("g")
        for _ in range(50):
            assert await member.beat() is OK
        log.group("g")
        assert log.version("g") == before

    against(lake, test)


def test_a_client_that_is_gone_before_it_heard_its_id_holds_no_other_up(lake: Lake) -> None:
    """Versions below 4 give the id with the end of the round, which would wait for a member without a client."""

    async def test(clients: Clients) -> None:
        one = await clients.member()
        await one.take_part()
        ghost = await clients.member("ghost", versions=NEWEST | {ApiKey.JOIN_GROUP: 2})
        waits = asyncio.create_task(ghost.join())

        await until_rebalance(one)
        ghost.client.drop()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await waits

        async def alone() -> bool:
            await one.beat()
            return len(GroupLog(lake).group("g").members) == 1

        await until(alone)

    against(lake, test)


def test_a_static_member_comes_back_without_a_round(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        old = await clients.member(instance_id="i")
        await old.take_part()
        leads = await old.join()
        assert leads.error_code is OK  # a leader that joins again begins a round
        await old.take_part()
        new = await clients.member(instance_id="i")
        joined = await new.join()
        assert (joined.error_code, joined.generation_id) == (OK, old.generation)
        assert joined.skip_assignment
        assert joined.leader == new.member_id
        assert (await new.sync()).error_code is OK
        assert new.owned == tuple(ALL)
        assert await old.beat() is ErrorCode.fenced_instance_id
        assert await new.beat() is OK
        older = await clients.member(instance_id="i", versions=NEWEST | {ApiKey.JOIN_GROUP: 7})
        joined = await older.join()
        assert joined.error_code is OK
        assert joined.leader == new.member_id  # so that it shares nothing out
        assert not joined.members

    against(lake, test)


def test_a_static_member_is_removed_by_its_static_id(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member(instance_id="i")
        await member.take_part()
        admin = await clients.one()
        named = [{"member_id": "", "group_instance_id": "i"}, {"member_id": "", "group_instance_id": "j"}]
        answer = await admin.ask(ApiKey.LEAVE_GROUP, 5, group_id="g", members=named)
        assert [one.error_code for one in answer.members] == [OK, ErrorCode.unknown_member_id]
        assert await member.beat() is ErrorCode.unknown_member_id

    against(lake, test)


def test_a_sync_of_another_generation_or_protocol_is_refused(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        member = await clients.member()
        await member.take_part()
        assert (await member.sync(generation_id=7)).error_code is ErrorCode.illegal_generation
        assert (await member.sync(member_id="nobody")).error_code is ErrorCode.unknown_member_id
        assert (await member.sync(protocol_name="other")).error_code is ErrorCode.inconsistent_group_protocol

    against(lake, test)


def test_a_round_goes_on_without_members_that_are_late(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        late = await clients.member(rebalance_ms=500)
        await late.take_part()
        other = await clients.member(rebalance_ms=500)
        joins = asyncio.create_task(other.take_part())

        async def is_over() -> bool:
            await late.beat()  # it lives, and does not join
            return joins.done()

        await until(is_over)
        assert other.owned == tuple(ALL)

    against(lake, test)


def test_a_broker_that_takes_over_begins_no_round(lake: Lake) -> None:
    """The log has all that a group is: the next broker gives its members a full session."""
    members: list[WireMember] = []

    async def begin(clients: Clients) -> None:
        members.extend([await clients.member(), await clients.member()])
        await asyncio.gather(*(member.take_part() for member in members))

    async def go_on(clients: Clients) -> None:
        for member in members:
            member.client = await clients.one()
            assert await member.beat() is OK
            assert (await member.sync()).error_code is OK
        assert shared_out(*members) == ALL

    against(lake, begin)
    before = GroupLog(lake).group("g")
    against(lake, go_on)
    assert GroupLog(lake).group("g") == before
