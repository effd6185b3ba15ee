"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords: each topic of a request succeeds or fails by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from tidelog.broker.admin.config_keys import key_fields
from tidelog.broker.admin.creation import TopicWish, assigned_factor, create, planned
from tidelog.broker.admin.refusals import InvalidReplicaAssignmentError, RequestTimedOutError, repeated, result
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.wire.errors import InvalidRequestError, TopicDeletionDisabledError, UnknownTopicIdError
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.lake import Lake
from tidelog.operations.topics import add_partitions, delete_records

R = TypeVar("R")

# The log start offset of a partition whose records could not be deleted.
_NO_OFFSET = -1


class TopicHandlers:
    """Answers what changes topics and their records. Every broker does."""

    def __init__(self, context: Context) -> None:
        self._context = context

    # --- CreateTopics --------------------------------------------------------------------------------------

    async def create(self, call: Call) -> Reply:
        """CreateTopics."""
        answers = await _each_once(call, self._create)
        return {"topics": [{"topic_id": None, "configs": None, **answer} for answer in answers]}

    async def _create(self, asked: Any, call: Call) -> Answer:
        context, body = self._context, call.body
        plan = planned(wish_of(asked), context.cluster(), context.settings.default_replication_factor)
        if call.allowance.limits_partitions:
            default = 0 if plan.partitions else (await context.blocking(context.lake.config)).num_partitions
            call.allowance.change_partitions(plan.partitions or default)
        made = context.blocking(create, context.lake, plan, validate_only=body.validate_only)
        await within(body.timeout, made)
        told = await context.blocking(_as_created, context.lake, plan.partitions, plan.config)
        told["replication_factor"] = plan.factor
        if not body.validate_only:
            await context.topics.look(asked.name)
            found = await context.topics.get(asked.name)
            if found is not None:  # else it is deleted again
                told |= {"topic_id": found.id, "num_partitions": found.state.partitions}
        return told

    # --- DeleteTopics --------------------------------------------------------------------------------------

    async def delete(self, call: Call) -> Reply:
        """DeleteTopics."""
        body = call.body
        if call.version < 6:
            wanted: list[tuple[str | None, UUID | None]] = [(name, None) for name in body.topic_names]
        else:
            wanted = [(one.name, one.topic_id) for one in body.topics]
        twice = repeated(wanted)
        answers = [self._delete(*one, call, again=one in twice) for one in dict.fromkeys(wanted)]
        return {"responses": await asyncio.gather(*answers)}

    async def _delete(self, name: str | None, topic_id: UUID | None, call: Call, *, again: bool) -> Answer:
        context = self._context
        try:
            if again:
                raise InvalidRequestError("Duplicate topic name or id. Name each topic once in a request.")
            if (name is None) == (topic_id is None):
                what = "Neither topic name nor id were specified." if name is None else "Both were specified."
                raise InvalidRequestError(f"{what} Give one of topic name and topic id.")
            if not context.settings.deletes_topics:
                raise TopicDeletionDisabledError(
                    "Topic deletion is disabled: delete.topic.enable of this broker is false."
                )
            if topic_id is not None:
                name = (await context.topics.find(topic_id)).name
            assert name is not None
            found = await context.topics.get(name) if call.allowance.limits_partitions else None
            if found is not None:
                call.allowance.change_partitions(found.state.partitions)
            deleted = context.blocking(context.lake.delete_topic, name, None if topic_id is None else str(topic_id))
            try:
                await within(call.body.timeout, deleted)
            except (UnknownTopicError, TopicChangedError) as e:
                raise e if topic_id is None else UnknownTopicIdError(str(e)) from e
            finally:
                await context.topics.look(name)
            return {"name": name, "topic_id": topic_id, **result()}
        except TidelogError as e:
            return {"name": name, "topic_id": topic_id, **result(e)}

    # --- CreatePartitions ----------------------------------------------------------------------------------

    async def create_partitions(self, call: Call) -> Reply:
        """CreatePartitions."""
        return {"results": await _each_once(call, self._grow)}

    async def _grow(self, asked: Any, call: Call) -> Answer:
        context, body = self._context, call.body
        found = await context.topics.get(asked.name) if call.allowance.limits_partitions else None
        if found is not None and asked.count > found.state.partitions:
            call.allowance.change_partitions(asked.count - found.state.partitions)
        assignments = None if asked.assignments is None else [one.broker_ids for one in asked.assignments]
        grown = context.blocking(
            grow,
            context.lake,
            asked.name,
            asked.count,
            assignments,
            context.cluster(),
            validate_only=body.validate_only,
        )
        await within(body.timeout, grown)
        await context.topics.look(asked.name)
        return {}

    # --- DeleteRecords -------------------------------------------------------------------------------------

    async def delete_records(self, call: Call) -> Reply:
        """DeleteRecords."""
        wanted: dict[str, dict[int, int]] = {}
        for topic in call.body.topics:
            wanted.setdefault(topic.name, {}).update({p.partition_index: p.offset for p in topic.partitions})
        answers = [self._delete_records(name, before, call.body.timeout) for name, before in wanted.items()]
        return {"topics": await asyncio.gather(*answers)}

    async def _delete_records(self, name: str, before: Mapping[int, int], timeout: timedelta) -> Answer:
        context = self._context
        try:
            starts = await within(timeout, context.blocking(delete_records, context.lake, name, before))
            context.topics.committed(name, before)
        except TidelogError as e:
            starts = dict.fromkeys(before, e)

        def told(partition: int) -> Answer:
            start = starts[partition]
            if isinstance(start, TidelogError):
                code = start.kafka_code
                return {"partition_index": partition, "low_watermark": _NO_OFFSET, "error_code": code}
            return {"partition_index": partition, "low_watermark": start, "error_code": 0}

        return {"name": name, "partitions": [told(partition) for partition in before]}


