"""Members of groups over Kafka's protocol, driven request by request, and brokers for them."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Self

from kio.schema.errors import ErrorCode
from support.brokers import running_broker
from support.kafka_wire import WireClient
from support.waiting import PATIENCE_S

from tidelog.broker.base.settings import GroupSettings
from tidelog.broker.wire.apis import ApiKey
from tidelog.groups.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tidelog.groups.model import TopicPartition
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import pause

OK = ErrorCode.none
QUICK = GroupSettings(min_session_timeout_ms=100, initial_rebalance_delay_ms=0)
MOST_LOOKS = 3_000
NEWEST = {ApiKey.JOIN_GROUP: 9, ApiKey.SYNC_GROUP: 5, ApiKey.HEARTBEAT: 4, ApiKey.LEAVE_GROUP: 5}
OLDEST = dict.fromkeys(NEWEST, 0)


class WireMember:
    """A consumer of one group. A leader shares the partitions of `counts` out in turn, by member id."""

    def __init__(
        self,
        client: WireClient,
        *topics: str,
        group: str = "g",
        versions: dict[ApiKey, int] | None = None,
        instance_id: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 10_000,
        counts: dict[str, int] | None = None,
    ) -> None:
        self.client = client
        self.topics = topics or ("t",)
        self.group = group
        self.versions = versions or NEWEST
        self.instance_id = instance_id
        self.session_ms, self.rebalance_ms = session_ms, rebalance_ms
        self.counts = counts or {"t": 4}
        self.member_id = ""
        self.generation = -1
        self.owned: tuple[TopicPartition, ...] = ()

    async def join(self, **changed: Any) -> Any:
        """One JoinGroup; the answer, of which id and generation are kept."""
        fields = {
            "group_id": self.group,
            "session_timeout": self.session_ms,
            "rebalance_timeout": self.rebalance_ms,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": encode_subscription(Subscription(tuple(self.topics)))}],
        }
        answer = await self._ask(ApiKey.JOIN_GROUP, **fields | changed)
        self.member_id = answer.member_id or self.member_id
        if answer.error_code is OK:
            self.generation = answer.generation_id
        return answer

    async def enter(self) -> Any:
        """Join, and once more where an id is required first; the answer, without an error."""
        answer = await self.join()
        if answer.error_code is ErrorCode.member_id_required:
            answer = await self.join()
        assert answer.error_code is OK, answer
        return answer

    async def sync(self, assignments: dict[str, bytes] | None = None, **changed: Any) -> Any:
        """One SyncGroup."""
        fields = {
            "group_id": self.group,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": n, "assignment": data} for n, data in (assignments or {}).items()],
        }
        answer = await self._ask(ApiKey.SYNC_GROUP, **fields | changed)
        if answer.error_code is OK:
            self.owned = decode_assignment(answer.assignment).partitions
        return answer

    async def take_part(self) -> None:
        """Join and get a share, over as many rounds as that takes."""
        while True:
            joined = await self.join()
            if joined.error_code is ErrorCode.unknown_member_id:
                self.member_id = ""
            if joined.error_code is not OK:
                continue
            leads = joined.leader == self.member_id and not getattr(joined, "skip_assignment", False)
            synced = await self.sync(self.shares(joined) if leads else None)
            if synced.error_code is OK:
                return

    def shares(self, joined: Any) -> dict[str, bytes]:
        """What a leader hands in: the partitions go around the members that subscribe to their topic."""
        readers = {m.member_id: decode_subscription(m.metadata).topics for m in joined.members}
        shares: dict[str, list[TopicPartition]] = {name: [] for name in readers}
        for topic, count in self.counts.items():
            names = sorted(name for name, topics in readers.items() if topic in topics)
            for number in range(count):
                shares[names[number % len(names)]].append((topic, number))
        return {name: encode_assignment(Assignment(tuple(share))) for name, share in shares.items()}

    async def beat(self) -> ErrorCode:
        """One heartbeat's error code."""
        answer = await self._ask(
            ApiKey.HEARTBEAT,
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return answer.error_code

    async def live(self, every_s: float = 0.1) -> None:
        """Heartbeats, and a new share in each round, until cancelled."""
        while True:
            code = await self.beat()
            if code is ErrorCode.unknown_member_id:
                self.member_id = ""
            if code is not OK:
                await self.take_part()
            await pause(every_s)

    async def leave(self) -> Any:
        """Leave the group."""
        one = {"member_id": self.member_id, "group_instance_id": self.instance_id}
        return await self._ask(ApiKey.LEAVE_GROUP, group_id=self.group, members=[one], member_id=self.member_id)

    async def _ask(self, key: ApiKey, **fields: Any) -> Any:
        return await self.client.ask(key, self.versions[key], **fields)


class Clients:
    """Connections to a broker, closed together."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def one(self, name: str = "test") -> WireClient:
        """A connection."""
        return await self._stack.enter_async_context(WireClient(self.address, name))

    async def member(self, name: str = "test", **given: Any) -> WireMember:
        """A member on a connection of its own."""
        return WireMember(await self.one(name), **given)


def against(lake: Lake, test: Callable[[Clients], Coroutine[Any, Any, None]], groups: GroupSettings = QUICK) -> None:
    """Run a test with clients of a broker over the lake."""

    async def run(address: str) -> None:
        async with Clients(address) as clients:
            await asyncio.wait_for(test(clients), PATIENCE_S)

    with running_broker(lake, groups=groups) as address:
        asyncio.run(run(address))


async def until(there: Callable[[], Awaitable[bool]]) -> None:
    """Ask again until it is so."""
    for _ in range(MOST_LOOKS):
        if await there():
            return
        await pause(0.02)
    raise AssertionError("it never came to be so")


async def until_rebalance(member: WireMember) -> None:
    """Wait until the member hears of a round."""

    async def rebalances() -> bool:
        return await member.beat() is ErrorCode.rebalance_in_progress

    await until(rebalances)


def shared_out(*members: WireMember) -> list[TopicPartition]:
    """What the members own, sorted."""
    return sorted(place for member in members for place in member.owned)
