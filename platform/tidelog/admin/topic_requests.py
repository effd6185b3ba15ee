"""What an AdminClient does about topics and their records. Each function serves one topic and raises TidelogError."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidelog.admin.enums import AclOperation
from tidelog.admin.topics import (
    DeletedRecords,
    ListOffsetsResultInfo,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    TopicDescription,
    TopicPartitionInfo,
)
from tidelog.clients.by_partition import ask_together
from tidelog.clients.cluster import Uuid, existing_topic, lake_node
from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.log.base.errors import InvalidPartitionsError, TidelogError
from tidelog.log.door.topic_machine import table_properties
from tidelog.log.lake import Lake
from tidelog.log.rules import names
from tidelog.log.rules.topics import decide_alter
from tidelog.log.segments.fetch import FetchPlan, fetch
from tidelog.log.state.topic_state import Segment
from tidelog.log.topic import Topic


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
    if validate_only:
        lake.check_new_topic(new.topic, partitions, config)
    else:
        lake.create_topic(new.topic, partitions, config)


def create_partitions(lake: Lake, new: NewPartitions, *, validate_only: bool) -> None:
    """Add partitions to a topic, or only check that they could be added."""
    _refuse_assignment(new.replica_assignment)
    state = existing_topic(lake, new.topic)
    if new.new_total_count == state.partitions:
        raise InvalidPartitionsError(
            f"Topic '{new.topic}' already has {state.partitions} partitions. Give the number that it shall have in all."
        )
    if not validate_only:
        lake.alter_topic(new.topic, partitions=new.new_total_count)
        return
    config = lake.topic_config(new.topic)
    properties = table_properties(config, lake.config())
    most = lake.config().topic_max_partitions
    decide_alter(state, new.topic, new.new_total_count, config.overrides, properties, most_partitions=most)


def describe_topic(lake: Lake, topic: str, operations: list[AclOperation] | None) -> TopicDescription:
    """Describe a topic, with the operations that are allowed; the lake leads all its partitions."""
    state = existing_topic(lake, topic)
    node = lake_node(lake)
    partitions = [TopicPartitionInfo(p, node, [node], [node]) for p in range(state.partitions)]
    return TopicDescription(topic, Uuid.of(state.topic_id), names.is_internal(topic), partitions, operations)


def delete_records(lake: Lake, topic: str, before: Mapping[int, int]) -> dict[int, DeletedRecords | TidelogError]:
    """Delete the records below an offset of each partition (-1: all), in one entry where no partition is refused."""

    def delete(wanted: Mapping[int, int]) -> dict[int, DeletedRecords]:
        starts = lake.delete_records(topic, wanted)
        return {partition: DeletedRecords(starts[partition]) for partition in wanted}

    return ask_together(delete, before)


def list_offsets(
    lake: Lake, topic: str, specs: Mapping[int, OffsetSpec]
) -> dict[int, ListOffsetsResultInfo | TidelogError]:
    """Find one offset of each partition. They share one look at the log."""
    handle = lake.topic(topic)

    def find(wanted: Mapping[int, OffsetSpec]) -> dict[int, ListOffsetsResultInfo]:
        times = {number: spec.value for number, spec in wanted.items() if spec.value >= 0}
        by_time = handle.offsets_for_times(times)  # looks at the log, whether or not there are times
        return {number: _offset(lake, handle, number, spec, by_time.get(number)) for number, spec in wanted.items()}

    return ask_together(find, specs)


def _offset(lake: Lake, topic: Topic, number: int, spec: OffsetSpec, by_time: int | None) -> ListOffsetsResultInfo:
    plan = topic.plan(number)
    if spec == OffsetSpec.earliest():
        return ListOffsetsResultInfo(plan.start, -1)
    if spec == OffsetSpec.latest():
        return ListOffsetsResultInfo(plan.end, -1)
    if spec == OffsetSpec.max_timestamp():
        return _newest(lake, topic, plan)
    if by_time is None:
        return ListOffsetsResultInfo(-1, -1)
    record = topic.plan(number, by_time, by_time + 1)
    times = [time for batch in fetch(lake.storage, topic.folder, topic.name, record) for time in _times_ms(batch)]
    return ListOffsetsResultInfo(by_time, times[0] if times else -1)


def _newest(lake: Lake, topic: Topic, plan: FetchPlan) -> ListOffsetsResultInfo:
    """Return the first record with the newest timestamp; only segments that may hold it are read."""
    # of unknown statistics first: they may hold anything
    segments = sorted(plan.segments, key=_newest_ms, reverse=True)
    newest, found = -1, -1
    for segment in segments:
        if _newest_ms(segment) < newest:
            break
        for batch in fetch(lake.storage, topic.folder, topic.name, replace(plan, segments=(segment,))):
            times = _times_ms(batch)
            highest = max(times, default=-1)
            offset = batch.column("offset")[times.index(highest)].as_py() if times else -1
            if highest > newest or (highest == newest and offset < found):
                newest, found = highest, offset
    return ListOffsetsResultInfo(found, newest)


def _newest_ms(segment: Segment) -> float:
    newest = segment.stats.max_timestamp_ms
    return float("inf") if newest is None else newest


def _times_ms(batch: pa.RecordBatch) -> list[int]:
    times = batch.column("timestamp").cast(pa.int64())
    found: list[int] = pc.divide(times, 1000).to_pylist()
    return found


def _refuse_assignment(assignment: Sequence[Sequence[Any]] | None) -> None:
    if assignment:
        raise kafka_exception(
            KafkaError.INVALID_REPLICA_ASSIGNMENT,
            "A replica_assignment is refused: replicas are the store's, and leaders follow from a rule. Leave it out.",
        )


def outcome(found: object) -> object:
    """Return what was found, or raise it where it is an error."""
    if isinstance(found, TidelogError):
        raise found
    return found
