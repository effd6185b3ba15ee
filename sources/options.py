"""The source's options, those of Spark 4.2's Kafka source: read, checked and given their defaults.

Pure: warnings are values, the environment's lake address comes in as an argument. What is refused, and with which
words, is the connector's (`KafkaSourceProvider`), with three differences: `lake` may replace `kafka.bootstrap.servers`,
`endingTimestamp` is refused in streaming queries instead of having no effect, and a `maxOffsetsPerTrigger` below 1, by
which a stream would stop or turn back, is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.keys import FieldKey, key, keys_of
from tidelog.log.base.typed_values import Flag, ReadBy, Text, Whole
from tidelog.log.spark_options import (
    BOOTSTRAP_SERVERS,
    LAKE,
    LAKE_OPTION,
    STORE_PREFIX,
    OptionMapFlag,
    ignored_settings,
    lake_address,
    lake_store_options,
    lowered,
    read_option,
    read_options,
)
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions
from tidelog.sources import kafka_messages
from tidelog.sources.limits import Earliest, Latest, Limit, check_batch, check_order, parse_limit
from tidelog.sources.strategy import STRATEGY_KEYS, Strategy, check_strategy, parse_strategy

GROUP_ID = "kafka.group.id"
ISOLATION_LEVEL = "kafka.isolation.level"

_HONOURED = (BOOTSTRAP_SERVERS, GROUP_ID, ISOLATION_LEVEL)
# Consumer settings that Kafka's source refuses.
_REFUSED: Final = {
    "kafka.auto.offset.reset": kafka_messages.AUTO_OFFSET_RESET,
    "kafka.key.deserializer": kafka_messages.KEY_DESERIALIZER,
    "kafka.value.deserializer": kafka_messages.VALUE_DESERIALIZER,
    "kafka.enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "kafka.interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}
_LONG: Final = Whole(bits=64)
_DURATION: Final = re.compile(r"(-?[0-9]+)([a-z]+)?")
_MICROS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


@dataclass(frozen=True)
class _Positive(Whole):
    """A number above 0. `said`: how the connector writes the option's name."""

    said: str = ""

    def parse(self, value: Any) -> int:
        number = super().parse(value)
        if number <= 0:
            raise InvalidOptionError(f"{self.said} must be positive")
        return number


def _duration_ms(text: str) -> int:
    """Spark's time strings: a number and us, ms (when it has no unit), s, m, min, h or d."""
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise _bad_duration(f"Failed to parse time string: {text}")
    unit = match.group(2) or "ms"
    if unit not in _MICROS:
        raise _bad_duration(f'Invalid suffix: "{unit}"')
    micros = int(match.group(1)) * _MICROS[unit]
    return micros // 1_000 if micros >= 0 else -(-micros // 1_000)


def _bad_duration(why: str) -> InvalidOptionError:
    return InvalidOptionError(
        "Time must be specified as seconds (s), milliseconds (ms), microseconds (us), minutes (m or min), hour (h), "
        f"or day (d). E.g. 50s, 100ms, or 250us.\n{why}"
    )


def _isolation_level(text: str) -> str:
    level = text.upper()
    if level not in ("READ_UNCOMMITTED", "READ_COMMITTED"):
        raise InvalidOptionError(
            f"No enum constant org.apache.kafka.common.IsolationLevel.{level}. Set '{ISOLATION_LEVEL}' to "
            "read_committed or read_uncommitted: a reader sees committed records only, by either."
        )
    return level


