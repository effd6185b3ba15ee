"""Groups of the type consumer at a broker, request by request (KIP-848)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode
from support.brokers import running_broker
from support.wire_heartbeats import AWAY, JOINS, LEAVES, Member, describe, member, settled
from support.wire_members import OK, QUICK, Clients, WireMember, against, until

from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import pause


def test_members_share_the_partitions_and_go_on_when_one_leaves(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, b = await member(clients, "a"), await member(clients, "b", rack_id="r", server_assignor="uniform")
        await a.beat()
        assert a.partitions == [0, 1, 2, 3]
        await b.beat()
        assert b.partitions == []
        await settled(a, b)
        assert len(a.partitions) == 2
        found = await describe(clients)
        assert (found.group_state, found.assignor_name, found.group_epoch) == ("Stable", "uniform", a.epoch)
        shown = {one.member_id: one for one in found.members}
        assert (shown["b"].rack_id, shown["b"].client_id, shown["b"].member_type) == ("r", "b", 1)
        (topic,) = shown["a"].assignment.topic_partitions
        assert (topic.topic_name, sorted(topic.partitions)) == ("t", a.partitions)
        assert shown["a"].assignment == shown["a"].target_assignment
        assert 500 <= a.interval_ms <= 5_000
        assert (await b.ask(LEAVES)).member_epoch == LEAVES
        await settled(a)

    against(lake, test)


def test_a_heartbeat_that_changes_nothing_writes_nothing(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await member(clients, "a")
        await a.beat()
        log = GroupLog(lake)
        log.group("g")
        version = log.version("g")
        for _ in range(30):
            await a.beat()
        log.group("g")
        assert log.version("g") == version

    against(lake, test)


@pytest.mark.parametrize(
    ("says", "code"),
    [
        ({"member_id": ""}, ErrorCode.invalid_request),
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"instance_id": ""}, ErrorCode.invalid_request),
        ({"rack_id": ""}, ErrorCode.invalid_request),
        ({"rebalance_timeout": -1}, ErrorCode.invalid_request),
        ({"topic_partitions": None}, ErrorCode.invalid_request),
        ({"subscribed_topic_names": None}, ErrorCode.invalid_request),
        ({"member_epoch": -3}, ErrorCode.invalid_request),
        ({"member_epoch": AWAY}, ErrorCode.invalid_request),
        ({"member_epoch": 5}, ErrorCode.group_id_not_found),
        ({"server_assignor": "no"}, ErrorCode.unsupported_assignor),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "t(?=x)"}, ErrorCode.invalid_regular_expression),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "("}, ErrorCode.invalid_regular_expression),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "x" * 5000}, ErrorCode.invalid_regular_expression),
    ],
)
def test_what_is_refused(lake: Lake, says: dict[str, Any], code: ErrorCode) -> None:
    async def test(clients: Clients) -> None:
        answer = await (await member(clients, "a")).ask(**says)
        assert answer.error_code is code
        assert answer.error_message

    against(lake, test)


def test_version_0_is_given_an_id(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        answer = await (await member(clients, "")).ask(version=0)
        assert (answer.error_code, bool(answer.member_id)) == (OK, True)

    against(lake, test)


def test_epochs_fence_heartbeats_commits_and_fetches(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await member(clients, "a")
        await a.beat()
        client = await clients.one()

        async def commit(epoch: int, version: int = 9, name: str = "a") -> ErrorCode:
            partitions = [{"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}]
            answer = await client.ask(
                ApiKey.OFFSET_COMMIT, version, group_id="g", member_id=name, generation_id_or_member_epoch=epoch,
                topics=[{"name": "t", "partitions": partitions}],
            )  # fmt: skip
            return answer.topics[0].partitions[0].error_code

        async def fetch(epoch: int, name: str | None = "a") -> ErrorCode:
            topics = [{"name": "t", "partition_indexes": [0]}]
            groups = [{"group_id": "g", "member_id": name, "member_epoch": epoch, "topics": topics}]
            answer = await client.ask(ApiKey.OFFSET_FETCH, 9, groups=groups)
            return answer.groups[0].error_code

        assert await commit(a.epoch) is OK
        assert await commit(a.epoch + 1) is ErrorCode.stale_member_epoch
        assert await commit(a.epoch, version=8) is ErrorCode.unsupported_version
        assert await commit(-1, name="") is ErrorCode.unknown_member_id
        assert await fetch(a.epoch) is OK
        assert await fetch(-1, None) is OK
        assert await fetch(a.epoch + 1) is ErrorCode.stale_member_epoch
        assert await fetch(a.epoch, "x") is ErrorCode.unknown_member_id
        assert (await a.ask(a.epoch + 5)).error_code is ErrorCode.fenced_member_epoch
        assert (await (await member(clients, "x")).ask(a.epoch)).error_code is ErrorCode.unknown_member_id
        await a.ask(LEAVES)
        assert await commit(-1, name="") is OK

    against(lake, test)


def test_a_static_member_comes_back_and_another_of_its_id_is_refused(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, b = await member(clients, "a", instance_id="i"), await member(clients, "b", instance_id="i")
        await a.beat()
        assert (await b.ask()).error_code is ErrorCode.unreleased_instance_id
        assert (await b.ask(a.epoch, instance_id="i")).error_code is ErrorCode.fenced_instance_id
        assert (await a.ask(AWAY, instance_id="i")).member_epoch == AWAY
        await b.beat()
        assert b.partitions == [0, 1, 2, 3]

    against(lake, test)


def test_a_regular_expression_takes_in_topics_that_come_later(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await member(clients, "a", subscribed_topic_names=None, subscribed_topic_regex="[tu].*")
        await a.beat()
        assert a.partitions == [0, 1, 2, 3]
        lake.create_topic("u2")
        lake.create_topic("xt")

        async def has_both() -> bool:
            await a.beat()
            return len(a.owned) == 2

        await until(has_both)

    against(lake, test)


def test_a_topic_that_grows_is_shared_out_anew(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await member(clients, "a")
        await a.beat()
        lake.alter_topic("t", partitions=6)

        async def has_all() -> bool:
            await a.beat()
            return len(a.partitions) == 6

        await until(has_all)

    against(lake, test)


def test_a_silent_member_is_evicted_and_one_that_does_not_revoke(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, b = await member(clients, "a", rebalance_timeout=300), await member(clients, "b")
        await a.beat()
        await b.beat()

        async def evicted() -> bool:
            await b.beat()
            answer = await a.ask(topic_partitions=None)  # it lives, and never says that it gave anything up
            return answer.error_code is ErrorCode.unknown_member_id

        await until(evicted)

        async def has_all() -> bool:
            await b.beat()
            return b.partitions == [0, 1, 2, 3]

        await until(has_all)

        async def is_empty() -> bool:
            return (await describe(clients)).group_state == "Empty"

        await until(is_empty)  # b is silent now

    against(lake, test, replace(QUICK, consumer_session_timeout_ms=1_500))


def test_where_members_must_not_migrate_a_group_without_members_may_become_another(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, old = await member(clients, "a"), await clients.member("old")
        await a.beat()
        assert (await old.join(protocol_type="connect")).error_code is ErrorCode.inconsistent_group_protocol
        client = await clients.one()
        listed = (await client.ask(ApiKey.LIST_GROUPS, 5, types_filter=["Consumer"])).groups
        assert [(one.group_id, one.group_type, one.group_state) for one in listed] == [("g", "consumer", "Stable")]
        assert (await client.ask(ApiKey.LIST_GROUPS, 5, types_filter=["classic"])).groups == ()
        (found,) = (
            await client.ask(ApiKey.DESCRIBE_GROUPS, 6, groups=["g"], include_authorized_operations=False)
        ).groups
        assert found.error_code is ErrorCode.group_id_not_found
        await a.ask(LEAVES)
        await _enter(old)
        assert (await a.ask(JOINS)).error_code is ErrorCode.group_id_not_found
        assert (await describe(clients)).error_code is ErrorCode.group_id_not_found
        await old.leave()
        a.epoch = JOINS
        await a.beat()
        assert a.partitions == [0, 1, 2, 3]

    against(lake, test, replace(QUICK, migration="disabled"))


async def _enter(old: WireMember) -> None:
    await old.take_part()


def test_a_full_group_takes_no_more(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        await (await member(clients, "a")).beat()
        answer = await (await member(clients, "b")).ask()
        assert answer.error_code is ErrorCode.group_max_size_reached

    against(lake, test, replace(QUICK, consumer_max_size=1))


def test_settings_of_a_broker_count(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await member(clients, "a")
        await a.beat()
        assert a.interval_ms == 200
        assert (await describe(clients)).assignor_name == "range"
        answer = await (await member(clients, "b", server_assignor="uniform")).ask()
        assert answer.error_code is ErrorCode.unsupported_assignor

    against(lake, test, replace(QUICK, consumer_heartbeat_interval_ms=200, assignors="range"))


def test_another_broker_goes_on_with_the_same_epochs(lake: Lake) -> None:
    kept: list[Member] = []

    async def first(address: str) -> None:
        async with Clients(address) as clients:
            a = await member(clients, "a")
            await a.beat()
            kept.append(a)

    async def then(address: str) -> None:
        async with Clients(address) as clients:
            a = kept[0]
            a.client = await clients.one("a")
            epoch = a.epoch
            for _ in range(5):
                await a.beat()
                await pause(0.01)
            assert (a.epoch, a.partitions) == (epoch, [0, 1, 2, 3])

    for test in (first, then):
        with running_broker(lake, groups=QUICK) as address:
            asyncio.run(test(address))
