"""The source's options, those of Spark 4.2's Kafka source: read, checked and given their defaults.

Pure: warnings are values, the environment's lake address comes in as an argument. What is refused, in which order
and with which words is the connector's (`KafkaSourceProvider`), with three differences: `lake` may replace
`kafka.bootstrap.servers`, `endingTimestamp` is refused in streaming queries instead of having no effect, and
a `maxOffsetsPerTrigger` below 1, by which a stream would stop or turn back, is refused.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.spark_options import (
    BOOTSTRAP_SERVERS,
    LAKE,
    STORE_PREFIX,
    boolean,
    ignored_settings,
    integer,
    lake_address,
    lake_store_options,
    lowered,
    spark_boolean,
)
from tidelog.log.storage.options import NO_OPTIONS, StoreOptions
from tidelog.sources import texts
from tidelog.sources.limits import Earliest, Latest, Limit, check_batch, check_order, parse_limit
from tidelog.sources.strategy import STRATEGY_KEYS, Strategy, check_strategy, parse_strategy

GROUP_ID = "kafka.group.id"
ISOLATION_LEVEL = "kafka.isolation.level"
_POLL_TIMEOUT = "kafkaconsumer.polltimeoutms"

DEFAULT_MAX_TRIGGER_DELAY = "15m"
DEFAULT_FETCH_RETRIES = "3"
DEFAULT_FETCH_RETRY_INTERVAL_MS = "1000"

_ISOLATION_LEVELS = ("READ_UNCOMMITTED", "READ_COMMITTED")
_HONOURED = (BOOTSTRAP_SERVERS, GROUP_ID, ISOLATION_LEVEL)

_DURATION = re.compile(r"(-?[0-9]+)([a-z]+)?")
_MICROS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


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
    fail_on_data_loss: bool
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    include_headers: bool
    include_columns: bool
    group_id: str | None
    group_id_prefix: str
    fetch_attempts: int
    fetch_retry_interval_ms: int
    warnings: tuple[str, ...]
    store: StoreOptions = NO_OPTIONS

    def reading_group(self, unique: str) -> str:
        """The group id that messages name: the caller's, or its prefix and a name of this query's own."""
        return self.group_id if self.group_id is not None else f"{self.group_id_prefix}-{unique}"


def parse_batch(options: Mapping[str, str], environment_lake: str | None) -> SourceOptions:
    """Options of a batch query: from the earliest offset to the latest one unless they say otherwise.

    `environment_lake` is TIDELOG_LAKE or None. Raises InvalidOptionError.
    """
    given = lowered(options)
    starting = parse_limit(given, "starting", Earliest())
    ending = parse_limit(given, "ending", Latest())
    check_batch(starting, ending)
    ignored = [
        f"{name} option ignored in batch queries"
        for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
        if name.lower() in given
    ]
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
    parsed = _parse(given, environment_lake, starting, Latest(), "spark-kafka-source", [])
    least = given.get("minoffsetspertrigger")
    return replace(
        parsed,
        max_offsets_per_trigger=_positive(given, "maxOffsetsPerTrigger", 64),
        min_offsets_per_trigger=integer(least, 64, "minOffsetsPerTrigger") if least is not None else None,
        max_trigger_delay_ms=_duration_ms(given.get("maxtriggerdelay", DEFAULT_MAX_TRIGGER_DELAY)),
    )


def parse_include_headers(options: Mapping[str, str]) -> bool:
    """Whether the source has the column `headers`."""
    return spark_boolean(lowered(options).get("includeheaders", "false"), "includeHeaders")


def parse_include_columns(options: Mapping[str, str]) -> bool:
    """Whether the source has the column `columns`, which typed topics have."""
    return spark_boolean(lowered(options).get("columns", "false"), "columns")


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
    min_partitions = _positive(given, "minPartitions", 32)
    max_records_per_partition = _positive(given, "maxRecordsPerPartition", 64, "maxrecordsperpartition")
    warnings = [*_group_warnings(given), *warnings]
    _check_kafka_settings(given)
    lake = lake_address(
        given, environment_lake, "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer"
    )
    _check_offsets_per_trigger(given)
    integer(given.get(_POLL_TIMEOUT, "0"), 64, "kafkaConsumer.pollTimeoutMs")
    ignored = ignored_settings(given, _HONOURED, also=(_POLL_TIMEOUT,))
    return SourceOptions(
        lake=lake,
        strategy=parse_strategy(given),
        starting=starting,
        ending=ending,
        fail_on_data_loss=boolean(given.get("failondataloss", "true"), "failOnDataLoss"),
        min_partitions=min_partitions,
        max_records_per_partition=max_records_per_partition,
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        max_trigger_delay_ms=_duration_ms(DEFAULT_MAX_TRIGGER_DELAY),
        include_headers=parse_include_headers(given),
        include_columns=parse_include_columns(given),
        group_id=given.get(GROUP_ID),
        group_id_prefix=given.get("groupidprefix", group_id_prefix),
        fetch_attempts=_number(given, "fetchOffset.numRetries", DEFAULT_FETCH_RETRIES, 32),
        fetch_retry_interval_ms=_number(given, "fetchOffset.retryIntervalMs", DEFAULT_FETCH_RETRY_INTERVAL_MS, 64),
        warnings=(*warnings, ignored) if ignored else tuple(warnings),
        store=lake_store_options(given),
    )


def _positive(given: Mapping[str, str], name: str, bits: int, said: str | None = None) -> int | None:
    """A number above 0, or None when it isn't given; `said` is how the connector writes the name."""
    text = given.get(name.lower())
    if text is None:
        return None
    number = integer(text, bits, name)
    if number <= 0:
        raise InvalidOptionError(f"{said or name} must be positive")
    return number


def _group_warnings(given: Mapping[str, str]) -> list[str]:
    if GROUP_ID not in given:
        return []
    return [texts.CUSTOM_GROUP_ID, *([texts.GROUP_ID_PREFIX_IGNORED] if "groupidprefix" in given else [])]


def _check_kafka_settings(given: Mapping[str, str]) -> None:
    """Refuse the consumer settings that Kafka's source refuses, and an isolation level that there isn't."""
    refused = {
        "kafka.auto.offset.reset": texts.AUTO_OFFSET_RESET,
        "kafka.key.deserializer": texts.KEY_DESERIALIZER,
        "kafka.value.deserializer": texts.VALUE_DESERIALIZER,
        "kafka.enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
        "kafka.interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
    }
    for name, text in refused.items():
        if name in given:
            raise InvalidOptionError(text)
    level = given.get(ISOLATION_LEVEL, "read_uncommitted").upper()
    if level not in _ISOLATION_LEVELS:
        raise InvalidOptionError(
            f"No enum constant org.apache.kafka.common.IsolationLevel.{level}. Set '{ISOLATION_LEVEL}' to "
            "read_committed or read_uncommitted: a reader sees committed records only, by either."
        )


def _number(given: Mapping[str, str], name: str, default: str, bits: int) -> int:
    return integer(given.get(name.lower(), default), bits, name)


def _check_offsets_per_trigger(given: Mapping[str, str]) -> None:
    """Refuse a minimum above the maximum; in batch queries too, where neither has an effect."""
    if "minoffsetspertrigger" in given and "maxoffsetspertrigger" in given:
        least = integer(given["minoffsetspertrigger"], 64, "minOffsetsPerTrigger")
        most = integer(given["maxoffsetspertrigger"], 64, "maxOffsetsPerTrigger")
        if least > most:
            raise InvalidOptionError(
                f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most})."
            )


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
