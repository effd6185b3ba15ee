"""Groups that turn from the classic protocol to the consumer protocol and back, with their members (KIP-848)."""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import replace

import confluent_kafka
import pytest
from kio.schema.errors import ErrorCode
from support.brokers import running_broker
from support.logs import values
from support.waiting import PATIENCE_S
from support.wire_heartbeats import LEAVES, Member, describe, member
from support.wire_members import OK, QUICK, Clients, WireMember, against, until, until_rebalance

from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

EVERY = [0, 1, 2, 3]
# What the topic has before.
BEFORE = "abcdefgh"


async def go_on(*classic: WireMember, modern: tuple[Member, ...] = ()) -> None:
    """Heartbeats and joins, as answers ask for them, until the members have all partitions, as many as each other."""

    async def settled() -> bool:
        for one in classic:
            if await one.beat() is ErrorCode.rebalance_in_progress:
                one.owned = ()  # as an eager consumer does
                assert (await one.join()).error_code is OK
                assert (await one.sync()).error_code is OK
        for other in modern:
            await other.beat()
        shares = [[number for _, number in one.owned] for one in classic] + [other.partitions for other in modern]
        sizes = [len(share) for share in shares]
        return sorted(number for share in shares for number in share) == EVERY and max(sizes) - min(sizes) <= 1

    await until(settled)


async def types(clients: Clients) -> list[tuple[str, str]]:
    answer = await (await clients.one()).ask(ApiKey.LIST_GROUPS, 5)
    return [(one.group_type, one.group_state) for one in answer.groups]


