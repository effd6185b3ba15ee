"""The sink's options: those of Spark 4.2's Kafka sink, and the lake's own; and which columns it takes.

Pure: warnings are values, the environment's lake address comes in as an argument. Refused settings and their words
are the connector's (`KafkaSourceProvider.kafkaParamsForProducer`, `KafkaWriter.validateQuery`) and the Kafka producer's
(`ProducerConfig`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.keys import key, keys_of
from tidelog.log.base.typed_values import Choice, ReadBy, Text, Whole, names, reason
from tidelog.log.config.key_type import KAFKA
from tidelog.log.config.topics_and_lakes import CODECS
from tidelog.log.records.partitioners import PARTITIONERS
from tidelog.log.spark_options import (
    BOOTSTRAP_SERVERS,
    LAKE_OPTION,
    OptionMapFlag,
    ignored_settings,
    lake_address,
    lake_store_options,
    lowered,
    read_options,
)
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions

T = TypeVar("T")

Acks = Literal[0, 1, "all"]

COMPRESSION_TYPE = "kafka.compression.type"
ACKS = "kafka.acks"
PARTITIONER_CLASS = "kafka.partitioner.class"

HEADERS = "array<struct<key:string,value:binary>>"

_BYTES = ("string", "binary")
_CODECS = names(*CODECS, any_case=True)
_ACKS: Choice[Acks] = Choice({"all": "all", "-1": "all", "0": 0, "1": 1}, any_case=True)
_HONOURED = (BOOTSTRAP_SERVERS, COMPRESSION_TYPE, ACKS, PARTITIONER_CLASS)
_REFUSED: Final = {
    f"kafka.{option}": f"Kafka option '{option}' is not supported as {what} are serialized with ByteArraySerializer."
    for option, what in (("key.serializer", "keys"), ("value.serializer", "value"))
}

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


def _of_producers(name: str, kind: Choice[T]) -> ReadBy[T]:
    """A producer's setting, with the message of Kafka's producer."""

    def read(text: str) -> T:
        try:
            return kind.parse(text.strip())
        except ValueError as e:
            raise InvalidOptionError(f"Invalid value {text} for configuration {name}: {reason(e, KAFKA)}") from None

    return ReadBy(kind.allowed, read)


def _partitioner(text: str) -> str:
    name = text.strip()
    module, _, function = name.partition(":")
    if name.lower() in PARTITIONERS:
        return name.lower()
    if function.isidentifier() and all(part.isidentifier() for part in module.split(".")):
        return name
    raise InvalidOptionError(
        f"Unknown partitioner {name!r}. Set the option 'partitioner' to one of {', '.join(PARTITIONERS)}, or to "
        "a function of your own as module:function."
    )


def _partitioner_of_class(text: str) -> str:
    name = text.strip()
    partitioner = _KAFKA_PARTITIONERS.get(name.removeprefix(_PRODUCERS_PACKAGE))
    if partitioner is None:
        raise InvalidOptionError(
            f"'{PARTITIONER_CLASS}' names the Java class {name}, which can't run here, and records "
            f"must not go where it would not send them. Set the option 'partitioner' to one of "
            f"{', '.join(PARTITIONERS)}, or to a function of your own as module:function."
        )
    return partitioner


def _version(text: str) -> int:
    number = Whole(bits=64).parse(text.strip())
    if number < 0:
        raise InvalidOptionError(f"Option 'txnVersion' must be an integer from 0 on, not {number}.")
    return number


@dataclass(frozen=True)
class WriteId:
    """A batch write's own id: the same application and version is written once."""

    app_id: str = key(
        "txnAppId",
        None,
        Text(),
        "batch only: a batch with the same `txnAppId` and `txnVersion` is written once; with option `topic` to that"
        " topic, else to the lake",
    )
    version: int = key("txnVersion", None, ReadBy("a whole number, 0 or more", _version), "batch only: as above")


