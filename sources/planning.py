"""What the next micro-batch ends at, and what a batch reads: pure plans over offsets.

Sources: `KafkaMicroBatchStream` (limits per trigger, Trigger.AvailableNow), `KafkaOffsetReaderBase` (new and deleted
partitions) and `KafkaDataConsumer` (offsets that are gone) of Spark 4.2's Kafka connector.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidelog.log.base.errors import DataLossError, InvalidOptionError, TopicChangedError
from tidelog.sources.kafka_messages import (
    CUSTOM_GROUP_ID,
    DATA_LOSS,
    DATA_LOSS_TIP,
    GROUP_ID_LINES,
    offset_map,
    partition_set,
)
from tidelog.sources.offset_json import Offsets, TopicPartition
from tidelog.sources.strategy import Strategy, SubscribePattern, left_out, topics_of

# A partition's log start and log end offset.
Bounds = Mapping[TopicPartition, tuple[int, int]]


class Range(NamedTuple):
    """Offsets to read: [start, end) of one partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        """Offsets in the range; compaction may have left fewer records."""
        return self.end - self.start


@dataclass(frozen=True)
class Pace:
    """How much a micro-batch may take: the source's limits per trigger, counted in offsets."""

    min_offsets: int | None = None
    max_offsets: int | None = None
    max_delay_ms: int = 900_000

    def for_available_now(self) -> "Pace":
        """The pace without its minimum: Trigger.AvailableNow must reach its target, and nothing more comes."""
        return replace(self, min_offsets=None)


@dataclass(frozen=True)
class Admitted:
    """Where the next micro-batch ends, and when data was last let through (ms of the caller's clock)."""

    end: dict[TopicPartition, int]
    last_trigger_ms: int


@dataclass(frozen=True)
class Loss:
    """Records that are gone: what to say when the query fails over it, and when it goes on."""

    error: str
    warning: str


@dataclass(frozen=True)
class Plan:
    """What to read, sorted by topic and partition, without empty ranges; and what can't be read any more."""

    ranges: tuple[Range, ...]
    losses: tuple[Loss, ...]


def admit(
    start: Offsets, latest: Offsets, earliest: Offsets, pace: Pace, *, now_ms: int, last_trigger_ms: int
) -> Admitted:
    """Where a micro-batch from `start` ends by `pace`: at `start` to wait, at `latest`, or in between.

    `latest` holds the partitions that there are now, `earliest` at least those that `start` lacks. Below
    `min_offsets` the batch waits until `max_delay_ms` have passed since data was last let through.
    """
    if pace.min_offsets is not None:
        available = sum(end - start.get(partition, 0) for partition, end in latest.items())
        waited = now_ms - last_trigger_ms >= pace.max_delay_ms
        if not waited and available < pace.min_offsets:
            return Admitted(dict(start), last_trigger_ms)
        last_trigger_ms = now_ms
    if pace.max_offsets is None:
        return Admitted(dict(latest), last_trigger_ms)
    return Admitted(rate_limit(pace.max_offsets, start, latest, earliest), last_trigger_ms)


def rate_limit(limit: int, start: Offsets, latest: Offsets, earliest: Offsets) -> dict[TopicPartition, int]:
    """Ends that take about `limit` offsets in all, shared among partitions in proportion to what each has.

    Shares are rounded down, but those below 1 up to 1, so that a small partition is never starved; the sum may
    therefore pass the limit by less than the number of partitions. Example: 10 offsets over partitions that have
    100 and 1 are 9 and 1.
    """
    begins = {partition: start.get(partition, earliest.get(partition)) for partition in latest}
    sizes = {
        partition: end - begin
        for partition, end in latest.items()
        if (begin := begins[partition]) is not None and end > begin
    }
    total = float(sum(sizes.values()))
    ends = dict(latest)
    for partition, size in sizes.items():
        share = limit * (size / total)
        whole = math.ceil(share) if share < 1 else math.floor(share)
        ends[partition] = min(latest[partition], latest[partition] - size + whole)
    return ends


