"""Checks of an AdminClient's arguments, with confluent-kafka's exceptions: TypeError and ValueError."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tidelog.clients.admin.group_types import ConsumerGroupTopicPartitions
from tidelog.clients.admin.topics import OffsetSpec
from tidelog.clients.values.partitions import OFFSET_END, OFFSET_INVALID, TopicPartition

T = TypeVar("T")


def check_list(what: str, given: Sequence[T], kind: type[T]) -> list[T]:
    """Return a list of things of one kind, none of them twice."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(f"Expected a list of {what}, not {type(given).__name__}")
    if not given:
        raise ValueError(f"Expected non-empty list of {what}")
    for one in given:
        if not isinstance(one, kind):
            raise TypeError(f"Expected list of {what}, not of {type(one).__name__}")
    named = [getattr(one, "topic", one) for one in given]
    if len(set(named)) < len(named):
        raise ValueError(f"Expected list of {what} that names none of them twice")
    return list(given)


def check_flag(name: str, value: bool) -> None:
    """Refuse what is no bool."""
    if not isinstance(value, bool):
        raise TypeError(f"Expected {name} to be bool type, not {type(value).__name__}")


def check_set(name: str, given: set[T] | None, kind: type[T]) -> None:
    """Refuse what is neither None nor a set of that kind."""
    if given is None:
        return
    if not isinstance(given, set | frozenset):
        raise TypeError(f"'{name}' must be a set")
    if not all(isinstance(one, kind) for one in given):
        raise TypeError(f"All elements of {name} must be of type {kind.__name__}")


def check_members(what: str, group_ids: Sequence[str]) -> list[str]:
    """Return a list of group ids."""
    if not isinstance(group_ids, list):
        raise TypeError(f"Expected input to be list of group ids to be {what}")
    if not group_ids:
        raise ValueError(f"Expected at least one group to be {what}")
    if not all(isinstance(group_id, str) for group_id in group_ids):
        raise TypeError("Expected list of group ids that are strings")
    return list(dict.fromkeys(group_ids))


def check_partitions(given: Sequence[TopicPartition], what: str) -> list[TopicPartition]:
    """Return a list of partitions with an offset each, OFFSET_END allowed."""
    if not isinstance(given, list):
        raise TypeError(f"Expected Request to be a list, got '{type(given).__name__}'")
    for partition in given:
        if not isinstance(partition, TopicPartition):
            raise TypeError(f"Element of the request list must be of type 'TopicPartition', got {partition!r}")
        if partition.partition < 0:
            raise ValueError("'partition' cannot be negative")
        if partition.offset < OFFSET_END:
            raise ValueError(f"{what} needs an 'offset' for {partition}: from 0, or OFFSET_END")
    if len(set(given)) < len(given):
        raise ValueError("Expected a list that names no partition twice")
    return list(given)


def check_offset_specs(given: Mapping[TopicPartition, OffsetSpec]) -> None:
    """Refuse what is no dict of partitions and what to find there."""
    if not isinstance(given, dict):
        raise TypeError("Expected topic_partition_offsets to be dict of [TopicPartition, OffsetSpec]")
    for partition, spec in given.items():
        _check_partition(partition)
        if not isinstance(spec, OffsetSpec):
            raise TypeError("Value must be a OffsetSpec")


def check_group_partitions(
    given: Sequence[ConsumerGroupTopicPartitions], *, partitions: bool = False, offsets: bool = False
) -> dict[str, ConsumerGroupTopicPartitions]:
    """Return requests about groups by group id.

    `partitions`: they must name partitions; `offsets`: with an offset each, while otherwise none may have one.
    """
    if not isinstance(given, list):
        raise TypeError("request must be a list")
    if not given:
        raise ValueError("Expected at least one group in the request")
    for request in given:
        if not isinstance(request, ConsumerGroupTopicPartitions):
            raise TypeError("Expected list of 'ConsumerGroupTopicPartitions'")
        if not isinstance(request.group_id, str):
            raise TypeError("'group_id' must be a string")
        if not request.group_id:
            raise ValueError("'group_id' cannot be empty")
        _check_group_request(request.topic_partitions, partitions or offsets, offsets)
    if len({request.group_id for request in given}) < len(given):
        raise ValueError("Expected a list that names no group twice")
    return {request.group_id: request for request in given}


def _check_group_request(partitions: Any, needed: bool, offsets: bool) -> None:
    if partitions is None and not needed:
        return
    if partitions is None:
        raise ValueError("'topic_partitions' cannot be null")
    if not isinstance(partitions, list):
        raise TypeError("'topic_partitions' must be a list")
    if not partitions:
        raise ValueError("'topic_partitions' cannot be empty")
    for partition in partitions:
        _check_partition(partition)
        if offsets and partition.offset < 0:
            raise ValueError("Element of 'topic_partitions' must not have negative value for 'offset' field")
        if not offsets and partition.offset != OFFSET_INVALID:
            raise ValueError("Element of 'topic_partitions' must not have 'offset' value")
    if len(set(partitions)) < len(partitions):
        raise ValueError("'topic_partitions' must name no partition twice")


def _check_partition(partition: Any) -> None:
    if not isinstance(partition, TopicPartition):
        raise TypeError("partition must be of type TopicPartition")
    if not partition.topic:
        raise ValueError("partition topic name cannot be empty")
    if partition.partition < 0:
        raise ValueError("partition index must be non-negative")
