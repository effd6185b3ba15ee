"""What the source says when something is wrong: the words of Spark 4.2's Kafka connector.

A person who moves a job over finds the same words, so a search for them still leads to the right page. Sources:
`kafka-error-conditions.json`, `KafkaSourceProvider`, `KafkaOffsetReaderAdmin`, `KafkaDataConsumer`.
"""

from collections.abc import Iterable

from tidelog.sources.offset_json import Offsets, TopicPartition

DATA_LOSS = (
    "Some data may have been lost because they are not available in Kafka any more;\n"
    "either the data was aged out by Kafka or the topic may have been deleted before all the data in the\n"
    "topic was processed.\n"
    "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.\n"
    "Reason:"
)

DATA_LOSS_TIP = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out "
    "by Kafka or the topic may have been deleted before all the data in the topic was processed. If you want your "
    'streaming query to fail on such cases, set the source option "failOnDataLoss" to "true".'
)

_GROUP_ID_LINES = (
    "Kafka option 'kafka.group.id' has been set on this query, it is",
    "not recommended to set this option. This option is unsafe to use since multiple concurrent",
    "queries or sources using the same group id will interfere with each other as they are part",
    "of the same consumer group. Restarted queries may also suffer interference from the",
    "previous run having the same group id. The user should have only one query per group id,",
    "and/or set the option 'kafka.session.timeout.ms' to be very small so that the Kafka",
    "consumers from the previous query are marked dead by the Kafka group coordinator before the",
    "restarted query starts running.",
)

CUSTOM_GROUP_ID = " ".join(_GROUP_ID_LINES)

GROUP_ID_PREFIX_IGNORED = "Option groupIdPrefix will be ignored as option kafka.group.id has been set."

AUTO_OFFSET_RESET = (
    "Kafka option 'auto.offset.reset' is not supported.\n"
    "Instead set the source option 'startingoffsets' to 'earliest' or 'latest'\n"
    "to specify where to start. Structured Streaming manages which offsets are consumed\n"
    "internally, rather than relying on the kafkaConsumer to do it. This will ensure that no\n"
    "data is missed when new topics/partitions are dynamically subscribed. Note that\n"
    "'startingoffsets' only applies when a new Streaming query is started, and\n"
    "that resuming will always pick up from where the query left off. See the docs for more\n"
    "details."
)

KEY_DESERIALIZER = (
    "Kafka option 'key.deserializer' is not supported as keys are deserialized as byte arrays with "
    "ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the keys."
)

VALUE_DESERIALIZER = (
    "Kafka option 'value.deserializer' is not supported as values are deserialized as byte arrays with "
    "ByteArrayDeserializer. Use DataFrame operations to explicitly deserialize the values."
)


def partition_set(partitions: Iterable[TopicPartition]) -> str:
    """`Set(a-0, b-1)`, sorted."""
    return f"Set({', '.join(str(partition) for partition in sorted(partitions))})"


def offset_map(offsets: Offsets) -> str:
    """`Map(a-0 -> 5)`, sorted."""
    return f"Map({', '.join(f'{partition} -> {offsets[partition]}' for partition in sorted(offsets))})"


def mismatched_limits(start: Iterable[TopicPartition], end: Iterable[TopicPartition]) -> str:
    """MISMATCHED_TOPIC_PARTITIONS_BETWEEN_START_OFFSET_AND_END_OFFSET."""
    return (
        "The specified start offset and end offset should have the same topic-partitions.\n"
        f"Topic-partitions for start offset: {', '.join(map(str, sorted(start)))}, "
        f"topic-partitions for end offset: {', '.join(map(str, sorted(end)))}."
    )


def unresolved_start_after_end(kind: str, start: int, end: int, partition: TopicPartition) -> str:
    """UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET; `kind` is `offset` or `timestamp`."""
    return (
        f"The specified start {kind} {start} is greater than the end {kind} {end} for topic {partition.topic} "
        f"partition {partition.partition}."
    )


def resolved_start_after_end(start: int, end: int, partition: TopicPartition) -> str:
    """RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET."""
    return (
        f"The resolved start offset {start} is greater than the resolved end offset {end} for topic "
        f"{partition.topic} partition {partition.partition}.\n"
        "Please investigate in this order:\n"
        "1. Check whether start offset is set beyond the end offset or the latest available offset after "
        "resolution. Possible inputs are:\n"
        "  (a) Start offset is set to a timestamp, and the end offset is set to an index of offset.\n"
        "  (b) Start offset is set to an index of offset, and the end offset is set to a timestamp.\n"
        "  (c) Start offset is set, and the end offset is set to latest.\n"
        "2. Check whether the Kafka topic-partition is deleted and re-created."
    )