@dataclass(frozen=True)
class SinkOptions:
    """What a query asks of the sink.

    `topic` wins over a column of that name. `compression` is the producer's codec, None when it names none.
    `partitioner` is a name of `tidelog.log.records.partitioners`, or `module:function`. `include_timestamp` makes the
    column `timestamp` count. `request_id` is the id that a batch write's entry carries, None for one of its own.
    `warnings` are for the caller to utter once. `store`: how to reach the lake's store.
    """

    lake: str
    topic: str | None = key(
        "topic",
        None,
        ReadBy("a topic", str.strip),
        "the target. Without it a column `topic` names the target of each row, and a batch for several topics is a"
        " transaction",
    )
    include_timestamp: bool = key(
        "includeTimestamp", False, OptionMapFlag(), "whether a column `timestamp` counts, as in Kafka's sink"
    )
    acks: Acks = key(  # noqa: RUF009 - a field
        "acks",
        "all",
        _of_producers("acks", _ACKS),
        "`all` (safe on disk when the batch is committed), `1` or `0`; always `all` over several topics",
        ACKS,
    )
    compression: str | None = key(
        "compression",
        None,
        _of_producers("compression.type", _CODECS),
        "`zstd`, `lz4`, `snappy`, `gzip` or `none`",
        COMPRESSION_TYPE,
        unset="the topic's own, else `zstd`",
    )
    partitioner: str = key(
        "partitioner",
        "murmur2",
        ReadBy("a partitioner", _partitioner),
        "`murmur2` (Kafka's), `murmur3`, `round_robin`, `random` or `module:function`",
    )
    request_id: str | None = key(
        "requestId",
        None,
        Text(),
        "batch only, with option `topic`: an id of yours in the log entry, to find the batch again",
    )
    txn: WriteId | None = None
    warnings: tuple[str, ...] = ()
    store: StoreOptions = NO_OPTIONS


SINK_OPTIONS: Final = (LAKE_OPTION, *keys_of(SinkOptions).values(), *keys_of(WriteId).values())


def parse_batch(options: Mapping[str, str], environment_lake: str | None) -> SinkOptions:
    """Options of a batch write. `environment_lake` is TIDELOG_LAKE or None. Raises InvalidOptionError."""
    given = lowered(options)
    parsed = _parse(given, environment_lake, _txn(given))
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
    given.pop("requestid", None)
    return _parse(given, environment_lake, None)


def _parse(given: dict[str, str], environment_lake: str | None, txn: WriteId | None) -> SinkOptions:
    if "partitioner" not in given and PARTITIONER_CLASS in given:
        given = {**given, "partitioner": _partitioner_of_class(given[PARTITIONER_CLASS])}
    read = read_options(given, SinkOptions, _REFUSED)
    lake = lake_address(
        given, environment_lake, 'Missing required configuration "bootstrap.servers" which has no default value'
    )
    ignored = ignored_settings(given, _HONOURED)
    return SinkOptions(lake, **read, txn=txn, warnings=(ignored,) if ignored else (), store=lake_store_options(given))


def _txn(given: Mapping[str, str]) -> WriteId | None:
    read = read_options(given, WriteId, {})
    if not read:
        return None
    if len(read) == 1:
        raise InvalidOptionError(
            "Options 'txnAppId' and 'txnVersion' go together: one without the other can't tell a repeated write. "
            "Set both or neither."
        )
    if not read["app_id"].strip():
        raise InvalidOptionError("Option 'txnAppId' is empty. Give the application a name of its own.")
    return WriteId(**read)


def check_columns(columns: Iterable[tuple[str, str]], options: SinkOptions) -> None:
    """Refuse columns that the sink can't write, with Kafka's sink's words. Raises InvalidOptionError.

    `columns` are names and types in order, types as Spark's `DataType.simpleString` writes them. Names are
    case-sensitive and the first of equal names counts. Columns that the sink does not know have no effect, nor has
    `columns`, a typed topic's fields, beside `value`.
    """
    types: dict[str, str] = {}
    for name, kind in columns:
        types.setdefault(name, kind)
    if options.topic is None:
        if "topic" not in types:
            raise InvalidOptionError(
                "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
            )
        _check(types, "topic", ("string",))
    _check(types, "key", _BYTES)
    if "value" not in types and "columns" not in types:
        raise InvalidOptionError("Required attribute 'value' not found")
    if "value" not in types and not types["columns"].startswith("struct<"):
        raise InvalidOptionError(
            f"columns attribute unsupported type {types['columns']}. columns must be a struct of a typed topic's fields"
        )
    _check(types, "value", _BYTES)
    _check(types, "headers", (HEADERS,))
    _check(types, "partition", ("int",))
    if options.include_timestamp:
        if "timestamp" not in types:
            raise InvalidOptionError(
                "Required attribute 'timestamp' not found: the option includeTimestamp writes that column. Add it, "
                "or leave the option out to have records stamped when they are written."
            )
        _check(types, "timestamp", ("timestamp",))


def _check(types: dict[str, str], name: str, allowed: Sequence[str]) -> None:
    kind = types.get(name)
    if kind is not None and kind not in allowed:
        raise InvalidOptionError(
            f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(allowed)}"
        )
