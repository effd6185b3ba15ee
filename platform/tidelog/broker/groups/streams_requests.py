"""What a StreamsGroupHeartbeat says, checked by itself. Source: `GroupCoordinatorService`, `KafkaApis` (kafka 4.2)."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from tidelog.broker.base.calls import Call
from tidelog.broker.groups.errors import InvalidHeartbeatError
from tidelog.groups.rules.streams.configuring import MOST_TASKS
from tidelog.groups.rules.streams.heartbeat import JOINS, LEAVES, StreamsHeartbeat
from tidelog.groups.topology import InnerTopic, StreamsTask, StreamsTopology, Subtopology, Tasks
from tidelog.log.base.errors import InvalidTopicError, InvalidTopologyError
from tidelog.log.rules import names

_MS: Final = timedelta(milliseconds=1)
# The most of each that a group's rows hold. Topics that are copartitioned are counted as often as they are named, and
# of configurations of topics the keys, and the characters of keys and values.
MOST_SUBTOPOLOGIES: Final = 1_000
MOST_TOPICS: Final = 5_000
MOST_CONFIGS: Final = 50_000
MOST_CHARACTERS: Final = 1_000_000
MOST_TAGS: Final = 64
# The longest text that a member says of itself, in characters, and the longest id of a subtopology.
LONGEST_TEXT: Final = 1_024
LONGEST_ID: Final = names.MAX_NAME_LENGTH


def heartbeat_of(call: Call) -> StreamsHeartbeat:
    """The heartbeat of a request. Raises `InvalidHeartbeatError`, `InvalidTopologyError`."""
    body = call.body
    problem = _problem(body)
    if problem is not None:
        raise InvalidHeartbeatError(problem)
    rebalance_ms = body.rebalance_timeout // _MS
    endpoint, tags = body.user_endpoint, body.client_tags
    lists = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    owned = None if None in lists else Tasks(*map(_tasks, lists))
    return StreamsHeartbeat(
        group_id=body.group_id,
        member_id=body.member_id,
        epoch=body.member_epoch,
        client_id=call.client_id or "",
        host=f"/{call.peer.host}",
        rack=body.rack_id,
        rebalance_timeout_ms=None if rebalance_ms < 0 else rebalance_ms,
        process_id=body.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=None if tags is None else tuple(sorted({one.key: one.value for one in tags}.items())),
        topology=None if body.topology is None else _topology(body.topology),
        owned=owned,
        shuts_down=body.shutdown_application,
    )


def _problem(body: Any) -> str | None:
    """What is wrong with a request by itself. Source: `throwIfStreamsGroupHeartbeatRequestIsInvalid`."""
    empty = {
        "MemberId": body.member_id,
        "GroupId": body.group_id,
        "InstanceId": body.instance_id,
        "RackId": body.rack_id,
    }
    for name, text in empty.items():
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    if body.instance_id is not None:
        return "Static members are not supported yet: leave `group.instance.id` out."
    if body.member_epoch < LEAVES:
        return f"MemberEpoch is {body.member_epoch}, but must be greater than or equal to -1."
    long = _too_long(body)
    if long is not None:
        return f"{long} has more than {LONGEST_TEXT} characters."
    if len(body.client_tags or ()) > MOST_TAGS:
        return f"A member has at most {MOST_TAGS} client tags."
    owned = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
    if sum(len(one.partitions) for tasks in owned for one in tasks or ()) > MOST_TASKS:
        return f"A member has at most {MOST_TASKS} tasks."
    if body.member_epoch != JOINS:
        return None if body.topology is None else "Topology can only be provided when (re-)joining."
    if body.rebalance_timeout // _MS == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    for name, tasks in zip(("ActiveTasks", "StandbyTasks", "WarmupTasks"), owned, strict=True):
        if tasks:
            return f"{name} must be empty when (re-)joining."
    return "Topology must be non-null when (re-)joining." if body.topology is None else None


def _too_long(body: Any) -> str | None:
    """The name of a text that a member says of itself, and that is too long."""
    texts = [("MemberId", body.member_id), ("RackId", body.rack_id), ("ProcessId", body.process_id)]
    if body.user_endpoint is not None:
        texts.append(("UserEndpoint.Host", body.user_endpoint.host))
    for tag in body.client_tags or ():
        texts += [("A key of ClientTags", tag.key), ("A value of ClientTags", tag.value)]
    return next((name for name, text in texts if text is not None and len(text) > LONGEST_TEXT), None)


def _tasks(listed: Iterable[Any]) -> frozenset[StreamsTask]:
    return frozenset(StreamsTask(one.subtopology_id, number) for one in listed for number in one.partitions)


def _topology(asked: Any) -> StreamsTopology:
    """A request's topology, its parts in one order. Raises `InvalidHeartbeatError`, `InvalidTopologyError`."""
    large = _too_large(asked.subtopologies)
    if large is not None:
        raise InvalidTopologyError(large)
    parts = tuple(sorted(map(_subtopology, asked.subtopologies)))
    if len({part.name for part in parts}) < len(parts):
        raise InvalidTopologyError("A topology has no two subtopologies of one id.")
    topology = StreamsTopology(asked.epoch, parts)
    sinks = {name for part in parts for name in part.repartition_sinks}
    for name in sorted(topology.required | sinks):
        try:
            names.validate(name)
        except InvalidTopicError as e:
            raise InvalidTopologyError(f"Topic names {name[:249]} are not valid topic names. {e}") from e
        if names.is_internal(name):
            raise InvalidTopologyError(f"Use of Kafka internal topics {name} in a topology is prohibited.")
    return topology


