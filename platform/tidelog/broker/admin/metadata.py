"""Metadata: the brokers, and the topics with those that lead them. Topics that are asked for may be created by it."""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any
from uuid import UUID

from tidelog.access.model import AclResource
from tidelog.broker.admin.creation import create_on_the_way
from tidelog.broker.admin.topic_facts import (
    Placement,
    TopicFacts,
    describable,
    find,
    find_describable,
    placement,
    survey,
)
from tidelog.broker.base.access import NOT_ASKED, cluster_operations, operations
from tidelog.broker.base.calls import Call, Encoded, Reply
from tidelog.broker.base.cluster_view import ClusterView, rack_of
from tidelog.broker.base.context import Context
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.errors import (
    LEADER_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    InvalidRequestError,
)
from tidelog.broker.wire.messages import Answer, encode
from tidelog.log.base.errors import TidelogError, TopicExistsError
from tidelog.operations.rights import Right
from tidelog.server.base.blocking import AT_ONCE, here, in_turns

# An answer about more partitions than this is encoded beside the loop, and kept.
_DEAR = 64
# The number of answers that are kept; the oldest ones go.
_KEPT = 16
# The most topics of an answer that is kept: one that names more is not asked for again and again.
_MOST_KEPT = 10_000
_THROTTLED_SINCE = 3


class MetadataHandler:
    """Answers Metadata. It keeps large answers for as long as what they say stays as it is."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()

    async def __call__(self, call: Call) -> Reply:
        """Answer one request."""
        context, body = self._context, call.body
        try:
            topics = await self._wanted(call)
        except InvalidRequestError as e:
            topics = [TopicFacts(one.name, _id(one), error=e.kafka_code) for one in body.topics]
        view, listener, rack = context.cluster(), call.peer.listener, rack_of(call.client_id)
        told_topics = getattr(body, "include_topic_authorized_operations", False)
        told_cluster = getattr(body, "include_cluster_authorized_operations", False)
        allowed = [NOT_ASKED] * len(topics)
        if told_topics:
            allowed = [self._operations(call, topic) async for topic in in_turns(topics)]
        of_cluster = cluster_operations(context.access, call.peer) if told_cluster else NOT_ASKED
        make = partial(
            metadata_answer,
            call.version,
            view,
            listener,
            topics,
            context.settings.default_replication_factor,
            rack=rack,
            topic_operations=allowed,
            cluster_operations=of_cluster,
        )
        is_dear = sum(topic.partitions for topic in topics) > _DEAR
        if not is_dear and len(topics) <= AT_ONCE:
            return make()
        if not is_dear or len(topics) > _MOST_KEPT:
            return await context.blocking(make)
        cluster = (view.cluster_id, view.epoch, tuple(view.listed(listener)))
        key = (call.version, *cluster, rack, tuple(topics), tuple(allowed), of_cluster)
        if key not in self._kept:
            self._kept[key] = await context.blocking(lambda: encode(ApiKey.METADATA, call.version, make()))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return Encoded([self._kept[key]], throttle_at=0 if call.version >= _THROTTLED_SINCE else -1)

    def _operations(self, call: Call, topic: TopicFacts) -> int:
        if topic.error or topic.name is None:
            return NOT_ASKED
        return operations(self._context.access, call.peer, AclResource.TOPIC, topic.name)

    async def _wanted(self, call: Call) -> Sequence[TopicFacts]:
        named = len(call.body.topics or ())
        asked = await (here if named <= AT_ONCE else self._context.blocking)(asked_for, call.body, call.version)
        if asked is None:
            every = await self._context.blocking(survey, self._context.lake)
            return describable(self._context.access, call.peer, every)
        # What a client of the oldest versions asks for, it wants to have.
        creates = call.version < 4 or call.body.allow_auto_topic_creation
        topics: list[TopicFacts] = []
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            topics += await asyncio.gather(*(self._find(call, one, creates=creates) for one in some))
        return topics

    async def _find(self, call: Call, wanted: str | UUID, *, creates: bool) -> TopicFacts:
        facts = await find_describable(self._context, call, wanted)
        if isinstance(wanted, UUID) or facts.error != UNKNOWN_TOPIC_OR_PARTITION or not creates:
            return facts
        if not self._context.access.allows(call, Right.CREATE_TOPIC, topic=wanted):
            return TopicFacts(wanted, error=TOPIC_AUTHORIZATION_FAILED)
        try:
            if not await self._create(wanted):
                return facts
        except TidelogError as e:
            return TopicFacts(wanted, error=e.kafka_code)
        await self._context.topics.look(wanted)
        created = await find(self._context, wanted)
        call.allowance.change_partitions(created.partitions)
        return created

    async def _create(self, name: str) -> bool:
        context = self._context
        try:
            return await context.blocking(
                create_on_the_way, context.lake, name, context.cluster(), context.settings.default_replication_factor
            )
        except TopicExistsError:  # another request, or another process, was sooner
            return True


def asked_for(body: Any, version: int) -> Sequence[str | UUID] | None:
    """The names and ids that a request asks for, each once; None: all topics. Raises `InvalidRequestError`."""
    if body.topics is None or (version == 0 and not body.topics):
        return None
    if version < 12:
        for topic in body.topics:
            if topic.name is None:
                raise InvalidRequestError(f"Topic name can not be null for version {version}")
            if _id(topic) is not None:
                raise InvalidRequestError(f"Topic IDs are not supported in requests for version {version}")
    ids = [_id(one) for one in body.topics]
    # A request by id is about ids only, as Kafka takes it.
    wanted: Iterable[str | UUID | None] = ids if any(ids) else [one.name for one in body.topics]
    return list(dict.fromkeys(one for one in wanted if one is not None))


def metadata_answer(
    version: int,
    view: ClusterView,
    listener: str,
    topics: Sequence[TopicFacts],
    default_factor: int,
    *,
    rack: str | None = None,
    topic_operations: Sequence[int] = (),
    cluster_operations: int = NOT_ASKED,
) -> Answer:
    """The answer of a version about these topics, for clients of a listener.

    `topic_operations`: what the client may do to each of them, where it asks for that.
    """

    def told(topic: TopicFacts, allowed: int) -> Answer:
        fields: dict[str, Any] = {
            "error_code": topic.error,
            # only newer versions can say that a topic has no name that is known
            "name": "" if topic.name is None and version < 12 else topic.name,
            "topic_id": topic.id,
            "is_internal": topic.is_internal,
            "partitions": (),
        }
        if not topic.error:
            places = (
                placement(view, topic, number, default_factor, listener, rack) for number in range(topic.partitions)
            )
            fields["partitions"] = [_for_version(version, place).fields() for place in places]
            fields["topic_authorized_operations"] = allowed
        return fields

    return {
        "brokers": [
            {"node_id": one.id, "host": one.host, "port": one.port, "rack": one.rack} for one in view.listed(listener)
        ],
        "cluster_id": view.cluster_id,
        "controller_id": view.controller.id,
        "topics": [told(*pair) for pair in zip(topics, topic_operations or repeat(NOT_ASKED), strict=False)],
        "cluster_authorized_operations": cluster_operations,
    }


def _for_version(version: int, place: Placement) -> Placement:
    """Clients of old versions don't know that a listener may be missing."""
    return replace(place, error=LEADER_NOT_AVAILABLE) if place.error and version < 6 else place


def _id(topic: Any) -> UUID | None:
    found: UUID | None = getattr(topic, "topic_id", None)
    return found
