"""The sink's options: those of Spark 4.2's Kafka sink, and the lake's own.

Pure: warnings are values, the environment's lake address comes in as an argument. Refused settings and their words
are the connector's (`KafkaSourceProvider.kafkaParamsForProducer`) and the Kafka producer's (`ProducerConfig`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.typed_values import Choice, names, reason
from tidelog.log.config.key_type import KAFKA
from tidelog.log.records.partitioners import PARTITIONERS
from tidelog.log.spark_options import (
    BOOTSTRAP_SERVERS,
    ignored_settings,
    integer,
    lake_address,
    lake_store_options,
    lowered,
    spark_boolean,
)
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions

T = TypeVar("T")

Acks = Literal[0, 1, "all"]

COMPRESSION_TYPE = "kafka.compression.type"
ACKS = "kafka.acks"
PARTITIONER_CLASS = "kafka.partitioner.class"

_CODECS = names("none", "gzip", "snappy", "lz4", "zstd", any_case=True)
_ACKS: Choice[Acks] = Choice({"all": "all", "-1": "all", "0": 0, "1": 1}, any_case=True)
_HONOURED = (BOOTSTRAP_SERVERS, COMPRESSION_TYPE, ACKS, PARTITIONER_CLASS)

DEFAULT_PARTITIONER = "murmur2"
_PRODUCERS_PACKAGE = "org.apache.kafka.clients.producer."
_KAFKA_PARTITIONERS = {
    "RoundRobinPartitioner": "round_robin",
    "UniformStickyPartitioner": "random",
    "internals.DefaultPartitioner": "murmur2",
}

NO_OVERWRITE = (
    "tidelog: save mode Overwrite is not allowed, as a topic is a log: write with .mode('append'). To begin again,"
    " delete the topic's records first ('tidelog topic delete-records'), or write to another topic."
)

NULL_TOPIC = (
    "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for setting a default "
    "topic."
)


@dataclass(frozen=True)
class WriteId:
    """A batch write's own id: the same application and version is written once."""

    app_id: str
    version: int


@dataclass(frozen=True)
class SinkOptions:
    """What a query asks of the sink.

    `topic` wins over a column of that name. `compression` is the producer's codec, None when it names none.
    `partitioner` is a name of `tidelog.log.records.partitioners`, or `module:function`. `include_timestamp` makes the
    column `timestamp` count. `request_id` is the id that a batch write's entry carries, None for one of its own.
    `warnings` are for the caller to utter once. `store`: how to reach the lake's store.
    """

    lake: str
    topic: str | None
    include_timestamp: bool
    compression: str | None
    acks: Acks
    partitioner: str
    txn: WriteId | None
    warnings: tuple[str, ...]
    request_id: str | None = None
    store: StoreOptions = NO_OPTIONS


def parse_batch(options: Mapping[str, str], environment_lake: str | None) -> SinkOptions:
    """Options of a batch write. `environment_lake` is TIDELOG_LAKE or None. Raises InvalidOptionError."""
    given = lowered(options)
    parsed = replace(_parse(given, environment_lake, _txn(given)), request_id=given.get("requestid"))
    if parsed.request_id is not None and parsed.topic is None:
        raise InvalidOptionError(
            "Option 'requestId' is the id of one log entry, and rows that a column 'topic' routes may need several. Set"
            " the option 'topic', or leave 'requestId' out."
        )
    return parsed


def parse_stream(options: Mapping[str, str], environment_lake: str | None) -> SinkOptions:
    """Options of a streaming write, which brings its own ids. Raises InvalidOptionError."""
    given = lowered(options)
    if "txnappid" in given or "txnversion" in given:
        raise InvalidOptionError(
            "Options 'txnAppId' and 'txnVersion' are not valid in streaming queries: the query's id and the batch's "
            "id already make each batch count once. Leave them out, or write with them inside foreachBatch."
        )
    return _parse(given, environment_lake, None)


def _parse(given: Mapping[str, str], environment_lake: str | None, txn: WriteId | None) -> SinkOptions:
    for option, what in (("key.serializer", "keys"), ("value.serializer", "value")):
        if f"kafka.{option}" in given:
            raise InvalidOptionError(
                f"Kafka option '{option}' is not supported as {what} are serialized with ByteArraySerializer."
            )
    lake = lake_address(
        given, environment_lake, 'Missing required configuration "bootstrap.servers" which has no default value'
    )
    topic = given.get("topic")
    ignored = ignored_settings(given, _HONOURED)
    return SinkOptions(
        lake=lake,
        topic=None if topic is None else topic.strip(),
        include_timestamp=spark_boolean(given.get("includetimestamp", "false"), "includeTimestamp"),
        compression=_compression(given),
        acks=_acks(given),
        partitioner=_partitioner(given),
        txn=txn,
        warnings=(ignored,) if ignored else (),
        store=lake_store_options(given),
    )


def _compression(given: Mapping[str, str]) -> str | None:
    text = given.get("compression", given.get(COMPRESSION_TYPE))
    return None if text is None else _chosen("compression.type", text, _CODECS)


def _acks(given: Mapping[str, str]) -> Acks:
    return _chosen("acks", given.get("acks", given.get(ACKS, "all")), _ACKS)


def _chosen(name: str, text: str, kind: Choice[T]) -> T:
    try:
        return kind.parse(text.strip())
    except ValueError as e:
        raise InvalidOptionError(f"Invalid value {text} for configuration {name}: {reason(e, KAFKA)}") from None


def _partitioner(given: Mapping[str, str]) -> str:
    name = given.get("partitioner")
    if name is not None:
        name = name.strip()
        module, _, function = name.partition(":")
        if name.lower() in PARTITIONERS:
            return name.lower()
        if function.isidentifier() and all(part.isidentifier() for part in module.split(".")):
            return name
        raise InvalidOptionError(
            f"Unknown partitioner {name!r}. Set the option 'partitioner' to one of {', '.join(PARTITIONERS)}, or to "
            "a function of your own as module:function."
        )
    java_class = given.get(PARTITIONER_CLASS)
    if java_class is None:
        return DEFAULT_PARTITIONER
    known = _KAFKA_PARTITIONERS.get(java_class.strip().removeprefix(_PRODUCERS_PACKAGE))
    if known is None:
        raise InvalidOptionError(
            f"'{PARTITIONER_CLASS}' names the Java class {java_class.strip()}, which can't run here, and records "
            f"must not go where it would not send them. Set the option 'partitioner' to one of "
            f"{', '.join(PARTITIONERS)}, or to a function of your own as module:function."
        )
    return known


def _txn(given: Mapping[str, str]) -> WriteId | None:
    app_id, version = given.get("txnappid"), given.get("txnversion")
    if app_id is None and version is None:
        return None
    if app_id is None or version is None:
        raise InvalidOptionError(
            "Options 'txnAppId' and 'txnVersion' go together: one without the other can't tell a repeated write. "
            "Set both or neither."
        )
    if not app_id.strip():
        raise InvalidOptionError("Option 'txnAppId' is empty. Give the application a name of its own.")
    number = integer(version.strip(), 64, "txnVersion")
    if number < 0:
        raise InvalidOptionError(f"Option 'txnVersion' must be an integer from 0 on, not {number}.")
    return WriteId(app_id, number)
