"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords: each topic of a request succeeds or fails by itself."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from tidelog.broker.admin.creation import TopicWish, create, planned
from tidelog.broker.admin.refusals import InvalidRequestError, RequestTimedOutError
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.context import Context
from tidelog.broker.wire.codec import Answer
from tidelog.log.base.errors import TidelogError

R = TypeVar("R")


class TopicHandlers:
    """Answers what changes topics and their records. Every broker does."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def create(self, call: Call) -> Reply:
        """CreateTopics."""
        body = call.body
        repeated = _repeated(one.name for one in body.topics)
        asked = {one.name: one for one in body.topics}
        answers = [self._create(one, again=one.name in repeated, body=body) for one in asked.values()]
        return {"topics": await asyncio.gather(*answers)}

    async def _create(self, asked: Any, *, again: bool, body: Any) -> Answer:
        context = self._context
        wish = TopicWish(
            asked.name,
            asked.num_partitions,
            asked.replication_factor,
            {one.partition_index: one.broker_ids for one in asked.assignments},
            {one.name: one.value for one in asked.configs},
        )
        try:
            if again:
                raise InvalidRequestError("Duplicate topic name. Name each topic once in a request.")
            if len(wish.assignments) < len(asked.assignments):
                raise InvalidRequestError("A partition is assigned twice. Assign each once.")
            plan = planned(wish, context.cluster(), context.settings.default_replication_factor)
            made = context.blocking(create, context.lake, plan, validate_only=body.validate_only)
            await within(body.timeout, made)
            told: dict[str, Any] = {"error_code": 0, "error_message": None, "topic_id": None}
            config = await context.blocking(context.lake.config)
            told |= {"num_partitions": plan.partitions or config.num_partitions, "replication_factor": plan.factor}
            if not body.validate_only:
                await context.topics.look(asked.name)
                found = await context.topics.get(asked.name)
                if found is not None:  # else it is deleted again
                    told |= {"topic_id": found.id, "num_partitions": found.state.partitions}
        except TidelogError as e:
            told = {"error_code": e.kafka_code, "error_message": str(e), "topic_id": None, "configs": None}
        return {"name": asked.name, **told}


async def within(timeout: timedelta, work: Awaitable[R]) -> R:
    """The result of the work, if it is done in time; it goes on in any case. Raises `RequestTimedOutError`.

    Without a time above 0 there is no limit.
    """
    seconds = timeout.total_seconds()
    task = asyncio.ensure_future(work)
    if seconds <= 0:
        return await task
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        raise RequestTimedOutError(f"Not done within the request's {seconds:g} s; it goes on. Look again later.")
    return task.result()


def outcome(error: TidelogError | None) -> Mapping[str, Any]:
    """The fields of an answer that say how it went."""
    return (
        {"error_code": 0, "error_message": None}
        if error is None
        else {
            "error_code": error.kafka_code,
            "error_message": str(error),
        }
    )


def _repeated(names: Iterable[Any]) -> set[Any]:
    return {name for name, times in Counter(names).items() if times > 1}