def check_checkpoint(strategy: Strategy, offsets: Offsets, *, fail_on_data_loss: bool) -> None:
    """Refuse a checkpoint, whose newest offsets are these, that is of other topics. Raises InvalidOptionError.

    A query may read more topics than it did. One that reads fewer goes on where it minds no loss, as with Kafka's
    source, unless none of its topics is left: those offsets are positions in other topics' logs.
    """
    begun = sorted({partition.topic for partition in offsets})
    left = left_out(strategy, begun)
    if not left or (len(left) < len(begun) and not fail_on_data_loss):
        return
    match strategy:
        case SubscribePattern(pattern):
            reads = f"topics by the pattern '{pattern}'"
        case _:
            reads = _of_topics(topics_of(strategy, {}))
    way = (
        "" if left == begun else " To go on without the others' records, set the source option failOnDataLoss to false."
    )
    raise InvalidOptionError(
        f"tidelog: this checkpoint is of {_of_topics(begun)}, the query reads {reads}. Offsets of one topic mean"
        " nothing in another, so nothing was read, and the checkpoint stays as it was. Give this query a"
        f" checkpointLocation of its own, or subscribe to what the checkpoint is of.{way}"
    )


def _of_topics(names: Sequence[str]) -> str:
    return f"topic{'s' if len(names) > 1 else ''} {', '.join(names)}"


def check_available_now(prefetched: Offsets, end: Offsets, latest: Offsets) -> None:
    """Refuse a micro-batch of Trigger.AvailableNow whose target moved away: partitions or records are gone.

    `prefetched` is the target fixed when the query began, `latest` what is there now. Raises TopicChangedError,
    whatever `failOnDataLoss` says.
    """
    if prefetched.keys() != end.keys():  # MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED
        raise TopicChangedError(
            "tidelog's source in Trigger.AvailableNow should provide the same topic partitions in pre-fetched offset "
            "to end offset for each microbatch. The error could be transient - restart your query, and report if you "
            f"still see the same issue.\ntopic-partitions for pre-fetched offset: {partition_set(prefetched)}, "
            f"topic-partitions for end offset: {partition_set(end)}."
        )
    if any(end[partition] > prefetched[partition] for partition in end):
        # END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED
        raise TopicChangedError(
            "For tidelog's source with Trigger.AvailableNow, end offset should have lower or equal offset per each "
            "topic partition than pre-fetched offset. The error could be transient - restart your query, and report if "
            f"you still see the same issue.\npre-fetched offset: {offset_map(prefetched)}, "
            f"end offset: {offset_map(end)}."
        )
    if not end.keys() <= latest.keys():  # LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW
        raise TopicChangedError(
            "Some of partitions in topic(s) have been lost during running query with Trigger.AvailableNow. The "
            "error could be transient - restart your query, and report if you still see the same issue.\n"
            f"topic-partitions for latest offset: {partition_set(latest)}, "
            f"topic-partitions for end offset: {partition_set(end)}"
        )
    if any(end[partition] > latest[partition] for partition in end):
        # END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW
        raise TopicChangedError(
            "Some of partitions in topic(s) report available offset which is less than end offset during running "
            "query with Trigger.AvailableNow. The error could be transient - restart your query, and report if you "
            f"still see the same issue.\nlatest offset: {offset_map(latest)}, end offset: {offset_map(end)}"
        )


def plan_stream(start: Offsets, end: Offsets, bounds: Bounds, group_id: str, *, custom_group_id: bool) -> Plan:
    """What a micro-batch reads from `start` to `end`.

    A partition that `start` lacks is new and is read from its log start offset; one that `end` lacks was deleted.
    `bounds` are those of the partitions that are there now.
    """
    added = end.keys() - start.keys()
    vanished = sorted(partition for partition in added if partition not in bounds)
    gone = start.keys() - end.keys()
    losses: list[Loss] = []
    if vanished:
        losses.append(_vanished(vanished))
    losses += [
        _late(partition, bounds[partition][0])
        for partition in sorted(added - set(vanished))
        if bounds[partition][0] > 0
    ]
    if gone:
        losses.append(deleted(gone, custom_group_id=custom_group_id))
    asked: list[Range] = []
    for partition in sorted(end.keys() - set(vanished)):
        begin, stop = start.get(partition, bounds[partition][0] if partition in bounds else 0), end[partition]
        if stop < begin:
            losses.append(_changed(partition, begin, stop))
        asked.append(Range(*partition, begin, stop))
    return _readable(asked, bounds, losses, group_id, custom_group_id=custom_group_id)


