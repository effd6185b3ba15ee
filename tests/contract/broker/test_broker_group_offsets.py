"""Offsets of groups at a broker, and what operators ask about groups, request by request."""

from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from support.wire_members import OK, Clients, against

from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_of_offset_commit(lake: Lake, version: int) -> None:
    topic_id = lake.topic("t")

    async def test(clients: Clients) -> None:
        client = await clients.one()
        place = {
            "partition_index": 1,
            "committed_offset": 2,
            "committed_leader_epoch": 5,
            "committed_metadata": "m",
        }
        missing = place | {"partition_index": 4}
        large = place | {"partition_index": 2, "committed_metadata": "m" * 4097}
        past = place | {"partition_index": 3, "committed_offset": 2**62}
        below = place | {"partition_index": 0, "committed_offset": -1}
        asked = {"name": "t", "topic_id": UUID(topic_id.id), "partitions": [place, missing, large, past, below]}
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
                OK,
                ErrorCode.offset_out_of_range,
            ],
            [ErrorCode.unknown_topic_id if version >= 10 else ErrorCode.unknown_topic_or_partition],
        ]

    against(lake, test)
    found = GroupLog(lake).offsets("g")
    assert {place: one.offset for place, one in found.items()} == {("t", 1): 2, ("t", 3): 2**62}
    committed = found["t", 1]
    assert (committed.offset, committed.metadata) == (2, "m")
    assert committed.leader_epoch == (5 if version >= 6 else -1)


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_of_offset_fetch(lake: Lake, version: int) -> None:
    GroupLog(lake).commit_offsets("g", {("t", 1): CommittedOffset(2, "m", 5)})
    topic_id = UUID(lake.topic("t").id)

    async def test(clients: Clients) -> None:
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


def test_an_offset_of_a_partition_that_came_by_another_program_is_taken(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        client = await clients.one()

        async def commit(partition: int) -> ErrorCode:
            place = {"partition_index": partition, "committed_offset": 0, "committed_metadata": ""}
            answer = await client.ask(
                ApiKey.OFFSET_COMMIT, 9, group_id="g", member_id="", topics=[{"name": "t", "partitions": [place]}]
            )
            return answer.topics[0].partitions[0].error_code

        assert await commit(4) is ErrorCode.unknown_topic_or_partition
        lake.alter_topic("t", partitions=5)
        assert await commit(4) is OK

    against(lake, test)


def test_only_members_of_the_generation_commit(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
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
    async def test(clients: Clients) -> None:
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
    async def test(clients: Clients) -> None:
        client = await clients.one()
        answer = await client.ask(ApiKey.FIND_COORDINATOR, version, key="g", coordinator_keys=["g", "h"])
        found = answer.coordinators if version >= 4 else [answer]
        assert [(f"{one.host}:{one.port}", one.error_code) for one in found] == [(clients.address, OK)] * len(found)
        if version >= 1:
            answer = await client.ask(ApiKey.FIND_COORDINATOR, version, key="g", coordinator_keys=["g"], key_type=2)
            found = answer.coordinators[0] if version >= 4 else answer
            assert found.error_code is ErrorCode.invalid_request

    against(lake, test)