def _too_large(parts: Sequence[Any]) -> str | None:
    """What a topology has too many of. It is counted before anything is made of it."""
    if len(parts) > MOST_SUBTOPOLOGIES:
        return f"A topology has at most {MOST_SUBTOPOLOGIES} subtopologies."
    if any(len(part.subtopology_id) > LONGEST_ID for part in parts):
        return f"The id of a subtopology has at most {LONGEST_ID} characters."
    inner = [topic for part in parts for topic in (*part.repartition_source_topics, *part.state_changelog_topics)]
    if len(inner) + sum(len(part.source_topics) + len(part.repartition_sink_topics) for part in parts) > MOST_TOPICS:
        return f"A topology has at most {MOST_TOPICS} topics."
    groups = [group for part in parts for group in part.copartition_groups]
    named = sum(len(group.source_topics) + len(group.repartition_source_topics) for group in groups)
    if max(named, len(groups)) > MOST_TOPICS:
        return f"The copartition groups of a topology name at most {MOST_TOPICS} topics."
    if sum(len(topic.topic_configs) for topic in inner) > MOST_CONFIGS:
        return f"The topics of a topology are configured with at most {MOST_CONFIGS} values."
    if sum(len(one.key) + len(one.value) for topic in inner for one in topic.topic_configs) > MOST_CHARACTERS:
        return f"Configurations of the topics of a topology have at most {MOST_CHARACTERS} characters."
    return None


def _subtopology(asked: Any) -> Subtopology:
    if asked.source_topic_regex:
        raise InvalidHeartbeatError("Regular expressions for source topics are not supported yet.")
    repartition_sources = tuple(sorted(map(_inner, asked.repartition_source_topics)))
    changelogs = tuple(sorted(map(_inner, asked.state_changelog_topics)))
    for topic in changelogs:
        if topic.partitions:
            raise InvalidTopologyError(
                f"Changelog topic {topic.name} must have an undefined partition count, but it is set to"
                f" {topic.partitions}."
            )
    return Subtopology(
        asked.subtopology_id,
        tuple(sorted(asked.source_topics)),
        repartition_sources,
        tuple(sorted(asked.repartition_sink_topics)),
        changelogs,
        tuple(sorted(set(_copartitioned(asked)))),
    )


def _copartitioned(asked: Any) -> Iterator[tuple[str, ...]]:
    """The topics of each group of copartitioned ones: it names them by their places in the subtopology's lists."""
    inner = [topic.name for topic in asked.repartition_source_topics]
    for group in asked.copartition_groups:
        yield _at_places(asked.source_topics, inner, group)


def _at_places(sources: Sequence[str], inner: Sequence[str], group: Any) -> tuple[str, ...]:
    named = [(sources, place) for place in group.source_topics]
    named += [(inner, place) for place in group.repartition_source_topics]
    if any(not 0 <= place < len(topics) for topics, place in named):
        raise InvalidTopologyError("A copartition group names a topic that the subtopology does not have.")
    return tuple(sorted({topics[place] for topics, place in named}))


def _inner(asked: Any) -> InnerTopic:
    if asked.partitions < 0:
        raise InvalidTopologyError(f"Topic {asked.name} has a negative number of partitions.")
    config = tuple(sorted({one.key: one.value for one in asked.topic_configs}.items()))
    return InnerTopic(asked.name, asked.partitions, asked.replication_factor, config)
