"""Which principals may describe and change the cluster, its configurations, and access itself."""

from typing import Any, Final

from tidelog.broker.access.authorization import GuardedRequest, OneResource, result
from tidelog.broker.base.calls import Call, Encoded, Reply
from tidelog.broker.wire.hand_over import HandedOverAnswer, encode_answer
from tidelog.broker.wire.messages import Answer
from tidelog.log.base.errors import TidelogError
from tidelog.log.rules.appends import CommitOutcome
from tidelog.operations.rights import Right


def cluster(right: Right, *lists: str, text: bool = True) -> OneResource:
    """A rule about the cluster. `lists`: what is empty in a refusal; `text`: it has a message."""

    def refused(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
        told = result(error) if text else {"error_code": error.kafka_code}
        return {**told, **dict.fromkeys(lists, ())}

    return OneResource(right, refused)


def _election_refused(call: Call, error: TidelogError) -> Answer:
    def partitions(topic: Any) -> Answer:
        return {
            "topic": topic.topic,
            "partition_result": [{"partition_id": partition, **result(error)} for partition in topic.partitions],
        }

    named = [partitions(topic) for topic in call.body.topic_partitions or ()]
    return {"error_code": error.kafka_code, "replica_election_results": named}


ELECT_LEADERS: Final = OneResource(Right.ALTER_CLUSTER, _election_refused)


# --- coordinators ------------------------------------------------------------------------------------------

# What a key of FindCoordinator names, by its type.
_KEYS: Final = {0: "group", 1: "transactional_id"}
_KEYS_SINCE: Final = 4


async def find_coordinator(request: GuardedRequest) -> Reply:
    """FindCoordinator: of groups and transactional ids that the client may see."""
    body = request.call.body
    argument = _KEYS.get(getattr(body, "key_type", 0))
    if argument is None:  # the handler says that there is none
        return await request.go_on()

    def allows(key: str) -> bool:
        return request.allows(Right.FIND_COORDINATOR, **{argument: key})

    def refused(key: str) -> Answer:
        why = request.denial(Right.FIND_COORDINATOR, **{argument: key})
        return {"node_id": -1, "host": "", "port": -1, **result(why)}

    if request.call.version < _KEYS_SINCE:
        if allows(body.key):
            return await request.go_on()
        return refused(body.key)
    denied = {key for key in body.coordinator_keys if not allows(key)}
    answer: Answer = {"coordinators": ()}
    if len(denied) < len(set(body.coordinator_keys)):
        answer = await request.answer(coordinator_keys=tuple(key for key in body.coordinator_keys if key not in denied))
    return {"coordinators": [*answer["coordinators"], *({"key": key, **refused(key)} for key in sorted(denied))]}


# --- configurations ----------------------------------------------------------------------------------------

# Whose configuration it is, by Kafka's `ConfigResource.Type`; of all others it is the cluster's.
_OWNERS: Final = {2: "topic", 32: "group"}


class Configurations:
    """Configurations of topics and groups are theirs, all others the cluster's."""

    def __init__(self, right: Right, answered: str) -> None:
        self._right = right
        self._answered = answered

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on with those that are allowed."""
        kept: list[Any] = []
        refused: list[Answer] = []
        for resource in request.call.body.resources:
            owner = _OWNERS.get(resource.resource_type)
            whose = {} if owner is None else {owner: resource.resource_name}
            if request.allows(self._right, **whose):
                kept.append(resource)
                continue
            named = {"resource_type": resource.resource_type, "resource_name": resource.resource_name}
            refused.append({**named, **result(request.denial(self._right, **whose))})
        if not refused:
            return await request.go_on()
        answer: Answer = await request.answer(resources=tuple(kept)) if kept else {self._answered: ()}
        if self._answered == "results":  # with a list of what a configuration is
            refused = [{**one, "configs": ()} for one in refused]
        return {**answer, self._answered: [*answer[self._answered], *refused]}


# --- access ------------------------------------------------------------------------------------------------


def _creations_refused(call: Call, error: TidelogError) -> Answer:
    return {"results": [result(error) for _ in call.body.creations]}


def _filters_refused(call: Call, error: TidelogError) -> Answer:
    return {"filter_results": [{**result(error), "matching_acls": ()} for _ in call.body.filters]}


def _quotas_refused(call: Call, error: TidelogError) -> Answer:
    def refused(entry: Any) -> Answer:
        entity = [{"entity_type": one.entity_type, "entity_name": one.entity_name} for one in entry.entity]
        return {**result(error), "entity": entity}

    return {"entries": [refused(entry) for entry in call.body.entries]}


def _users_refused(call: Call, error: TidelogError) -> Answer:
    body = call.body
    users = dict.fromkeys(one.name for one in (*body.deletions, *body.upsertions))
    return {"results": [{"user": user, **result(error)} for user in users]}


def _quotas_hidden(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
    return {**result(error), "entries": None}


CREATE_ACLS: Final = OneResource(Right.ALTER_ACLS, _creations_refused)
DELETE_ACLS: Final = OneResource(Right.ALTER_ACLS, _filters_refused)
DESCRIBE_QUOTAS: Final = OneResource(Right.DESCRIBE_QUOTAS, _quotas_hidden)
ALTER_QUOTAS: Final = OneResource(Right.ALTER_QUOTAS, _quotas_refused)
ALTER_USERS: Final = OneResource(Right.ALTER_USERS, _users_refused)


async def hand_over(request: GuardedRequest) -> Reply:
    """What one broker asks another one: for brokers only."""
    settings = request.context.settings
    listener = settings.listeners.get(request.call.peer.listener)
    # Brokers without credentials ask each other by that listener alone.
    is_theirs = request.call.peer.listener == settings.brokers_listener
    if is_theirs and listener is not None and not listener.authenticates:
        return await request.go_on()
    if request.allows(Right.ACT_AS_BROKER):
        return await request.go_on()
    return Encoded(
        [encode_answer(HandedOverAnswer(CommitOutcome.REFUSED, {}, 0.0, "this is for brokers of the cluster only"))]
    )
