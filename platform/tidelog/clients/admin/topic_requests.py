"""What an AdminClient does about topics and their records. Each function serves one topic and raises TidelogError."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.clients.admin.enums import AclOperation
from tidelog.clients.admin.topics import (
    DeletedRecords,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicDescription,
    TopicPartitionInfo,
)
from tidelog.clients.cluster import Uuid, lake_node
from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.segments.fetch import find_latest, find_record
from tidelog.log.topic import Topic
from tidelog.operations import topics


def create_topic(lake: Lake, new: NewTopic, *, validate_only: bool) -> None:
    """Create a topic, or only check that it could be."""
    if new.replication_factor not in (-1, 1):
        raise kafka_exception(
            KafkaError.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {new.replication_factor} is refused: there is no cluster of replicas yet, and what "
            "copies a lake has its storage keeps. Give 1, or -1.",
        )
    _refuse_assignment(new.replica_assignment)
    config = {str(name): str(value) for name, value in (new.config or {}).items()}
    partitions = None if new.num_partitions == -1 else new.num_partitions
    topics.create_topic(lake, new.topic, partitions, config, validate_only=validate_only)


def create_partitions(lake: Lake, new: NewPartitions, *, validate_only: bool) -> None:
    """Add partitions to a topic, or only check that they could be added."""
    _refuse_assignment(new.replica_assignment)
    topics.add_partitions(lake, new.topic, new.new_total_count, validate_only=validate_only)


def describe_topic(lake: Lake, topic: str, operations: list[AclOperation] | None) -> TopicDescription:
    """Describe a topic, with the operations that are allowed; the lake leads all its partitions."""
    state = topics.read_topic(lake, topic)
    node = lake_node(lake)
    partitions = [TopicPartitionInfo(p, node, [node], [node]) for p in range(state.partitions)]
    return TopicDescription(topic, Uuid.of(state.topic_id), names.is_internal(topic), partitions, operations)


def delete_records(lake: Lake, topic: str, before: Mapping[int, int]) -> dict[int, DeletedRecords | TidelogError]:
    """Delete the records below an offset of each partition (-1: all), in one entry where no partition is refused."""
    starts = topics.delete_records(lake, topic, before)
    return {p: start if isinstance(start, TidelogError) else DeletedRecords(start) for p, start in starts.items()}


def list_offsets(
    lake: Lake, topic: str, specs: Mapping[int, OffsetSpec]
) -> dict[int, ListOffsetsResultInfo | TidelogError]:
    """Find one offset of each partition. They share one look at the log."""
    handle = lake.topic(topic)

    def find(wanted: Mapping[int, OffsetSpec]) -> dict[int, ListOffsetsResultInfo]:
        handle.state()  # looks at the log
        return {partition: _offset(lake, handle, partition, spec) for partition, spec in wanted.items()}

    return topics.ask_together(find, specs)


def _offset(lake: Lake, topic: Topic, partition: int, spec: OffsetSpec) -> ListOffsetsResultInfo:
    plan = topic.plan(partition)
    if spec == OffsetSpec.earliest():
        return ListOffsetsResultInfo(plan.start, -1)
    if spec == OffsetSpec.latest():
        return ListOffsetsResultInfo(plan.end, -1)
    record = None
    if spec == OffsetSpec.max_timestamp():
        record = find_latest(lake.storage, topic.folder, plan)
    elif spec.value >= 0:
        record = find_record(lake.storage, topic.folder, plan, spec.value)
    return ListOffsetsResultInfo(*(record or (-1, -1)))


def _refuse_assignment(assignment: Sequence[Sequence[Any]] | None) -> None:
    if assignment:
        raise kafka_exception(
            KafkaError.INVALID_REPLICA_ASSIGNMENT,
            "A replica_assignment is refused: replicas are the store's, and leaders follow from a rule. Leave it out.",
        )


def outcome(answer: object) -> object:
    """Return what was found, or raise it where it is an error."""
    if isinstance(answer, TidelogError):
        raise answer
    return answer
