"""What a member says of itself when it joins."""

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.groups.consumer_protocol import (
    NO_GENERATION,
    Subscription,
    encode_cooperative_user_data,
    encode_sticky_user_data,
    encode_subscription,
)
from tidelog.groups.member.events import COOPERATIVE, MemberConfig
from tidelog.groups.model import Member, TopicPartition


@dataclass(frozen=True, slots=True)
class Memory:
    """The last share that a member was given, and in which generation: `sticky` builds on it after all is given up."""

    partitions: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION


def as_member(
    config: MemberConfig,
    member_id: str,
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    generation: int,
    memory: Memory,
) -> Member:
    """The member as its group is to know it. Source: `ConsumerCoordinator.metadata`."""
    listed, held = tuple(topics), tuple(owned)

    def metadata(strategy: str) -> bytes:
        user_data = None
        if strategy == "sticky" and memory.generation != NO_GENERATION:
            user_data = encode_sticky_user_data(memory.partitions, memory.generation)
        elif strategy == COOPERATIVE:
            user_data = encode_cooperative_user_data(generation)
        return encode_subscription(Subscription(listed, user_data, held, generation))

    return Member(
        member_id=member_id,
        client_id=config.client_id,
        host=config.host,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.max_poll_interval_ms,
        protocols=tuple((strategy, metadata(strategy)) for strategy in config.strategies),
        instance_id=config.instance_id,
    )
