"""What principals may do to topics. Produce, Fetch, Metadata and DescribeTopicPartitions ask in their handlers."""

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from tidelog.broker.access.authorization import EachResource, GuardedRequest, result
from tidelog.broker.base.calls import Reply
from tidelog.broker.wire.errors import TOPIC_AUTHORIZATION_FAILED, UnknownTopicIdError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.operations.rights import Right

_NAMED_SINCE: Final = 6  # DeleteTopics by id


def _name(topic: Any) -> str:
    return str(topic.name)


def _offsets_refused(topic: Any, error: TidelogError) -> Answer:
    partitions = [
        {
            "partition_index": p.partition_index,
            "error_code": error.kafka_code,
            "timestamp": -1,
            "offset": -1,
            "leader_epoch": -1,
        }
        for p in topic.partitions
    ]
    return {"name": topic.name, "partitions": partitions}


def _epochs_refused(topic: Any, error: TidelogError) -> Answer:
    partitions = [
        {"partition": p.partition, "error_code": error.kafka_code, "leader_epoch": -1, "end_offset": -1}
        for p in topic.partitions
    ]
    return {"topic": topic.topic, "partitions": partitions}


def _records_refused(topic: Any, error: TidelogError) -> Answer:
    partitions = [
        {"partition_index": p.partition_index, "error_code": error.kafka_code, "low_watermark": -1}
        for p in topic.partitions
    ]
    return {"name": topic.name, "partitions": partitions}


def _growth_refused(topic: Any, error: TidelogError) -> Answer:
    return {"name": topic.name, "error_code": error.kafka_code, "error_message": str(error)}


def _creation_refused(topic: Any, error: TidelogError) -> Answer:
    return {**_growth_refused(topic, error), "topic_id": None, "configs": None}


def _producers_refused(topic: Any, error: TidelogError) -> Answer:
    partitions = [
        {
            "partition_index": partition,
            "error_code": error.kafka_code,
            "error_message": str(error),
            "active_producers": (),
        }
        for partition in topic.partition_indexes
    ]
    return {"name": topic.name, "partitions": partitions}


LIST_OFFSETS: Final = EachResource(Right.DESCRIBE_TOPIC, "topics", "topics", _name, _offsets_refused)
OFFSET_FOR_LEADER_EPOCH: Final = EachResource(
    Right.DESCRIBE_TOPIC, "topics", "topics", lambda topic: str(topic.topic), _epochs_refused
)
DELETE_RECORDS: Final = EachResource(Right.DELETE_RECORDS, "topics", "topics", _name, _records_refused)
CREATE_PARTITIONS: Final = EachResource(Right.ADD_PARTITIONS, "topics", "results", _name, _growth_refused)
DESCRIBE_PRODUCERS: Final = EachResource(Right.DESCRIBE_PRODUCERS, "topics", "topics", _name, _producers_refused)
_CREATE: Final = EachResource(Right.CREATE_TOPIC, "topics", "topics", _name, _creation_refused)


async def create_topics(request: GuardedRequest) -> Reply:
    """CreateTopics: by a right to create any topic, or this one. Its configuration, by a right to describe that."""
    reply = await _CREATE(request)
    assert isinstance(reply, dict)

    def told(topic: Answer) -> Answer:
        if topic["error_code"] or request.may(Right.DESCRIBE_CONFIG, topic=topic["name"]):
            return topic
        hidden = {"num_partitions": -1, "replication_factor": -1, "configs": None}
        return {**topic, **hidden, "topic_config_error_code": TOPIC_AUTHORIZATION_FAILED}

    return {**reply, "topics": [told(topic) for topic in reply["topics"]]}


async def delete_topics(request: GuardedRequest) -> Reply:
    """DeleteTopics, by names or ids. A topic's name is for those that may describe the topic."""
    body = request.call.body
    if request.may_everywhere(Right.DELETE_TOPIC):
        return await request.go_on()
    by_names = request.call.version < _NAMED_SINCE
    kept: list[Any] = []
    refused: list[Answer] = []
    for topic in body.topic_names if by_names else body.topics:
        name, topic_id = (topic, None) if by_names else (topic.name, topic.topic_id)
        topic_name = await name_of(request, name, topic_id)
        if topic_name is None and topic_id is not None:  # the handler might find it after all, and would not ask
            missing = UnknownTopicIdError(f"There is no topic of the id {topic_id}.")
            refused.append({"name": None, "topic_id": topic_id, **result(missing)})
            continue
        if topic_name is None or request.allows(Right.DELETE_TOPIC, topic=topic_name):
            kept.append(topic)
            continue
        if name is None and request.may(Right.DESCRIBE_TOPIC, topic=topic_name):
            name = topic_name
        why = request.denial(Right.DELETE_TOPIC, topic=name or str(topic_id))
        refused.append({"name": name, "topic_id": topic_id, **result(why)})
    if not refused:
        return await request.go_on()
    responses: Iterable[Answer] = ()
    if kept:
        answer = await request.answer(**{"topic_names" if by_names else "topics": tuple(kept)})
        responses = answer["responses"]
    return {"responses": [*responses, *refused]}


async def name_of(request: GuardedRequest, name: str | None, topic_id: UUID | None) -> str | None:
    """The name that a topic of a request has, where it is there; what it is named by, if that is a name."""
    if name is not None or topic_id is None:
        return name
    found = await request.context.topics.by_id(topic_id)
    return None if found is None else found.name
