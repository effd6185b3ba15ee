"""What the source says when something is wrong: of options, in the words of Spark 4.2's Kafka connector.

A person who moves a job over finds the same words, so a search for them still leads to the right page. What happened to
records is said in tidelog's own: no Kafka has removed them. Sources:
`kafka-error-conditions.json`, `KafkaSourceProvider`, `KafkaOffsetReaderAdmin`, `KafkaDataConsumer`.
"""

from collections.abc import Iterable

from tidelog.sources.offset_json import Offsets, TopicPartition

_GONE = (
    "tidelog: records that the query has yet to read are not in the lake any more. Retention or delete-records removed"
    " them, or their topic was deleted."
)

DATA_LOSS = (
    f"{_GONE}\n"
    "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.\n"
    "Reason:"
)

DATA_LOSS_TIP = (
    f'{_GONE} If you want your streaming query to fail on such cases, set the source option "failOnDataLoss" to "true".'
)

GROUP_ID_LINES = (
    "Kafka option 'kafka.group.id' has been set on this query, it is",
    "not recommended to set this option. This option is unsafe to use since multiple concurrent",
    "queries or sources using the same group id will interfere with each other as they are part",
    "of the same consumer group. Restarted queries may also suffer interference from the",
    "previous run having the same group id. The user should have only one query per group id,",
    "and/or set the option 'kafka.session.timeout.ms' to be very small so that the Kafka",
    "consumers from the previous query are marked dead by the Kafka group coordinator before the",
    "restarted query starts running.",
)

CUSTOM_GROUP_ID = " ".join(GROUP_ID_LINES)

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
