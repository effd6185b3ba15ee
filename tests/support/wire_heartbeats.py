"""Members of groups of the type consumer over Kafka's protocol, heartbeat by heartbeat (KIP-848)."""

from typing import Any
from uuid import UUID

from support.wire_members import OK, Clients

from tidelog.broker.wire.apis import ApiKey

JOINS, LEAVES, AWAY = 0, -1, -2


class Member:
    """A member of the group `g` that does what the answers say to its heartbeats."""

    def __init__(self, client: Any, name: str, **says: Any) -> None:
        self.client, self.name, self.says = client, name, says
        self.epoch, self.interval_ms = JOINS, 0
        self.owned: dict[UUID, tuple[int, ...]] = {}

    async def ask(self, epoch: int | None = None, version: int = 1, **says: Any) -> Any:
        """One ConsumerGroupHeartbeat."""
        fields: dict[str, Any] = {"group_id": "g", "member_id": self.name, "topic_partitions": None}
        fields["member_epoch"] = self.epoch if epoch is None else epoch
        if fields["member_epoch"] == JOINS:
            fields |= {"rebalance_timeout": 10_000, "subscribed_topic_names": ["t"], "topic_partitions": []} | self.says
        return await self.client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, **fields | says)

    async def beat(self, **says: Any) -> Any:
        """One heartbeat that is taken; what it tells is done at once, and said with the next."""
        owned = [{"topic_id": topic, "partitions": numbers} for topic, numbers in self.owned.items()]
        answer = await self.ask(**({"topic_partitions": owned} if self.epoch != JOINS else {}) | says)
        assert answer.error_code is OK, answer
        self.epoch, self.interval_ms = answer.member_epoch, answer.heartbeat_interval.total_seconds() * 1000
        if answer.assignment is not None:
            self.owned = {one.topic_id: tuple(one.partitions) for one in answer.assignment.topic_partitions}
        return answer

    @property
    def partitions(self) -> list[int]:
        return sorted(number for numbers in self.owned.values() for number in numbers)


async def member(clients: Clients, name: str, **says: Any) -> Member:
    return Member(await clients.one(name), name, **says)


async def settled(*members: Member) -> None:
    """Heartbeats in turn, until each member has as many partitions of four as any other."""
    for _ in range(20):
        for one in members:
            await one.beat()
    every = sorted(number for one in members for number in one.partitions)
    assert every == [0, 1, 2, 3]


async def describe(clients: Clients, group: str = "g") -> Any:
    answer = await (await clients.one()).ask(
        ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[group], include_authorized_operations=False
    )
    return answer.groups[0]
