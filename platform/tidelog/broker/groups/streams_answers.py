"""Streams groups as answers have them: tasks, endpoints, and groups in full."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from tidelog.groups.model import StreamsGroup, StreamsMember
from tidelog.groups.rules.modern.topics import Topics
from tidelog.groups.topology import InnerTopic, StreamsTask, StreamsTopology, Tasks


def task_ids(tasks: Iterable[StreamsTask]) -> list[dict[str, Any]]:
    """Tasks by their subtopologies."""
    by_name: dict[str, list[int]] = {}
    for task in sorted(tasks):
        by_name.setdefault(task.subtopology, []).append(task.partition)
    return [{"subtopology_id": name, "partitions": numbers} for name, numbers in by_name.items()]


def endpoints(group: StreamsGroup, topology: StreamsTopology, topics: Topics) -> tuple[int, list[dict[str, Any]]]:
    """Where each partition's state can be asked about, and a number of that: equal where that is equal.

    Kafka counts changes; what follows from the group alone is the same at each coordinator.
    """
    told = []
    for _, member in sorted(group.members.items()):
        if member.endpoint is not None:
            host, port = member.endpoint
            told.append(
                {
                    "user_endpoint": {"host": host, "port": port},
                    "active_partitions": _partitions(topology, topics, member.assigned.active),
                    "standby_partitions": _partitions(topology, topics, member.assigned.standby),
                }
            )
    return zlib.crc32(repr(told).encode()) >> 1, told


def _partitions(topology: StreamsTopology, topics: Topics, tasks: Iterable[StreamsTask]) -> list[dict[str, Any]]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in topology.inputs(tasks):
        facts = topics.get(topic)
        if facts is not None and number < facts.partitions:
            by_topic.setdefault(topic, []).append(number)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]


def described(group: StreamsGroup, allowed: int) -> Mapping[str, Any]:
    """A group in full, as StreamsGroupDescribe answers."""
    return {
        "error_code": 0,
        "error_message": None,
        "group_id": group.group_id,
        "group_state": group.phase.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "topology": None if group.topology is None else _topology(group.topology),
        "members": [_member(group, member) for _, member in sorted(group.members.items())],
        "authorized_operations": allowed,
    }


def _member(group: StreamsGroup, member: StreamsMember) -> dict[str, Any]:
    endpoint = member.endpoint
    return {
        "member_id": member.member_id,
        "member_epoch": member.epoch,
        "instance_id": None,
        "rack_id": member.rack,
        "client_id": member.client_id,
        "client_host": member.host,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None if endpoint is None else {"host": endpoint[0], "port": endpoint[1]},
        "client_tags": _pairs(member.tags),
        "task_offsets": (),
        "task_end_offsets": (),
        "assignment": _assignment(member.assigned),
        "target_assignment": _assignment(group.target(member.member_id)),
        "is_classic": False,
    }


def _assignment(tasks: Tasks) -> dict[str, Any]:
    return {
        "active_tasks": task_ids(tasks.active),
        "standby_tasks": task_ids(tasks.standby),
        "warmup_tasks": task_ids(tasks.warmup),
    }


def _topology(topology: StreamsTopology) -> dict[str, Any]:
    return {
        "epoch": topology.epoch,
        "subtopologies": [
            {
                "subtopology_id": part.name,
                "source_topics": part.sources,
                "repartition_sink_topics": part.repartition_sinks,
                "state_changelog_topics": [_inner(topic) for topic in part.changelogs],
                "repartition_source_topics": [_inner(topic) for topic in part.repartition_sources],
            }
            for part in topology.subtopologies
        ],
    }


def _inner(topic: InnerTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
        "topic_configs": _pairs(topic.config),
    }


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs]