@dataclass(frozen=True)
class SourceOptions:
    """What a query asks of the source.

    `min_partitions` and `max_records_per_partition` shape tasks as Kafka's source does; without them reads are
    split by bytes. `max_offsets_per_trigger`, `min_offsets_per_trigger` and `max_trigger_delay_ms` count in
    streaming queries only. `group_id` is the caller's, None when there is none. `warnings` are for the caller to
    log once. `store`: how to reach the lake's store.
    """

    lake: str
    strategy: Strategy
    starting: Limit
    ending: Limit
    fail_on_data_loss: bool = key("failOnDataLoss", True, Flag(), "whether missing records end the query")
    max_offsets_per_trigger: int | None = key(
        "maxOffsetsPerTrigger",
        None,
        _Positive(bits=64, said="maxOffsetsPerTrigger"),
        "the most records in a micro-batch of a stream",
    )
    min_offsets_per_trigger: int | None = key(
        "minOffsetsPerTrigger", None, _LONG, "how many records a micro-batch waits for"
    )
    max_trigger_delay_ms: int = key(
        "maxTriggerDelay",
        15 * 60_000,
        ReadBy("a time such as 15m", _duration_ms),
        "how long it waits for them",
        unset="`15m`",
    )
    min_partitions: int | None = key(
        "minPartitions",
        None,
        _Positive(bits=32, said="minPartitions"),
        "into how many tasks reading is split at least; by bytes, unless this or the next one is set",
    )
    max_records_per_partition: int | None = key(
        "maxRecordsPerPartition",
        None,
        _Positive(bits=64, said="maxrecordsperpartition"),
        "the most records of a task",
    )
    include_headers: bool = key(
        "includeHeaders", False, OptionMapFlag(), "a column `headers`, NULL for a record without any"
    )
    include_columns: bool = key(
        "columns",
        False,
        OptionMapFlag(),
        "a column `columns`, the fields of a typed topic's values"
        " ([schemas.md](schemas.md#spark-and-other-engines)), as they are when the query starts",
    )
    group_id: str | None = key(
        GROUP_ID,
        None,
        Text(),
        "the group whose offsets show the query's progress; the query itself never reads them",
    )
    group_id_prefix: str = key(
        "groupIdPrefix",
        "spark-kafka-source",
        Text(),
        "accepted and checked; it changes nothing",
        unset="`spark-kafka-source`, of a batch `spark-kafka-relation`",
    )
    fetch_attempts: int = key("fetchOffset.numRetries", 3, Whole(bits=32), "how often offsets are asked for")
    fetch_retry_interval_ms: int = key("fetchOffset.retryIntervalMs", 1000, _LONG, "the pause between, in ms")
    warnings: tuple[str, ...] = ()
    store: StoreOptions = NO_OPTIONS

    def reading_group(self, unique: str) -> str:
        """The group id that messages name: the caller's, or its prefix and a name of this query's own."""
        return self.group_id if self.group_id is not None else f"{self.group_id_prefix}-{unique}"


_FIELDS: Final = keys_of(SourceOptions)
_ISOLATION: Final = FieldKey(
    ISOLATION_LEVEL, ReadBy("an isolation level", _isolation_level), "accepted and checked; it changes nothing"
)
_POLL_TIMEOUT: Final = FieldKey("kafkaConsumer.pollTimeoutMs", _LONG, "accepted and checked; it changes nothing")
# What `strategy` and `limits` read: (option, default in words, meaning).
_STRATEGY_AND_LIMITS: Final = (
    ("subscribe", "", "topics, with commas between; this option, or one of the next two"),
    (
        "subscribePattern",
        "",
        "a pattern of topics' names. A topic that can't be opened fails the query, and the error names it; a query"
        " whose pattern excludes that topic goes on",
    ),
    ("assign", "", "partitions as JSON; those that don't exist are left out"),
    ("startingOffsets", "`earliest`, of a stream `latest`", "`earliest`, `latest` or JSON"),
    ("endingOffsets", "`latest`", "`latest` or JSON; a stream has no end"),
    ("startingTimestamp", "", "ms since the epoch, for all partitions"),
    ("endingTimestamp", "", "ms since the epoch, for all partitions"),
    ("startingOffsetsByTimestamp", "", "ms since the epoch, as JSON"),
    ("endingOffsetsByTimestamp", "", "ms since the epoch, as JSON"),
    ("startingCut", "", "a cut's name: what came after it; of a partition that it has not, all"),
    (
        "endingCut",
        "",
        "a cut's name: what it holds, as the topic has it now; a stream reads up to it, and then waits",
    ),
    (
        "startingOffsetsByTimestampStrategy",
        "`error`",
        "where a partition without such a record starts: `error` or `latest`",
    ),
)
SOURCE_OPTIONS: Final = (
    LAKE_OPTION,
    *(FieldKey(name, Text(), doc, unset=usual) for name, usual, doc in _STRATEGY_AND_LIMITS),
    *_FIELDS.values(),
    _ISOLATION,
    _POLL_TIMEOUT,
)
# They count in streaming queries only.
_PER_TRIGGER: Final = tuple(
    _FIELDS[name] for name in ("max_offsets_per_trigger", "min_offsets_per_trigger", "max_trigger_delay_ms")
)


