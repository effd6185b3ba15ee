"""The rules that options of the Spark source and of the Spark sink share.

Numbers and booleans are read as Java reads them for Spark's Kafka connector, with Java's messages.
"""

from collections.abc import Collection, Mapping

from tidelog.log.base.errors import InvalidConfigError, InvalidOptionError
from tidelog.log.base.typed_values import Dialect, Flag, Problem, Whole, nearest, reason
from tidelog.log.storage.addresses import why_wrong
from tidelog.log.storage.options import StoreOptions, store_options

LAKE = "lake"
BOOTSTRAP_SERVERS = "kafka.bootstrap.servers"
KAFKA_PREFIX = "kafka."
STORE_PREFIX = "lake."

# The names that the source and the sink take. One that the other side takes is no mistake: programs share options.
SOURCE_OPTIONS = (
    LAKE,
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeHeaders",
    "columns",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
SINK_OPTIONS = (
    LAKE,
    "topic",
    "includeTimestamp",
    "acks",
    "compression",
    "partitioner",
    "txnAppId",
    "txnVersion",
    "requestId",
)
# What Spark itself hands to every source and sink.
_SPARKS_OWN = ("path", "paths", "checkpointLocation", "queryName")
_KNOWN = {name.lower(): name for name in (*SOURCE_OPTIONS, *SINK_OPTIONS, *_SPARKS_OWN)}
_NEAR = 0.7
_NEARER = 0.85  # Kafka's clients have settings of similar names

_JAVA: Dialect = {
    Problem.NO_WHOLE_NUMBER: 'For input string: "{value}"',
    Problem.NO_FLAG: 'For input string: "{value}"',
}
_OPTION_MAP: Dialect = {Problem.NO_FLAG: "{value} is not a boolean string"}


def lowered(options: Mapping[str, str]) -> dict[str, str]:
    """The options by their names in lower case: names are case-insensitive, values are not."""
    return {name.lower(): value for name, value in options.items()}


def integer(text: str, bits: int, option: str | None = None) -> int:
    """The number that Java's `Integer.parseInt` (32 bits) or `Long.parseLong` (64 bits) reads, untrimmed.

    Raises InvalidOptionError with Java's message, which names no option, and then the option that is wrong.
    """
    kind = Whole(bits=bits)
    try:
        return kind.parse(text)
    except ValueError as e:
        advice = f". Set option '{option}' to {kind.allowed}, without spaces." if option else ""
        raise InvalidOptionError(f"{reason(e, _JAVA)}{advice}") from None


def boolean(text: str, option: str) -> bool:
    """`true` or `false` in any case, untrimmed. Raises InvalidOptionError with Scala's message and the option."""
    return _boolean(text, _JAVA, option)


def spark_boolean(text: str, option: str) -> bool:
    """The same with the message of Spark's option maps (`CaseInsensitiveStringMap.getBoolean`)."""
    return _boolean(text, _OPTION_MAP, option)


def lake_address(options: Mapping[str, str], environment_lake: str | None, missing: str) -> str:
    """Where the lake is: `lake`, else `kafka.bootstrap.servers`, else the environment's TIDELOG_LAKE, trimmed.

    `options` have lower-case names; `missing` is what Kafka's connector says when there is no address. Raises
    InvalidOptionError when there is none, or one that leads to no lake.
    """
    for name in (LAKE, BOOTSTRAP_SERVERS):
        if name in options:
            return _checked_address(options[name], f"Option '{name}'")
    if environment_lake is not None and environment_lake.strip():
        return _checked_address(environment_lake, "Environment variable TIDELOG_LAKE")
    raise InvalidOptionError(
        f"{missing}. Set the option 'lake' to the lake's folder or URI; '{BOOTSTRAP_SERVERS}' and the environment "
        "variable TIDELOG_LAKE may hold it too."
    )


def lake_store_options(options: Mapping[str, str]) -> StoreOptions:
    """The options of the lake's store, `lake.s3.endpoint` and others. Raises InvalidOptionError for an unknown one."""
    try:
        return store_options(options)
    except InvalidConfigError as e:
        raise InvalidOptionError(str(e)) from None


def unknown_options(options: Mapping[str, str]) -> list[str]:
    """A warning for each option that neither side of Spark's Kafka connector, nor tidelog, nor Spark has a use for.

    It names the known option that is nearest, where one is near: most often it is what was meant. Names that begin with
    `kafka.` are `ignored_settings`, those with `lake.` are refused by `lake_store_options`.
    """
    unknown = [
        name for name in lowered(options) if name not in _KNOWN and not name.startswith((KAFKA_PREFIX, STORE_PREFIX))
    ]
    names = {**_KNOWN, BOOTSTRAP_SERVERS: BOOTSTRAP_SERVERS}
    return [f"Unknown option '{name}' is ignored.{_meant(name, names, _NEAR)}" for name in unknown]


def _meant(name: str, known: Mapping[str, str], cutoff: float) -> str:
    """The question whether the nearest of the known names was meant; nothing when none is near."""
    near = nearest(name, known, cutoff)
    return f" Did you mean '{known[near]}'?" if near else ""


def ignored_settings(
    options: Mapping[str, str], honoured: Collection[str], *, also: Collection[str] = ()
) -> str | None:
    """One warning that names the Kafka client settings nothing here needs, or None when there are none.

    One that is spelt nearly as a setting that counts is named with that one.

    `also` are options outside `kafka.` that set up a Kafka client.
    """
    ignored = sorted(
        name for name in options if name in also or (name.startswith(KAFKA_PREFIX) and name not in honoured)
    )
    if not ignored:
        return None
    counting = {name: name for name in honoured}
    meant = "".join(_meant(name, counting, _NEARER) for name in ignored)
    return f"Ignored, since there is no Kafka client to configure: {', '.join(ignored)}.{meant}"


def _checked_address(text: str, where: str) -> str:
    address = text.strip()
    why = why_wrong(address)
    if why:
        raise InvalidOptionError(f"{where}: {why}")
    return address


def _boolean(text: str, dialect: Dialect, option: str) -> bool:
    kind = Flag()
    try:
        return kind.parse(text)
    except ValueError as e:
        why = reason(e, dialect)
        raise InvalidOptionError(f"{why}. Set option '{option}' to {kind.allowed}, without spaces.") from None
