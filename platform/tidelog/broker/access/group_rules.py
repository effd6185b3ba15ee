"""What principals may do to groups and their offsets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import getitem
from typing import Any, Final

from tidelog.broker.access.authorization import EachResource, GuardedRequest, OneResource, split
from tidelog.broker.access.topic_rules import name_of
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.group_answers import (
    no_consumer_group,
    no_heartbeat,
    no_streams_group,
    no_streams_heartbeat,
)
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import GroupAuthorizationError, TopicAuthorizationError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.operations.rights import Right

# The first versions of OffsetFetch with an error of the group, and with several groups.
_ERROR_SINCE: Final = 2
_GROUPS_SINCE: Final = 8


def _code(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
    return {"error_code": error.kafka_code}


def _join_refused(call: Call, error: TidelogError) -> Answer:
    return {
        "error_code": error.kafka_code,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if call.version >= 7 else "",
        "leader": "",
        "member_id": "",
    }


def _sync_refused(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
    return {"error_code": error.kafka_code, "assignment": b""}


def _description_refused(group_id: str, error: TidelogError) -> Answer:
    return {
        "error_code": error.kafka_code,
        "error_message": str(error),
        "group_id": group_id,
        "group_state": "",
        "protocol_type": "",
        "protocol_data": "",
    }


def _deletion_refused(group_id: str, error: TidelogError) -> Answer:
    return {"group_id": group_id, "error_code": error.kafka_code}


JOIN_GROUP: Final = OneResource(Right.JOIN_GROUP, _join_refused)
SYNC_GROUP: Final = OneResource(Right.JOIN_GROUP, _sync_refused)
HEARTBEAT: Final = OneResource(Right.JOIN_GROUP, _code)
LEAVE_GROUP: Final = OneResource(Right.JOIN_GROUP, _code)
DESCRIBE_GROUPS: Final = EachResource(Right.DESCRIBE_GROUP, "groups", "groups", str, _description_refused)
DELETE_GROUPS: Final = EachResource(Right.DELETE_GROUP, "groups_names", "results", str, _deletion_refused)


async def consumer_heartbeat(request: GuardedRequest) -> Reply:
    """ConsumerGroupHeartbeat: of a client that may see the topics that it names."""
    body = request.call.body
    if not request.allows(Right.JOIN_GROUP, group=body.group_id):
        return _heartbeat_refused(request.denial(Right.JOIN_GROUP, group=body.group_id))
    for topic in sorted(body.subscribed_topic_names or ()):
        if not request.may(Right.DESCRIBE_TOPIC, topic=topic):
            return _heartbeat_refused(request.denial(Right.DESCRIBE_TOPIC, topic=topic))
    return await request.go_on()


def _heartbeat_refused(error: TidelogError) -> Answer:
    return no_heartbeat(error.kafka_code, str(error))


async def describe_consumer_groups(request: GuardedRequest) -> Reply:
    """ConsumerGroupDescribe: of groups that the client may see; those that read what it may not see are refused.

    Source: `KafkaApis.handleConsumerGroupDescribe` (kafka 4.2).
    """
    answer = await _DESCRIBE_CONSUMER_GROUPS(request)
    if not isinstance(answer, Mapping):
        return answer
    return {**answer, "groups": [_seen(request, group) for group in answer["groups"]]}


def _seen(request: GuardedRequest, group: Answer) -> Answer:
    shares = [member[which] for member in group["members"] for which in ("assignment", "target_assignment")]
    topics = {one["topic_name"] for share in shares for one in share["topic_partitions"]}
    if all(request.may(Right.DESCRIBE_TOPIC, topic=topic) for topic in topics):
        return group
    what = "The group has described topic(s) that the client is not authorized to describe."
    return _consumer_description_refused(group["group_id"], TopicAuthorizationError(what))


def _consumer_description_refused(group_id: str, error: TidelogError) -> Answer:
    return no_consumer_group(group_id, error.kafka_code, str(error))


_DESCRIBE_CONSUMER_GROUPS: Final = EachResource(
    Right.DESCRIBE_GROUP, "group_ids", "groups", str, _consumer_description_refused
)


async def streams_heartbeat(request: GuardedRequest) -> Reply:
    """StreamsGroupHeartbeat: of a client that may see the topics of its topology.

    Source: `KafkaApis.handleStreamsGroupHeartbeat` (kafka 4.2).
    """
    body = request.call.body
    if not request.allows(Right.JOIN_GROUP, group=body.group_id):
        return _streams_refused(request.denial(Right.JOIN_GROUP, group=body.group_id))
    for topic in sorted(topics_named(body)):
        if not request.may(Right.DESCRIBE_TOPIC, topic=topic):
            return _streams_refused(request.denial(Right.DESCRIBE_TOPIC, topic=topic))
    return await request.go_on()


def _streams_refused(error: TidelogError) -> Answer:
    return no_streams_heartbeat(error.kafka_code, str(error))


def topics_named(body: Any) -> set[str]:
    """The topics that a StreamsGroupHeartbeat names."""
    return set() if body.topology is None else _topics(body.topology.subtopologies, getattr)


def _topics(parts: Iterable[Any], read: Callable[[Any, str], Any]) -> set[str]:
    """The topics of subtopologies; `read` gives a field of one, and of an inner topic."""
    topics: set[str] = set()
    for part in parts:
        inner = (*read(part, "repartition_source_topics"), *read(part, "state_changelog_topics"))
        topics.update(read(part, "source_topics"), read(part, "repartition_sink_topics"))
        topics.update(read(topic, "name") for topic in inner)
    return topics


async def describe_streams_groups(request: GuardedRequest) -> Reply:
    """StreamsGroupDescribe: of groups that the client may see; those whose topics it may not see are refused."""
    answer = await _DESCRIBE_STREAMS_GROUPS(request)
    if not isinstance(answer, Mapping):
        return answer
    return {**answer, "groups": [_seen_streams(request, group) for group in answer["groups"]]}


def _seen_streams(request: GuardedRequest, group: Answer) -> Answer:
    topology = group["topology"]
    topics = set() if topology is None else _topics(topology["subtopologies"], getitem)
    if all(request.may(Right.DESCRIBE_TOPIC, topic=topic) for topic in topics):
        return group
    what = "The described group uses topics that the client is not authorized to describe."
    return _streams_description_refused(group["group_id"], TopicAuthorizationError(what))


def _streams_description_refused(group_id: str, error: TidelogError) -> Answer:
    return no_streams_group(group_id, error.kafka_code, str(error))


_DESCRIBE_STREAMS_GROUPS: Final = EachResource(
    Right.DESCRIBE_GROUP, "group_ids", "groups", str, _streams_description_refused
)


async def list_groups(request: GuardedRequest) -> Reply:
    """ListGroups: all for a client that may describe the cluster, else those that it may describe."""
    reply = await request.answer()
    shown = [group for group in reply.get("groups", ()) if request.may(Right.LIST_GROUPS, group=group["group_id"])]
    return {**reply, "groups": shown}


# --- offsets -----------------------------------------------------------------------------------------------


async def commit_offsets(request: GuardedRequest) -> Reply:
    """OffsetCommit, and TxnOffsetCommit, which needs its transactional id, too."""
    body = request.call.body
    named = {"group": body.group_id}
    if request.call.key is ApiKey.TXN_OFFSET_COMMIT:
        named = {"transactional_id": body.transactional_id, **named}
    for argument, name in named.items():
        if not request.allows(Right.COMMIT_OFFSETS, **{argument: name}):
            code = request.denial(Right.COMMIT_OFFSETS, **{argument: name}).kafka_code
            return {"topics": [_commit_refused(topic, code) for topic in body.topics]}
    kept, refused = await _allowed(request, body.topics, Right.COMMIT_OFFSETS)
    if not refused:
        return await request.go_on()
    found = (await request.answer(topics=tuple(kept)))["topics"] if kept else ()
    code = TopicAuthorizationError.kafka_code
    return {"topics": [*found, *(_commit_refused(topic, code) for topic in refused)]}


def _commit_refused(topic: Any, code: int) -> Answer:
    partitions = [{"partition_index": p.partition_index, "error_code": code} for p in topic.partitions]
    return {**_named(topic), "partitions": partitions}


def _named(topic: Any) -> dict[str, Any]:
    """A topic as the request names it: by name, or by id."""
    by_id = getattr(topic, "topic_id", None)
    return {"name": getattr(topic, "name", None) or "", **({} if by_id is None else {"topic_id": by_id})}


async def fetch_offsets(request: GuardedRequest) -> Reply:
    """OffsetFetch: of groups that the client may see, and topics that it may see; of all topics, those."""
    call, body = request.call, request.call.body
    if call.version >= _GROUPS_SINCE:
        return {"groups": [await _fetched(request, group) for group in body.groups]}
    if request.allows(Right.FETCH_OFFSETS, group=body.group_id):
        found = await _offsets_of(request, body.topics, lambda topics: {"topics": topics}, lambda reply: reply)
        return {name: value for name, value in found.items() if name != "group_id"}
    code = GroupAuthorizationError.kafka_code
    if call.version >= _ERROR_SINCE:
        return {"topics": (), "error_code": code}
    return {"topics": [_fetch_refused(topic, code) for topic in body.topics or ()]}


async def _fetched(request: GuardedRequest, group: Any) -> Answer:
    if not request.allows(Right.FETCH_OFFSETS, group=group.group_id):
        return {"group_id": group.group_id, "topics": (), "error_code": GroupAuthorizationError.kafka_code}
    return await _offsets_of(
        request,
        group.topics,
        lambda topics: {"groups": (replace(group, topics=topics),)},
        lambda reply: reply["groups"][0],
    )


async def _offsets_of(request: GuardedRequest, topics: Sequence[Any] | None, narrowed: Any, group_in: Any) -> Answer:
    """The answer about one group."""
    if topics is None:
        reply: Answer = group_in(await request.answer(**narrowed(None)))
        shown = [one for one in reply["topics"] if request.may(Right.FETCH_OFFSETS, topic=one["name"])]
        return {**reply, "topics": shown}
    kept, refused = await _allowed(request, topics, Right.FETCH_OFFSETS)
    reply = group_in(await request.answer(**narrowed(tuple(kept))))
    code = TopicAuthorizationError.kafka_code
    return {**reply, "topics": [*reply["topics"], *(_fetch_refused(topic, code) for topic in refused)]}


def _fetch_refused(topic: Any, code: int) -> Answer:
    partitions = [
        {
            "partition_index": partition,
            "committed_offset": -1,
            "committed_leader_epoch": -1,
            "metadata": "",
            "error_code": code,
        }
        for partition in topic.partition_indexes
    ]
    return {**_named(topic), "partitions": partitions}


async def _allowed(request: GuardedRequest, topics: Sequence[Any], right: Right) -> tuple[list[Any], list[Any]]:
    """(topics that the client may have, those that it may not). One that is not there is for the handler to say."""
    kept: list[Any] = []
    refused: list[Any] = []
    for topic in topics:
        name = await name_of(request, getattr(topic, "name", None), getattr(topic, "topic_id", None))
        (kept if name is None or request.allows(right, topic=name) else refused).append(topic)
    return kept, refused


async def delete_offsets(request: GuardedRequest) -> Reply:
    """OffsetDelete."""
    body = request.call.body
    if not request.allows(Right.DELETE_OFFSETS, group=body.group_id):
        return {"error_code": GroupAuthorizationError.kafka_code, "topics": ()}
    kept, refused = split(body.topics, lambda topic: request.allows(Right.DELETE_OFFSETS, topic=topic.name))
    if not refused:
        return await request.go_on()
    answer: Answer = await request.answer(topics=tuple(kept)) if kept else {"error_code": 0, "topics": ()}
    if answer["error_code"]:
        return answer
    code = TopicAuthorizationError.kafka_code
    return {**answer, "topics": [*answer["topics"], *(_commit_refused(topic, code) for topic in refused)]}
