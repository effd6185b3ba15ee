"""Where a query starts and where it ends: six kinds of limits, and how they become offsets.

Resolution has three steps so that it stays free of I/O: `times_wanted` says which timestamps to look up,
`resolve` names an offset for every partition (-1 and -2 stay open), `bind` puts the log's bounds in their place.
Sources: `KafkaSourceProvider.getKafkaOffsetRangeLimit`, `KafkaOffsetReaderAdmin`.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.typed_values import Whole
from tidelog.sources.kafka_messages import partition_set
from tidelog.sources.offset_json import (
    EARLIEST,
    LATEST,
    Offsets,
    TopicPartition,
    parse_offsets,
    parse_timestamps,
)

STRATEGY_KEY = "startingoffsetsbytimestampstrategy"

Position = Literal["start", "end"]

_OFFSETS_NOT_ASSIGNED = (
    "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic partitions are created \n"
    "or deleted while the query is running. Use -1 for latest, -2 for earliest."
)
_STREAM_OFFSETS_NOT_ASSIGNED = (
    "If startingOffsets contains specific offsets, you must specify all TopicPartitions.\nUse -1 for latest, -2 for"
    " earliest, if you don't care."
)


class NoMatch(Enum):
    """What becomes of a partition without a record at or after its starting timestamp."""

    ERROR = "ERROR"
    LATEST = "LATEST"


@dataclass(frozen=True)
class Earliest:
    """Every partition's log start offset."""


@dataclass(frozen=True)
class Latest:
    """Every partition's log end offset."""


@dataclass(frozen=True)
class AtOffsets:
    """An offset for each partition; -1 the latest, -2 the earliest."""

    offsets: Offsets


@dataclass(frozen=True)
class AtTimestamps:
    """For each partition the first record at or after a timestamp, ms since the epoch."""

    timestamps: Offsets
    no_match: NoMatch


@dataclass(frozen=True)
class AtTimestamp:
    """The same timestamp for all partitions."""

    timestamp_ms: int
    no_match: NoMatch


@dataclass(frozen=True)
class AtCut:
    """Where each partition ended in a cut of that name; a partition that the cut has not is not begun there."""

    name: str


Limit = Earliest | Latest | AtOffsets | AtTimestamps | AtTimestamp | AtCut


def parse_limit(options: Mapping[str, str], position: Literal["starting", "ending"], default: Limit) -> Limit:
    """The limit that the options ask for: one timestamp, else timestamps, else offsets, else `default`.

    `options` have lower-case names. Raises InvalidOptionError with the connector's texts.
    """
    no_match = _no_match(options.get(STRATEGY_KEY, "error"))
    cut = options.get(f"{position}cut")
    if cut is not None:
        others = (f"{position}offsets", f"{position}timestamp", f"{position}offsetsbytimestamp")
        if other := next((name for name in others if name in options), None):
            raise InvalidOptionError(
                f"Options '{position}Cut' and '{other}' both say where the query {position.removesuffix('ing')}s: give"
                " one of them."
            )
        return AtCut(cut.strip())
    timestamp = options.get(f"{position}timestamp")
    if timestamp is not None:
        return AtTimestamp(_timestamp(timestamp.strip()), no_match)
    timestamps = options.get(f"{position}offsetsbytimestamp")
    if timestamps is not None:
        return AtTimestamps(parse_timestamps(timestamps.strip()), no_match)
    offsets = options.get(f"{position}offsets")
    if offsets is None:
        return default
    named: dict[str, Limit] = {"earliest": Earliest(), "latest": Latest()}
    return named.get(offsets.strip().lower()) or AtOffsets(parse_offsets(offsets.strip()))


def check_batch(starting: Limit, ending: Limit) -> None:
    """Refuse a batch query that starts at the latest offset or ends at the earliest one."""
    if starting == Latest():
        raise InvalidOptionError("starting offset can't be latest for batch queries on Kafka")
    if isinstance(starting, AtOffsets):
        for partition in _open(starting, LATEST):
            raise InvalidOptionError(f"startingOffsets for {partition} can't be latest for batch queries on Kafka")
    if ending == Earliest():
        raise InvalidOptionError("ending offset can't be earliest for batch queries on Kafka")
    if isinstance(ending, AtOffsets):
        for partition in _open(ending, EARLIEST):
            raise InvalidOptionError(f"ending offset for {partition} can't be earliest for batch queries on Kafka")


def check_order(starting: Limit, ending: Limit) -> None:
    """Refuse limits of one kind that name other partitions, or that start after they end."""
    if isinstance(starting, AtOffsets) and isinstance(ending, AtOffsets):
        _check_order("offset", starting.offsets, ending.offsets)
    if isinstance(starting, AtTimestamps) and isinstance(ending, AtTimestamps):
        _check_order("timestamp", starting.timestamps, ending.timestamps)


def check_resolved_order(starts: Offsets, ends: Offsets) -> None:
    """Refuse a batch query that starts after it ends, both limits bound: behind the log's end, for one."""
    for partition in sorted(starts):
        if starts[partition] > ends[partition]:
            raise InvalidOptionError(
                f"The resolved start offset {starts[partition]} is greater than the resolved end offset"
                f" {ends[partition]} for topic {partition.topic} partition {partition.partition}.\n"
                "Please investigate in this order:\n"
                "1. Check whether start offset is set beyond the end offset or the latest available offset after "
                "resolution. Possible inputs are:\n"
                "  (a) Start offset is set to a timestamp, and the end offset is set to an index of offset.\n"
                "  (b) Start offset is set to an index of offset, and the end offset is set to a timestamp.\n"
                "  (c) Start offset is set, and the end offset is set to latest.\n"
                "2. Check whether the topic was deleted and created again."
            )


