"""From where a partition is read: an offset, a logical one, the group's, or what `auto.offset.reset` says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.clients.consumer.assignment import TopicPartitionKey
from tidelog.clients.values.errors import KafkaError
from tidelog.clients.values.partitions import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, OFFSET_STORED
from tidelog.groups.model import CommittedOffset
from tidelog.log.base.errors import TidelogError
from tidelog.log.state.topic_state import TopicState

# librdkafka's RD_KAFKA_OFFSET_TAIL(n): n records before the end.
OFFSET_TAIL_BASE: Final = -2000
# Start as `auto.offset.reset` says, whatever is committed: what was asked for is out of range, for the reason kept.
RESET: Final = -1002


@dataclass(frozen=True, slots=True)
class Start:
    """The offset to start from, and the group's committed one (OFFSET_INVALID: none, or it was not looked up)."""

    offset: int
    committed: int = OFFSET_INVALID


def needs_committed(start: int) -> bool:
    """Whether the group's offsets must be known."""
    return start in (OFFSET_STORED, OFFSET_INVALID)


def find_start(
    place: TopicPartitionKey,
    start: int,
    state: TopicState,
    committed: Mapping[TopicPartitionKey, CommittedOffset] | TidelogError,
    reset: str,
    why: str = "",
) -> Start | KafkaError:
    """Where to start reading a partition; `reset` is earliest, latest or error.

    `committed`: the group's offsets, or why they can't be read, which is raised where they are needed. `why`: the
    reason of a RESET. A KafkaError (`_AUTO_OFFSET_RESET`) when the policy is to say so. An offset out of
    range is not noticed here.
    """
    partition = place[1]
    low, high = state.start(partition), state.end(partition)
    if start >= 0:
        return Start(start)
    if start == OFFSET_BEGINNING:
        return Start(low)
    if start == OFFSET_END:
        return Start(high)
    if start <= OFFSET_TAIL_BASE:
        return Start(max(low, high - (OFFSET_TAIL_BASE - start)))
    committed_offset = None
    if needs_committed(start):
        if isinstance(committed, TidelogError):
            raise committed
        committed_offset = committed.get(place)
        if committed_offset is not None:
            return Start(committed_offset.offset, committed_offset.offset)
        why = "no previously committed offset available"
    if reset == "error":
        return KafkaError(
            KafkaError._AUTO_OFFSET_RESET,
            f"{place[0]} [{partition}]: {why}, and auto.offset.reset is error. Commit or assign an offset from {low} to"
            f" {high}, or set auto.offset.reset to earliest or latest.",
        )
    return Start(low if reset == "earliest" else high)