def test_a_group_turns_with_its_members_and_back(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, b = await clients.member("a"), await clients.member("b")
        await a.take_part()
        generation = a.generation
        c = await member(clients, "c")
        await c.beat()
        assert await types(clients) == [("consumer", "Reconciling")]
        assert a.generation == generation
        await until_rebalance(a)
        await b.enter()
        assert (await b.sync()).error_code is OK
        await go_on(a, b, modern=(c,))
        found = {one.client_id: one.member_type for one in (await describe(clients)).members}
        assert found == {"a": 0, "b": 0, "c": 1}
        assert (await c.ask(LEAVES)).error_code is OK
        assert await types(clients) == [("classic", "PreparingRebalance")]
        for one in (a, b):
            assert await one.beat() is ErrorCode.rebalance_in_progress  # and none is fenced
        joined = await asyncio.gather(a.join(), b.join())
        (leader,) = (one for one, answer in zip((a, b), joined, strict=True) if answer.leader == one.member_id)
        answer = next(answer for answer in joined if answer.members)
        await leader.sync(leader.shares(answer))
        for one in (a, b):
            assert (await one.sync()).error_code is OK
        assert sorted(number for one in (a, b) for _, number in one.owned) == EVERY

    against(lake, test)


def test_a_member_that_waits_for_a_round_joins_again_when_the_group_turns(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, b = await clients.member("a"), await clients.member("b")
        await a.take_part()
        await b.join()  # it is given its id
        waits = asyncio.ensure_future(b.join())
        await until_rebalance(a)
        c = await member(clients, "c")
        await c.beat()
        assert (await waits).error_code is ErrorCode.rebalance_in_progress
        assert (await b.join()).error_code is OK
        assert (await b.sync()).error_code is OK
        await go_on(a, b, modern=(c,))

    against(lake, test)


def test_a_static_member_that_was_replaced_is_fenced_and_does_not_join_again(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        c = await member(clients, "c")
        await c.beat()
        first = await clients.member("a", instance_id="one")
        await first.enter()
        assert (await first.sync()).error_code is OK
        await go_on(first, modern=(c,))
        second = await clients.member("a", instance_id="one")
        assert (await second.join()).error_code is OK
        assert await first.beat() is ErrorCode.fenced_instance_id
        assert (await first.join()).error_code is ErrorCode.fenced_instance_id

    against(lake, test)


def test_commits_of_classic_members_are_fenced_by_their_epoch(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a, c = await clients.member("a"), await member(clients, "c")
        await c.beat()
        await a.enter()
        assert (await a.sync()).error_code is OK
        await go_on(a, modern=(c,))

        async def commit(generation: int) -> ErrorCode:
            place = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
            answer = await a.client.ask(
                ApiKey.OFFSET_COMMIT, 8, group_id="g", generation_id_or_member_epoch=generation,
                member_id=a.member_id, topics=[{"name": "t", "partitions": [place]}],
            )  # fmt: skip
            return answer.topics[0].partitions[0].error_code

        assert await commit(a.generation) is OK
        assert await commit(a.generation - 1) is ErrorCode.illegal_generation
        assert (await a.sync(generation_id=a.generation + 1)).error_code is ErrorCode.illegal_generation

    against(lake, test)


def test_a_classic_member_that_does_not_join_again_is_evicted(lake: Lake) -> None:
    async def test(clients: Clients) -> None:
        a = await clients.member("a", rebalance_ms=400)
        await a.take_part()
        c = await member(clients, "c")

        async def has_all() -> bool:
            await a.beat()  # it lives, and never joins again
            await c.beat()
            return c.partitions == EVERY

        await until(has_all)
        assert await a.beat() is ErrorCode.unknown_member_id

    against(lake, test)


@pytest.mark.parametrize(("policy", "turns"), [("disabled", False), ("downgrade", False), ("upgrade", True)])
def test_the_policy_says_which_groups_turn(lake: Lake, policy: str, turns: bool) -> None:
    async def test(clients: Clients) -> None:
        a, c = await clients.member("a"), await member(clients, "c")
        await a.take_part()
        if not turns:
            assert (await c.ask()).error_code is ErrorCode.group_id_not_found
            return
        await c.beat()
        await go_on(a, modern=(c,))
        await c.ask(LEAVES)
        await go_on(a)
        assert await types(clients) == [("consumer", "Stable")]

    against(lake, test, replace(QUICK, migration=policy))


# --- real clients, under load ------------------------------------------------------------------------------


class Load:
    """Records that come all the time, and how often consumers got each."""

    def __init__(self, lake: Lake) -> None:
        self.log, self.topic = GroupLog(lake), lake.topic("t")
        self.sent = 0
        self.got: Counter[str] = Counter()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.02):
            self.topic.append(values(f"r{self.sent}", partition=[self.sent % 4]))
            self.sent += 1

    def poll(self, *consumers: confluent_kafka.Consumer) -> None:
        for consumer in consumers:
            message = consumer.poll(0.02)
            if message is not None and message.error() is None:
                self.got[message.value().decode()] += 1

    def until_shared(self, *consumers: confluent_kafka.Consumer) -> str:
        """Poll until all partitions are shared out among these, the group is calm, and each has got more; its type.

        librdkafka leaves a group before it commits where it is closed amid a rebalance.
        """
        wanted = sorted(4 // len(consumers) + (number < 4 % len(consumers)) for number in range(len(consumers)))
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.poll(*consumers)
            sizes = sorted(len(consumer.assignment()) for consumer in consumers)
            group = self.log.group("g")
            if sizes == wanted and group is not None and group.phase == "Stable":
                for _ in range(10):
                    self.poll(*consumers)
                return group.type
        raise AssertionError(f"they own {sizes} partitions")


def consumer_of(address: str, **conf: str) -> confluent_kafka.Consumer:
    given = {key.replace("_", "."): value for key, value in conf.items()}
    settings = {"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest", "log_level": 0}
    consumer = confluent_kafka.Consumer(settings | given)
    consumer.subscribe(["t"])
    return consumer


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_goes_to_the_new_protocol_and_back_under_load(lake: Lake, strategy: str) -> None:
    """No record is lost, and none comes twice, while two consumers of each protocol come and go."""
    classic = {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": "200"}
    with running_broker(lake, groups=GroupSettings(initial_rebalance_delay_ms=0)) as address, Load(lake) as load:
        there: list[confluent_kafka.Consumer] = []

        def come(**conf: str) -> str:
            there.append(consumer_of(address, **conf))
            return load.until_shared(*there)

        def go() -> str:
            there.pop(0).close()
            return load.until_shared(*there)

        try:
            assert [come(**classic), come(**classic)] == ["classic", "classic"]
            assert [come(group_protocol="consumer"), go(), come(group_protocol="consumer"), go()] == ["consumer"] * 4
            assert [come(**classic), go(), go()] == ["consumer", "consumer", "classic"]
            load.stop()
            until_s = time.monotonic() + PATIENCE_S
            while len(load.got) < load.sent + len(BEFORE) and time.monotonic() < until_s:
                load.poll(*there)
        finally:
            for consumer in there:
                consumer.close()
    assert set(load.got) == {*BEFORE, *(f"r{number}" for number in range(load.sent))}
    assert [value for value, count in load.got.items() if count > 1] == []