def among(limit: Limit, partitions: Set[TopicPartition]) -> Limit:
    """The limit as if it had been given for these partitions alone."""
    match limit:
        case AtOffsets(offsets):
            return AtOffsets({tp: offset for tp, offset in offsets.items() if tp in partitions})
        case AtTimestamps(timestamps, no_match):
            return AtTimestamps({tp: ms for tp, ms in timestamps.items() if tp in partitions}, no_match)
        case _:
            return limit


def depends_on_now(limit: Limit) -> bool:
    """Whether asking again later may give a later start although nothing was deleted.

    Spark asks a Python source for its start again when it repeats a first batch that was not committed.
    """
    match limit:
        case Latest():
            return True
        case AtTimestamp(_, no_match) | AtTimestamps(_, no_match):
            return no_match is NoMatch.LATEST
        case AtOffsets(offsets):
            return LATEST in offsets.values()
        case Earliest() | AtCut():
            return False


def times_wanted(limit: Limit, assigned: Set[TopicPartition]) -> dict[TopicPartition, int]:
    """The timestamps to look up before `resolve`, ms since the epoch."""
    match limit:
        case AtTimestamp(timestamp_ms, _):
            return dict.fromkeys(sorted(assigned), timestamp_ms)
        case AtTimestamps(timestamps, _):
            return {partition: ms for partition, ms in timestamps.items() if partition in assigned}
        case _:
            return {}


def resolve(
    limit: Limit,
    assigned: Set[TopicPartition],
    by_time: Mapping[TopicPartition, int | None],
    position: Position,
    *,
    streaming: bool,
) -> dict[TopicPartition, int]:
    """An offset for every assigned partition; -1 and -2 where the log's bounds decide.

    `by_time` answers `times_wanted`: the first offset at or after, or None. No match is the latest offset at the
    end, and at the start what the limit's strategy says. Raises InvalidOptionError when the limit names other
    partitions than those assigned, or by the strategy `error`.
    """
    match limit:
        case Earliest():
            return dict.fromkeys(sorted(assigned), EARLIEST)
        case Latest():
            return dict.fromkeys(sorted(assigned), LATEST)
        case AtCut(name):
            raise ValueError(f"the offsets of cut {name!r} are for its caller to find")
        case AtOffsets(offsets):
            if offsets.keys() != assigned:
                words = _STREAM_OFFSETS_NOT_ASSIGNED if streaming else _OFFSETS_NOT_ASSIGNED
                raise InvalidOptionError(words + _compared(offsets, assigned))
            return dict(offsets)
        case AtTimestamps(timestamps, no_match):
            if timestamps.keys() != assigned:
                raise InvalidOptionError(
                    f"Partitions specified for Kafka timestamp based {position} offsets don't match what are assigned."
                    " Maybe topic partitions are created \nor deleted while the query is running, or you didn't specify"
                    f" all the partitions.{_compared(timestamps, assigned)}"
                )
            return _at_times(timestamps, by_time, position, no_match)
        case AtTimestamp(timestamp_ms, no_match):
            return _at_times(dict.fromkeys(sorted(assigned), timestamp_ms), by_time, position, no_match)


def bind(offsets: Offsets, bounds: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
    """The offsets with -2 and -1 replaced by the partition's log start and log end offset."""
    return {
        partition: bounds[partition][0 if offset == EARLIEST else 1] if offset < 0 else offset
        for partition, offset in offsets.items()
    }


def at_cut(ends: Offsets, bounds: Mapping[TopicPartition, tuple[int, int]]) -> dict[TopicPartition, int]:
    """The offsets where partitions ended in a cut, within the log as it is now; its start where the cut has none."""
    return {tp: max(low, min(ends.get(tp, low), high)) for tp, (low, high) in bounds.items()}


def _at_times(
    timestamps: Offsets,
    by_time: Mapping[TopicPartition, int | None],
    position: Position,
    no_match: NoMatch,
) -> dict[TopicPartition, int]:
    offsets = {}
    for partition in sorted(timestamps):
        offset = by_time[partition]
        if offset is None:
            if position == "start" and no_match is NoMatch.ERROR:
                raise InvalidOptionError(
                    f"No offset matched from request of topic-partition {partition} and timestamp"
                    f" {timestamps[partition]}."
                )
            offset = LATEST
        offsets[partition] = offset
    return offsets


def _check_order(kind: str, starts: Offsets, ends: Offsets) -> None:
    if starts.keys() != ends.keys():
        raise InvalidOptionError(
            "The specified start offset and end offset should have the same topic-partitions.\n"
            f"Topic-partitions for start offset: {', '.join(map(str, sorted(starts)))}, "
            f"topic-partitions for end offset: {', '.join(map(str, sorted(ends)))}."
        )
    for partition in sorted(starts):
        start, end = starts[partition], ends[partition]
        if start > end >= 0:
            raise InvalidOptionError(
                f"The specified start {kind} {start} is greater than the end {kind} {end} for topic {partition.topic} "
                f"partition {partition.partition}."
            )


def _compared(specified: Iterable[TopicPartition], assigned: Iterable[TopicPartition]) -> str:
    return f"\nSpecified: {partition_set(specified)} Assigned: {partition_set(assigned)}"


def _open(limit: AtOffsets, which: int) -> list[TopicPartition]:
    return sorted(partition for partition, offset in limit.offsets.items() if offset == which)


def _no_match(text: str) -> NoMatch:
    try:
        return NoMatch(text.upper())
    except ValueError:
        raise InvalidOptionError(f"No value found for '{text.upper()}'") from None


def _timestamp(text: str) -> int:
    try:
        return Whole(bits=64).parse(text)
    except ValueError:
        raise InvalidOptionError(f"Expected a single long value, got {text}") from None