def parse_batch(options: Mapping[str, str], environment_lake: str | None) -> SourceOptions:
    """Options of a batch query: from the earliest offset to the latest one unless they say otherwise.

    `environment_lake` is TIDELOG_LAKE or None. Raises InvalidOptionError.
    """
    given = lowered(options)
    starting = parse_limit(given, "starting", Earliest())
    ending = parse_limit(given, "ending", Latest())
    check_batch(starting, ending)
    ignored = [f"{one.name} option ignored in batch queries" for one in _PER_TRIGGER if one.name.lower() in given]
    _check_offsets_per_trigger(given)
    given = {name: value for name, value in given.items() if name not in {one.name.lower() for one in _PER_TRIGGER}}
    parsed = _parse(given, environment_lake, starting, ending, "spark-kafka-relation", ignored)
    check_order(starting, ending)
    return parsed


def parse_stream(options: Mapping[str, str], environment_lake: str | None) -> SourceOptions:
    """Options of a streaming query: a new one starts at the latest offset unless they say otherwise.

    `environment_lake` is TIDELOG_LAKE or None. Raises InvalidOptionError.
    """
    given = lowered(options)
    if "endingoffsets" in given:
        raise InvalidOptionError("ending offset not valid in streaming queries")
    if "endingoffsetsbytimestamp" in given or "endingtimestamp" in given:
        raise InvalidOptionError("ending timestamp not valid in streaming queries")
    starting = parse_limit(given, "starting", Latest())
    ending = parse_limit({name: value for name, value in given.items() if name == "endingcut"}, "ending", Latest())
    _check_offsets_per_trigger(given)
    return _parse(given, environment_lake, starting, ending, "spark-kafka-source", [])


def parse_include_headers(options: Mapping[str, str]) -> bool:
    """Whether the source has the column `headers`."""
    return bool(read_option(lowered(options), _FIELDS["include_headers"]))


def parse_include_columns(options: Mapping[str, str]) -> bool:
    """Whether the source has the column `columns`, which typed topics have."""
    return bool(read_option(lowered(options), _FIELDS["include_columns"]))


def parse_place(options: Mapping[str, str], environment_lake: str | None) -> SourceOptions:
    """Which topics a query reads, batch or streaming, and how: all that its schema depends on.

    Raises InvalidOptionError.
    """
    given = lowered(options)
    names = (*STRATEGY_KEYS, LAKE, BOOTSTRAP_SERVERS, "fetchoffset.numretries", "fetchoffset.retryintervalms")
    kept = {name: value for name, value in given.items() if name in names or name.startswith(STORE_PREFIX)}
    return parse_batch(kept, environment_lake)


def _parse(
    given: Mapping[str, str],
    environment_lake: str | None,
    starting: Limit,
    ending: Limit,
    group_id_prefix: str,
    warnings: list[str],
) -> SourceOptions:
    check_strategy(given)
    read = read_options(given, SourceOptions, _REFUSED)
    for checked in (_ISOLATION, _POLL_TIMEOUT):
        read_option(given, checked)
    warnings = [*_group_warnings(given), *warnings]
    lake = lake_address(
        given, environment_lake, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
    )
    ignored = ignored_settings(given, _HONOURED, also=(_POLL_TIMEOUT.name.lower(),))
    return SourceOptions(
        lake=lake,
        strategy=parse_strategy(given),
        starting=starting,
        ending=ending,
        **{"group_id_prefix": group_id_prefix, **read},
        warnings=(*warnings, ignored) if ignored else tuple(warnings),
        store=lake_store_options(given),
    )


def _group_warnings(given: Mapping[str, str]) -> list[str]:
    if GROUP_ID not in given:
        return []
    return [
        kafka_messages.CUSTOM_GROUP_ID,
        *([kafka_messages.GROUP_ID_PREFIX_IGNORED] if "groupidprefix" in given else []),
    ]


def _check_offsets_per_trigger(given: Mapping[str, str]) -> None:
    """Refuse a minimum above the maximum; in batch queries too, where neither has an effect."""
    if "minoffsetspertrigger" in given and "maxoffsetspertrigger" in given:
        most, least = (read_option(given, one) for one in _PER_TRIGGER[:2])
        if least > most:
            raise InvalidOptionError(
                f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})."
            )