def plan_batch(start: Offsets, end: Offsets, bounds: Bounds, group_id: str, *, custom_group_id: bool) -> Plan:
    """What a batch query reads between limits that are bound and in order."""
    asked = [Range(*partition, start[partition], end[partition]) for partition in sorted(end)]
    return _readable(asked, bounds, [], group_id, custom_group_id=custom_group_id)


def judge_losses(losses: Sequence[Loss], *, fail_on_data_loss: bool) -> list[str]:
    """Warnings to log about losses; raises DataLossError for the first one under `failOnDataLoss`."""
    if losses and fail_on_data_loss:
        raise DataLossError(losses[0].error)
    return [f"{loss.warning}. {DATA_LOSS_TIP}" for loss in losses]


def _readable(
    asked: Iterable[Range], bounds: Bounds, losses: list[Loss], group_id: str, *, custom_group_id: bool
) -> Plan:
    """Cut the ranges to what is there; what is cut off is a loss."""
    ranges: list[Range] = []
    gone: list[TopicPartition] = []
    for wanted in asked:
        partition = TopicPartition(wanted.topic, wanted.partition)
        if wanted.size <= 0:
            continue
        if partition not in bounds:
            gone.append(partition)
            continue
        first, last = bounds[partition]
        start, end = max(wanted.start, first), min(wanted.end, last)
        if start >= end:
            losses.append(_unreadable(wanted, wanted.start, wanted.end, group_id))
            continue
        if wanted.start < start:
            losses.append(_unreadable(wanted, wanted.start, start, group_id))
        if end < wanted.end:
            losses.append(_unreadable(wanted, end, wanted.end, group_id))
        ranges.append(wanted._replace(start=start, end=end))
    if gone:
        losses.append(deleted(gone, custom_group_id=custom_group_id))
    return Plan(tuple(ranges), tuple(losses))


# --- losses, with the words of KAFKA_DATA_LOSS -------------------------------------------------------------


def _vanished(partitions: Iterable[TopicPartition]) -> Loss:
    named = partition_set(partitions)
    return Loss(
        f"{DATA_LOSS} Cannot find initial offsets for partitions {named}. They may have been deleted.",
        f"Cannot find earliest offsets of {named}. Some data may have been missed",
    )


def _late(partition: TopicPartition, start: int) -> Loss:
    return Loss(
        f"{DATA_LOSS} Added partition {partition} starts from {start} instead of 0.",
        f"Added partition {partition} starts from {start} instead of 0. Some data may have been missed",
    )


def deleted(partitions: Iterable[TopicPartition], *, custom_group_id: bool) -> Loss:
    """Partitions that a query read are gone."""
    named = partition_set(partitions)
    error = f"{DATA_LOSS} Partitions {named} have been deleted."
    if custom_group_id:
        return Loss("\n".join((error, *GROUP_ID_LINES)), f"{named} are gone.{CUSTOM_GROUP_ID}")
    return Loss(error, f"{named} are gone. Some data may have been missed.")


def _changed(partition: TopicPartition, start: int, end: int) -> Loss:
    return Loss(
        f"{DATA_LOSS} Partition {partition} offset was changed from {start} to {end}.\nThis could be either 1) a user "
        "error that the start offset is set beyond available offset when starting query, or 2) the "
        "topic was deleted and created again.",
        f"Partition {partition}'s offset was changed from {start} to {end}. This could be either 1) a user error that "
        "the start offset is set beyond available offset when starting query, or 2) the topic was deleted "
        "and created again.",
    )


def _unreadable(wanted: Range, start: int, end: int, group_id: str) -> Loss:
    partition = TopicPartition(wanted.topic, wanted.partition)
    return Loss(
        f"{DATA_LOSS} Could not read records in offset [{start}, {end}) for topic partition {partition}\n"
        f"with consumer group {group_id}.",
        f"Skip missing records in [{start}, {end})(GroupId: {group_id}, TopicPartition: {partition})",
    )
