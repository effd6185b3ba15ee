"""Groups of Kafka members at a broker, request by request: rounds, sessions, static members, and their offsets."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from support.brokers import running_broker
from support.kafka_wire import WireClient
from support.logs import values
from support.wire_members import NEWEST, OK, OLDEST, WireMember

from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import CommittedOffset, GroupPhase
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

QUICK = GroupSettings(min_session_timeout_ms=100, initial_rebalance_delay_ms=0)
PATIENCE_S = 30.0


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("t", partitions=4)
        lake.topic("t").append(values(*"abcdefgh", partition=[0, 1, 2, 3] * 2))
        yield lake


def against(lake: Lake, test: Callable[[str], Coroutine[Any, Any, None]], groups: GroupSettings = QUICK) -> None:
    """Run a test against a broker over the lake."""
    with running_broker(lake, groups=groups) as address:
        asyncio.run(asyncio.wait_for(test(address), PATIENCE_S))


async def until(there: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition; the test's own time limit ends it."""
    while not await there():
        await asyncio.sleep(0.02)


class Clients:
    """Connections, closed together."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Clients":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def one(self, name: str = "test") -> WireClient:
        return await self._stack.enter_async_context(WireClient(self._address, name))

    async def member(self, name: str = "test", **given: Any) -> WireMember:
        return WireMember(await self.one(name), **given)


def shares(*members: WireMember) -> list[tuple[str, int]]:
    return sorted(place for member in members for place in member.owned)


ALL = [("t", number) for number in range(4)]


@pytest.mark.parametrize("versions", [NEWEST, OLDEST], ids=["newest", "oldest"])
def test_two_members_share_the_partitions(lake: Lake, versions: dict[ApiKey, int]) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            one, other = (
                await clients.member("one", versions=versions),
                await clients.member("other", versions=versions),
            )
            await one.take_part()
            assert one.owned == tuple(ALL)
            assert one.member_id.startswith("one-")
            assert await one.beat() is OK
            joins = asyncio.create_task(other.take_part())

            async def rebalances() -> bool:
                return await one.beat() is ErrorCode.rebalance_in_progress

            await until(rebalances)
            await asyncio.gather(joins, one.take_part())
            assert one.generation == other.generation
            assert shares(one, other) == ALL
            assert one.owned
            assert other.owned
            await other.leave()
            await until(rebalances)
            await one.take_part()
            assert one.owned == tuple(ALL)

    against(lake, test)


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_join_group(lake: Lake, version: int) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
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
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            member = await clients.member(versions=NEWEST | {ApiKey.LEAVE_GROUP: version})
            await member.take_part()
            for expected in (OK, ErrorCode.unknown_member_id):
                answer = await member.leave()
                assert (answer.error_code if version < 3 else answer.members[0].error_code) is expected

    against(lake, test)


def test_what_a_join_is_refused_for(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
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
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            members = [await clients.member() for _ in range(5)]
            await asyncio.gather(*(member.take_part() for member in members))
            assert {member.generation for member in members} == {1}
            assert shares(*members) == ALL

    against(lake, test, GroupSettings(initial_rebalance_delay_ms=300))


def test_a_silent_member_is_evicted_and_others_are_not(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            stays, falls = await clients.member(), await clients.member(session_ms=400)
            await asyncio.gather(stays.take_part(), falls.take_part())
            life = asyncio.create_task(stays.live())
            while GroupLog(lake).group("g").members.keys() != {stays.member_id} or stays.owned != tuple(ALL):
                await asyncio.sleep(0.05)
            life.cancel()
            assert await falls.beat() is ErrorCode.unknown_member_id

    against(lake, test)


def test_heartbeats_write_nothing(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
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


def test_a_client_that_is_gone_before_it_heard_its_id_holds_nobody_up(lake: Lake) -> None:
    """Versions below 4 give the id with the end of the round, which would wait for a member that is nobody."""

    async def test(address: str) -> None:
        async with Clients(address) as clients:
            one = await clients.member()
            await one.take_part()
            ghost = await clients.member("ghost", versions=NEWEST | {ApiKey.JOIN_GROUP: 2})
            waits = asyncio.create_task(ghost.join())

            async def rebalances() -> bool:
                return await one.beat() is ErrorCode.rebalance_in_progress

            await until(rebalances)
            ghost.client.drop()
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await waits

            async def alone() -> bool:
                await one.beat()
                return len(GroupLog(lake).group("g").members) == 1

            await until(alone)

    against(lake, test)


def test_a_static_member_comes_back_without_a_round(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
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
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            member = await clients.member(instance_id="i")
            await member.take_part()
            admin = await clients.one()
            named = [{"member_id": "", "group_instance_id": "i"}, {"member_id": "", "group_instance_id": "j"}]
            answer = await admin.ask(ApiKey.LEAVE_GROUP, 5, group_id="g", members=named)
            assert [one.error_code for one in answer.members] == [OK, ErrorCode.unknown_member_id]
            assert await member.beat() is ErrorCode.unknown_member_id

    against(lake, test)


def test_a_sync_of_another_generation_or_protocol_is_refused(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            member = await clients.member()
            await member.take_part()
            assert (await member.sync(generation_id=7)).error_code is ErrorCode.illegal_generation
            assert (await member.sync(member_id="nobody")).error_code is ErrorCode.unknown_member_id
            assert (await member.sync(protocol_name="other")).error_code is ErrorCode.inconsistent_group_protocol

    against(lake, test)


def test_a_round_goes_on_without_members_that_are_late(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            late = await clients.member(rebalance_ms=500)
            await late.take_part()
            other = await clients.member(rebalance_ms=500)
            joins = asyncio.create_task(other.take_part())
            while not joins.done():
                await late.beat()  # it lives, and does not join
                await asyncio.sleep(0.05)
            assert other.owned == tuple(ALL)

    against(lake, test)


# --- offsets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_of_offset_commit(lake: Lake, version: int) -> None:
    topic_id = lake.topic("t")

    async def test(address: str) -> None:
        async with Clients(address) as clients:
            client = await clients.one()
            place = {
                "partition_index": 1,
                "committed_offset": 2,
                "committed_leader_epoch": 5,
                "committed_metadata": "m",
            }
            missing = place | {"partition_index": 4}
            large = place | {"partition_index": 2, "committed_metadata": "m" * 4097}
            past = place | {"partition_index": 3, "committed_offset": 3}
            asked = {"name": "t", "topic_id": UUID(topic_id.id), "partitions": [place, missing, large, past]}
            other = {"name": "u", "topic_id": UUID(int=7), "partitions": [place]}
            answer = await client.ask(
                ApiKey.OFFSET_COMMIT, version, group_id="g", member_id="", retention_time=5_000, topics=[asked, other]
            )
            codes = [[p.error_code for p in one.partitions] for one in answer.topics]
            assert codes == [
                [
                    OK,
                    ErrorCode.unknown_topic_or_partition,
                    ErrorCode.offset_metadata_too_large,
                    ErrorCode.offset_out_of_range,
                ],
                [ErrorCode.unknown_topic_id if version >= 10 else ErrorCode.unknown_topic_or_partition],
            ]

    against(lake, test)
    ((place, committed),) = GroupLog(lake).offsets("g").items()
    assert place == ("t", 1)
    assert (committed.offset, committed.metadata) == (2, "m")
    assert committed.leader_epoch == (5 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_of_offset_fetch(lake: Lake, version: int) -> None:
    GroupLog(lake).commit_offsets("g", {("t", 1): CommittedOffset(2, "m", 5)})
    topic_id = UUID(lake.topic("t").id)

    async def test(address: str) -> None:
        async with Clients(address) as clients:
            client = await clients.one()
            asked = {"name": "t", "topic_id": topic_id, "partition_indexes": [1, 2]}
            other = {"name": "u", "topic_id": UUID(int=7), "partition_indexes": [0]}
            for topics in ([asked, other], None):
                if topics is None and version < 2:
                    continue
                one = {"group_id": "g", "topics": topics}
                answer = await client.ask(ApiKey.OFFSET_FETCH, version, groups=[one], **one)
                found = answer.groups[0] if version >= 8 else answer
                assert getattr(found, "error_code", OK) is OK
                first = found.topics[0].partitions[0]
                assert (first.committed_offset, first.metadata, first.error_code) == (2, "m", OK)
                assert getattr(first, "committed_leader_epoch", 5) == 5
                if topics is None:
                    assert [len(one.partitions) for one in found.topics] == [1]
                    continue
                none, unknown = found.topics[0].partitions[1], found.topics[1].partitions[0]
                assert (none.committed_offset, none.error_code) == (-1, OK)
                code = ErrorCode.unknown_topic_id if version >= 10 else OK
                assert (unknown.committed_offset, unknown.error_code) == (-1, code)

    against(lake, test)


def test_only_members_of_the_generation_commit(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            member = await clients.member()
            await member.take_part()
            client = await clients.one()

            async def commit(member_id: str, generation: int) -> ErrorCode:
                place = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
                answer = await client.ask(
                    ApiKey.OFFSET_COMMIT,
                    9,
                    group_id="g",
                    member_id=member_id,
                    generation_id_or_member_epoch=generation,
                    topics=[{"name": "t", "partitions": [place]}],
                )
                return answer.topics[0].partitions[0].error_code

            assert await commit("", -1) is ErrorCode.unknown_member_id
            assert await commit("nobody", member.generation) is ErrorCode.unknown_member_id
            assert await commit(member.member_id, 7) is ErrorCode.illegal_generation
            assert await commit(member.member_id, member.generation) is OK
            assert (await member.join()).error_code is OK  # the leader begins a round; nothing is shared out yet
            assert await commit(member.member_id, member.generation) is ErrorCode.rebalance_in_progress

    against(lake, test)


def test_deleting_and_describing(lake: Lake) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            member = await clients.member("me")
            await member.take_part()
            client = await clients.one()

            async def described(group: str, version: int) -> Any:
                answer = await client.ask(
                    ApiKey.DESCRIBE_GROUPS, version, groups=[group], include_authorized_operations=True
                )
                return answer.groups[0]

            for version in range(7):
                found = await described("g", version)
                assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
                (one,) = found.members
                assert (one.member_id, one.client_id, one.client_host) == (member.member_id, "me", "/127.0.0.1")
                assert one.member_metadata
                assert one.member_assignment
                none = await described("none", version)
                code = ErrorCode.group_id_not_found if version >= 6 else OK
                assert (none.error_code, none.group_state) == (code, "Dead")
            assert found.authorized_operations == 0b110101001000
            for version in range(6):
                answer = await client.ask(ApiKey.LIST_GROUPS, version)
                assert [one.group_id for one in answer.groups] == ["g"]
            for filters, expected in [
                ({"states_filter": ["stable"]}, 1), ({"states_filter": ["Empty"]}, 0),
                ({"types_filter": ["Classic"]}, 1), ({"types_filter": ["consumer"]}, 0),
            ]:  # fmt: skip
                assert len((await client.ask(ApiKey.LIST_GROUPS, 5, **filters)).groups) == expected
            place = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
            await client.ask(
                ApiKey.OFFSET_COMMIT, 9, group_id="g", member_id=member.member_id,
                generation_id_or_member_epoch=member.generation, topics=[{"name": "t", "partitions": [place]}],
            )  # fmt: skip
            for version in range(3):
                answer = await client.ask(ApiKey.DELETE_GROUPS, version, groups_names=["g", "none"])
                codes = [one.error_code for one in answer.results]
                assert codes == [ErrorCode.non_empty_group, ErrorCode.group_id_not_found]

            async def delete_offsets(group: str = "g") -> Any:
                topics = [{"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
                return await client.ask(ApiKey.OFFSET_DELETE, 0, group_id=group, topics=topics)

            codes = [p.error_code for p in (await delete_offsets()).topics[0].partitions]
            assert codes == [ErrorCode.group_subscribed_to_topic, ErrorCode.unknown_topic_or_partition]
            assert (await delete_offsets("none")).error_code is ErrorCode.group_id_not_found
            await member.leave()
            assert (await described("g", 6)).group_state == "Empty"
            codes = [p.error_code for p in (await delete_offsets()).topics[0].partitions]
            assert codes == [OK, ErrorCode.unknown_topic_or_partition]
            assert GroupLog(lake).offsets("g") == {}
            answer = await client.ask(ApiKey.DELETE_GROUPS, 2, groups_names=["g"])
            assert answer.results[0].error_code is OK
            assert (await client.ask(ApiKey.LIST_GROUPS, 5)).groups == ()

    against(lake, test)


@pytest.mark.parametrize("version", range(7))
def test_every_version_of_find_coordinator(lake: Lake, version: int) -> None:
    async def test(address: str) -> None:
        async with Clients(address) as clients:
            client = await clients.one()
            answer = await client.ask(ApiKey.FIND_COORDINATOR, version, key="g", coordinator_keys=["g", "h"])
            found = answer.coordinators if version >= 4 else [answer]
            assert [(f"{one.host}:{one.port}", one.error_code) for one in found] == [(address, OK)] * len(found)
            if version >= 1:
                answer = await client.ask(ApiKey.FIND_COORDINATOR, version, key="g", coordinator_keys=["g"], key_type=2)
                found = answer.coordinators[0] if version >= 4 else answer
                assert found.error_code is ErrorCode.invalid_request

    against(lake, test)


def test_the_log_has_all_that_a_group_is(lake: Lake) -> None:
    """A broker that takes over gives all members a full session, and no round begins."""
    generations = []

    async def begin(address: str) -> None:
        async with Clients(address) as clients:
            await asyncio.gather(
                *(member.take_part() for member in members(clients, [await clients.one(), await clients.one()]))
            )

    kept: list[WireMember] = []

    def members(_: Clients, connections: list[WireClient]) -> list[WireMember]:
        kept.extend(WireMember(client) for client in connections)
        return kept

    async def go_on(address: str) -> None:
        async with Clients(address) as clients:
            for member in kept:
                member.client = await clients.one()
                generations.append(member.generation)
                assert await member.beat() is OK
                assert (await member.sync()).error_code is OK
            assert shares(*kept) == ALL

    against(lake, begin)
    against(lake, go_on)
    assert len(set(generations)) == 1
    assert GroupLog(lake).group("g").phase is GroupPhase.STABLE
