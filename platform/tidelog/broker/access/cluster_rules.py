"""Which principals may describe and change the cluster, its configurations, and access itself."""

from typing import Any, Final

from tidelog.access.model import CLUSTER_NAME, AclOperation, AclResource
from tidelog.broker.access.asking import GuardedRequest, OneResource, result
from tidelog.broker.base.calls import Call, Encoded, Reply
from tidelog.broker.wire.codec import Answer
from tidelog.broker.wire.hand_over import Fate, HandedOverAnswer, encode_answer
from tidelog.log.base.errors import TidelogError

_CLUSTER: Final = AclResource.CLUSTER


def cluster(operation: AclOperation, *lists: str, text: bool = True) -> OneResource:
    """A rule about the cluster. `lists`: what is empty in a refusal; `text`: it has a message."""

    def refused(call: Call, error: TidelogError) -> Answer:  # noqa: ARG001 - the same in all versions
        told = result(error) if text else {"error_code": error.kafka_code}
        return {**told, **dict.fromkeys(lists, ())}

    return OneResource(operation, _CLUSTER, refused)


def _election_refused(call: Call, error: TidelogError) -> Answer:
    def partitions(topic: Any) -> Answer:
        return {
            "topic": topic.topic,
            "partition_result": [{"partition_id": partition, **result(error)} for partition in topic.partitions],
        }

    named = [partitions(topic) for topic in call.body.topic_partitions or ()]
    return {"error_code": error.kafka_code, "replica_election_results": named}


ELECT_LEADERS: Final = OneResource(AclOperation.ALTER, _CLUSTER, _election_refused)


# --- coordinators ------------------------------------------------------------------------------------------

# What a key of FindCoordinator names, by its type.
_KEYS: Final = {0: AclResource.GROUP, 1: AclResource.TRANSACTIONAL_ID}
_KEYS_SINCE: Final = 4


async def find_coordinator(request: GuardedRequest) -> Reply:
    """FindCoordinator: of groups and transactional ids that the client may see."""
    body = request.call.body
    resource = _KEYS.get(getattr(body, "key_type", 0))
    if resource is None:  # the handler says that there is none
        return await request.go_on()

    def refused(key: str) -> Answer:
        return {"node_id": -1, "host": "", "port": -1, **result(request.denial(AclOperation.DESCRIBE, resource, key))}

    if request.call.version < _KEYS_SINCE:
        if request.allows(AclOperation.DESCRIBE, resource, body.key):
            return await request.go_on()
        return refused(body.key)
    denied = {key for key in body.coordinator_keys if not request.allows(AclOperation.DESCRIBE, resource, key)}
    found: Answer = {"coordinators": ()}
    if len(denied) < len(set(body.coordinator_keys)):
        found = await request.answer(coordinator_keys=tuple(key for key in body.coordinator_keys if key not in denied))
    return {"coordinators": [*found["coordinators"], *({"key": key, **refused(key)} for key in sorted(denied))]}


# --- configurations ----------------------------------------------------------------------------------------

# Whose configuration it is, by Kafka's `ConfigResource.Type`; of all others it is the cluster's.
_OWNERS: Final = {2: AclResource.TOPIC, 32: AclResource.GROUP}


class Configurations:
    """Configurations of topics and groups are theirs, all others the cluster's."""

    def __init__(self, operation: AclOperation, answered: str) -> None:
        self._operation = operation
        self._answered = answered

    async def __call__(self, request: GuardedRequest) -> Reply:
        """Go on with those that are allowed."""
        kept: list[Any] = []
        refused: list[Answer] = []
        for one in request.call.body.resources:
            resource = _OWNERS.get(one.resource_type, _CLUSTER)
            name = CLUSTER_NAME if resource is _CLUSTER else one.resource_name
            if request.allows(self._operation, resource, name):
                kept.append(one)
                continue
            named = {"resource_type": one.resource_type, "resource_name": one.resource_name}
            refused.append({**named, **result(request.denial(self._operation, resource, name))})
        if not refused:
            return await request.go_on()
        found: Answer = await request.answer(resources=tuple(kept)) if kept else {self._answered: ()}
        if self._answered == "results":  # with a list of what a configuration is
            refused = [{**one, "configs": ()} for one in refused]
        return {**found, self._answered: [*found[self._answered], *refused]}


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


CREATE_ACLS: Final = OneResource(AclOperation.ALTER, _CLUSTER, _creations_refused)
DELETE_ACLS: Final = OneResource(AclOperation.ALTER, _CLUSTER, _filters_refused)
DESCRIBE_QUOTAS: Final = OneResource(AclOperation.DESCRIBE_CONFIGS, _CLUSTER, _quotas_hidden)
ALTER_QUOTAS: Final = OneResource(AclOperation.ALTER_CONFIGS, _CLUSTER, _quotas_refused)
ALTER_USERS: Final = OneResource(AclOperation.ALTER, _CLUSTER, _users_refused)


async def hand_over(request: GuardedRequest) -> Reply:
    """What one broker asks another one: for brokers only."""
    settings = request.context.settings
    listener = settings.listeners.get(request.call.peer.listener)
    # Brokers without credentials ask each other by that listener alone.
    is_theirs = request.call.peer.listener == settings.brokers_listener
    if is_theirs and listener is not None and not listener.authenticates:
        return await request.go_on()
    if request.allows(AclOperation.CLUSTER_ACTION, _CLUSTER):
        return await request.go_on()
    return Encoded([encode_answer(HandedOverAnswer(Fate.REFUSED, {}, 0.0, "this is for brokers of the cluster only"))])
