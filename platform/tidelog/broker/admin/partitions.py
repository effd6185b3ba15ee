"""What is asked of partitions: pages of them, their sizes, other replicas, other leaders."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tidelog.access.model import AclResource
from tidelog.broker.admin.refusals import InvalidReplicaAssignmentError, result
from tidelog.broker.admin.topic_facts import (
    TopicFacts,
    describable,
    facts_of,
    find,
    find_describable,
    placement,
    survey,
)
from tidelog.broker.base.access import NOT_ASKED, operations
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.errors import InvalidRequestError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError, UnknownPartitionError, UnknownTopicError
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.log.lake import Lake
from tidelog.log.state.descriptions import describe
from tidelog.operations.snapshots import Space, space_of

logger = logging.getLogger(__name__)

# Kafka's max.request.partition.size.limit.
_LARGEST_PAGE: Final = 2000
# Of a store that is no disk of this machine.
_UNKNOWN_SPACE: Final = Space(-1, -1)
# A preferred leader, and one that is not in sync. Source: `ElectionType`.
_ELECTIONS: Final = (0, 1)


class ElectionNotNeededError(TidelogError, kafka_code=KafkaCode.ELECTION_NOT_NEEDED):
    """The partition has its leader."""


class NoReassignmentInProgressError(TidelogError, kafka_code=KafkaCode.NO_REASSIGNMENT_IN_PROGRESS):
    """There is nothing to cancel."""


@dataclass(frozen=True, slots=True)
class TopicPage:
    """Some of the partitions of topics: (topic, first partition, end). `next`: where the next page begins."""

    parts: Sequence[tuple[TopicFacts, int, int]]
    next: tuple[str, int] | None


def page(topics: Iterable[TopicFacts], cursor: tuple[str, int] | None, limit: int) -> TopicPage:
    """The page that begins at a cursor (KIP-966): topics by name, at most `limit` partitions in all.

    Raises `InvalidRequestError`. A cursor whose topic is gone stands for the next topic's beginning.
    """
    first_name, first = cursor or ("", 0)
    if first < 0:
        raise InvalidRequestError(f"DescribeTopicPartitionsRequest cursor partition must be valid, not {first}.")
    left = max(1, min(limit, _LARGEST_PAGE))
    parts: list[tuple[TopicFacts, int, int]] = []
    for topic in sorted(topics, key=lambda topic: topic.name or ""):
        name = topic.name or ""
        if name < first_name:
            continue
        if not left:
            return TopicPage(parts, (name, 0))
        start = min(first, topic.partitions) if name == first_name else 0
        end = min(topic.partitions, start + left)
        parts.append((topic, start, end))
        left -= end - start
        if end < topic.partitions:
            return TopicPage(parts, (name, end))
    return TopicPage(parts, None)


class PartitionHandlers:
    """Answers what is asked of partitions."""

    def __init__(self, context: Context) -> None:
        self._context = context

    # --- DescribeTopicPartitions ---------------------------------------------------------------------------

    async def describe(self, call: Call) -> Reply:
        """DescribeTopicPartitions."""
        context, body = self._context, call.body
        cursor = None if body.cursor is None else (body.cursor.topic_name, body.cursor.partition_index)
        if body.topics:
            names = dict.fromkeys(topic.name for topic in body.topics)
            topics: Sequence[TopicFacts] = await asyncio.gather(
                *(find_describable(context, call, name) for name in names)
            )
        else:
            every = await context.blocking(survey, context.lake)
            topics = [topic for topic in describable(context.access, call.peer, every) if not topic.error]
        view, listener = context.cluster(), call.peer.listener
        try:
            topic_page = page(topics, cursor, body.response_partition_limit)
        except InvalidRequestError as e:
            return {"topics": [self._described(call, TopicFacts(t.name, error=e.kafka_code), ()) for t in body.topics]}

        def partitions(topic: TopicFacts, first: int, end: int) -> Sequence[Answer]:
            if topic.error:
                return ()
            factor, more = (
                context.settings.default_replication_factor,
                {"eligible_leader_replicas": (), "last_known_elr": ()},
            )
            return [placement(view, topic, number, factor, listener).fields() | more for number in range(first, end)]

        return {
            "topics": [
                self._described(call, topic, partitions(topic, first, end)) for topic, first, end in topic_page.parts
            ],
            "next_cursor": None
            if topic_page.next is None
            else {"topic_name": topic_page.next[0], "partition_index": topic_page.next[1]},
        }

    def _described(self, call: Call, topic: TopicFacts, partitions: Sequence[Answer]) -> Answer:
        allowed = NOT_ASKED
        if not topic.error and topic.name is not None:
            allowed = operations(self._context.access, call.peer, AclResource.TOPIC, topic.name)
        return {
            "error_code": topic.error,
            "name": topic.name,
            "topic_id": topic.id,
            "is_internal": topic.is_internal,
            "partitions": partitions,
            "topic_authorized_operations": allowed,
        }

    # --- DescribeLogDirs -----------------------------------------------------------------------------------

    async def describe_log_dirs(self, call: Call) -> Reply:
        """DescribeLogDirs: the lake's address is each broker's one directory, with the partitions that it serves."""
        context = self._context
        asked = call.body.topics
        wanted = None if asked is None else {topic.topic: set(topic.partitions) for topic in asked}
        sizes = await context.blocking(partition_sizes, context.lake, None if wanted is None else list(wanted))
        view = context.cluster()
        factor = context.settings.default_replication_factor
        topics = []
        for topic, by_partition in sizes:
            assert topic.id is not None
            numbers = [
                number
                for number in range(topic.partitions)
                if wanted is None or number in wanted[topic.name or ""]
                if any(node.id == view.node_id for node in view.replicas(topic.id, number, topic.factor or factor))
            ]
            if not numbers:
                continue
            topics.append(
                {
                    "name": topic.name,
                    "partitions": [
                        {
                            "partition_index": number,
                            "partition_size": by_partition[number],
                            "offset_lag": 0,
                            "is_future_key": False,
                        }
                        for number in numbers
                    ],
                }
            )
        space = await context.blocking(space_of, context.lake.storage) or _UNKNOWN_SPACE
        directory = {
            "error_code": 0,
            "log_dir": context.lake.uri,
            "topics": topics,
            "total_bytes": space.total,
            "usable_bytes": space.free,
        }
        return {"error_code": 0, "results": [directory]}

    # --- replicas and leaders ------------------------------------------------------------------------------

    async def list_reassignments(self, call: Call) -> Reply:  # noqa: ARG002 - the answer is the same for all topics
        """ListPartitionReassignments: none goes on, ever: there is nothing to copy."""
        return {**result(), "topics": ()}

    async def reassign(self, call: Call) -> Reply:
        """AlterPartitionReassignments: refused, but for what is so already."""

        async def one(topic: Any) -> Answer:
            facts = await find(self._context, topic.name)
            told = []
            for partition in topic.partitions:
                number = partition.partition_index
                try:
                    self._reassign(facts, number, partition.replicas)
                    told.append({"partition_index": number, **result()})
                except TidelogError as e:
                    told.append({"partition_index": number, **result(e)})
            return {"name": topic.name, "partitions": told}

        answers = await asyncio.gather(*(one(topic) for topic in call.body.topics))
        allowed = getattr(call.body, "allow_replication_factor_change", True)
        return {**result(), "allow_replication_factor_change": allowed, "responses": answers}

    def _reassign(self, facts: TopicFacts, partition: int, replicas: Sequence[int] | None) -> None:
        _require(facts, partition)
        if replicas is None:
            raise NoReassignmentInProgressError(f"No reassignment of {facts.name}-{partition} is in progress.")
        assert facts.id is not None
        view, factor = self._context.cluster(), facts.factor or self._context.settings.default_replication_factor
        now = [node.id for node in view.replicas(facts.id, partition, factor)]
        if sorted(replicas) != sorted(now):
            raise InvalidReplicaAssignmentError(
                f"Partition {facts.name}-{partition} can't get the replicas {list(replicas)}: which brokers serve it,"
                f" now {now}, follows from those that run, and all of them reach the same storage. Nothing is to be"
                " moved; start or stop brokers instead."
            )

    async def elect(self, call: Call) -> Reply:
        """ElectLeaders: none is needed, for each partition has its leader as soon as a broker runs."""
        body = call.body
        if getattr(body, "election_type", 0) not in _ELECTIONS:
            return {"error_code": InvalidRequestError.kafka_code, "replica_election_results": ()}

        async def one(topic: Any) -> Answer:
            facts = await find(self._context, topic.topic)
            return {"topic": topic.topic, "partition_result": [_elected(facts, number) for number in topic.partitions]}

        # of all partitions Kafka names only those whose leader changes
        answers = await asyncio.gather(*(one(topic) for topic in body.topic_partitions or ()))
        return {"error_code": 0, "replica_election_results": answers}


def partition_sizes(lake: Lake, wanted: Sequence[str] | None) -> list[tuple[TopicFacts, Mapping[int, int]]]:
    """The stored bytes of each partition of topics that can be had, all topics where None are given."""
    sizes: list[tuple[TopicFacts, Mapping[int, int]]] = []
    for name in lake.topics(internal=True) if wanted is None else wanted:
        try:
            state = lake.peek(name)
        except TidelogError as e:
            logger.warning("The sizes of topic '%s' are left out. %s", name, e)
            continue
        if state is not None:
            sizes.append((facts_of(name, state), {p.partition: p.bytes for p in describe(state, name).partitions}))
    return sizes


def _require(facts: TopicFacts, partition: int) -> None:
    if facts.error:
        raise UnknownTopicError(f"No such topic as {facts.name}, or it can't be opened (error {facts.error}).")
    if not 0 <= partition < facts.partitions:
        raise UnknownPartitionError(f"No such partition as {facts.name}-{partition}.")


def _elected(facts: TopicFacts, partition: int) -> Answer:
    try:
        _require(facts, partition)
        raise ElectionNotNeededError("Leader election not needed for topic partition.")
    except TidelogError as e:
        return {"partition_id": partition, **result(e)}