async def _each_once(call: Call, change: Callable[[Any, Call], Awaitable[Answer]]) -> list[Answer]:
    """What became of each topic that a request names, all at once; one that it names twice is refused."""
    topics = call.body.topics
    twice = repeated(one.name for one in topics)

    async def changed(topic: Any) -> Answer:
        try:
            if topic.name in twice:
                raise InvalidRequestError("Duplicate topic name. Name each topic once in a request.")
            return {"name": topic.name, **result(), **await change(topic, call)}
        except TidelogError as e:
            return {"name": topic.name, **result(e)}

    return await asyncio.gather(*map(changed, {one.name: one for one in topics}.values()))


def wish_of(asked: Any) -> TopicWish:
    """What a topic of a CreateTopics request wants. Raises `InvalidReplicaAssignmentError`."""
    assignments = {one.partition_index: one.broker_ids for one in asked.assignments}
    if len(assignments) < len(asked.assignments):
        raise InvalidReplicaAssignmentError("A partition is assigned twice. Assign each once.")
    config = {one.name: one.value for one in asked.configs}
    return TopicWish(asked.name, asked.num_partitions, asked.replication_factor, assignments, config)


def grow(
    lake: Lake,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    view: ClusterView,
    *,
    validate_only: bool,
) -> None:
    """Give a topic more partitions, or only check that it could get them. Raises as `Lake.alter_topic` does.

    `count`: of all that it has then. `assignments`: the replicas of each new partition, checked as those of a new
    topic.
    """
    if assignments is not None:
        state = lake.peek(name)
        first = 0 if state is None else state.partitions
        if state is not None and len(assignments) != count - first:
            raise InvalidReplicaAssignmentError(
                f"Increasing the number of partitions by {count - first} but {len(assignments)}"
                " assignments provided. Give one for each new partition, or none."
            )
        if assignments:
            assigned_factor(dict(enumerate(assignments, first)), view, first)
    add_partitions(lake, name, count, validate_only=validate_only)


async def within(timeout: timedelta, work: Awaitable[R]) -> R:
    """The result of the work, if it is done in time; it goes on in any case. Raises `RequestTimedOutError`.

    Without a time above 0 there is no limit.
    """
    seconds = timeout.total_seconds()
    if seconds <= 0:
        return await work
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        raise RequestTimedOutError(f"Not done within the request's {seconds:g} s; it goes on. Look again later.")
    return task.result()


def _as_created(lake: Lake, partitions: int | None, config: Mapping[str, str]) -> dict[str, Any]:
    """A new topic's number of partitions, and its configuration in force."""
    defaults = lake.config()
    keys = TopicConfig.parse(config, defaults=defaults).describe()
    return {
        "num_partitions": defaults.num_partitions if partitions is None else partitions,
        "configs": [key_fields(key) for key in keys],
    }