def offsets_not_assigned(specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]) -> str:
    """KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED, of batch queries."""
    return (
        "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic partitions are "
        "created \nor deleted while the query is running. Use -1 for latest, -2 for earliest.\n"
        f"Specified: {partition_set(specified)} Assigned: {partition_set(assigned)}"
    )


def stream_offsets_not_assigned(specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]) -> str:
    """The same of streaming queries."""
    return (
        "If startingOffsets contains specific offsets, you must specify all TopicPartitions.\n"
        "Use -1 for latest, -2 for earliest, if you don't care.\n"
        f"Specified: {partition_set(specified)} Assigned: {partition_set(assigned)}"
    )


def timestamps_not_assigned(
    position: str, specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]
) -> str:
    """KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED; `position` is `start` or `end`."""
    return (
        f"Partitions specified for Kafka timestamp based {position} offsets don't match what are assigned. Maybe "
        "topic partitions are created \nor deleted while the query is running, or you didn't specify all the "
        f"partitions.\nSpecified: {partition_set(specified)} Assigned: {partition_set(assigned)}"
    )


def no_offset_for_time(partition: TopicPartition, timestamp_ms: int) -> str:
    """No record at or after the starting timestamp, and the strategy is `error`."""
    return f"No offset matched from request of topic-partition {partition} and timestamp {timestamp_ms}."


def initial_offset_not_found(partitions: Iterable[TopicPartition]) -> str:
    """KAFKA_DATA_LOSS.INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS."""
    return (
        f"{DATA_LOSS} Cannot find initial offsets for partitions {partition_set(partitions)}. They may have been "
        "deleted."
    )


def added_partition_starts_late(partition: TopicPartition, start: int) -> str:
    """KAFKA_DATA_LOSS.ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO."""
    return f"{DATA_LOSS} Added partition {partition} starts from {start} instead of 0."


def partitions_deleted(partitions: Iterable[TopicPartition], *, custom_group_id: bool) -> str:
    """KAFKA_DATA_LOSS.PARTITIONS_DELETED, with GROUP_ID_CONFIG_PRESENT where the query sets its group id."""
    text = f"{DATA_LOSS} Partitions {partition_set(partitions)} have been deleted."
    return "\n".join((text, *_GROUP_ID_LINES)) if custom_group_id else text


def partition_offset_changed(partition: TopicPartition, previous: int, new: int) -> str:
    """KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED."""
    return (
        f"{DATA_LOSS} Partition {partition} offset was changed from {previous} to {new}.\n"
        "This could be either 1) a user error that the start offset is set beyond available offset when starting "
        "query, or 2) the kafka topic-partition is deleted and re-created."
    )


def could_not_read(start: int, end: int, partition: TopicPartition, group_id: str) -> str:
    """KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE."""
    return (
        f"{DATA_LOSS} Could not read records in offset [{start}, {end}) for topic partition {partition}\n"
        f"with consumer group {group_id}."
    )


def available_now_partitions_differ(prefetched: Iterable[TopicPartition], end: Iterable[TopicPartition]) -> str:
    """MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED."""
    return (
        "Kafka data source in Trigger.AvailableNow should provide the same topic partitions in pre-fetched offset "
        "to end offset for each microbatch. The error could be transient - restart your query, and report if you "
        f"still see the same issue.\ntopic-partitions for pre-fetched offset: {partition_set(prefetched)}, "
        f"topic-partitions for end offset: {partition_set(end)}."
    )


def available_now_past_prefetched(prefetched: Offsets, end: Offsets) -> str:
    """END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED."""
    return (
        "For Kafka data source with Trigger.AvailableNow, end offset should have lower or equal offset per each "
        "topic partition than pre-fetched offset. The error could be transient - restart your query, and report if "
        f"you still see the same issue.\npre-fetched offset: {offset_map(prefetched)}, "
        f"end offset: {offset_map(end)}."
    )


def available_now_partitions_lost(latest: Iterable[TopicPartition], end: Iterable[TopicPartition]) -> str:
    """LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW."""
    return (
        "Some of partitions in Kafka topic(s) have been lost during running query with Trigger.AvailableNow. The "
        "error could be transient - restart your query, and report if you still see the same issue.\n"
        f"topic-partitions for latest offset: {partition_set(latest)}, "
        f"topic-partitions for end offset: {partition_set(end)}"
    )


def available_now_past_latest(latest: Offsets, end: Offsets) -> str:
    """END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW."""
    return (
        "Some of partitions in Kafka topic(s) report available offset which is less than end offset during running "
        "query with Trigger.AvailableNow. The error could be transient - restart your query, and report if you "
        f"still see the same issue.\nlatest offset: {offset_map(latest)}, end offset: {offset_map(end)}"
    )
