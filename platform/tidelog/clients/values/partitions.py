"""TopicPartition: a partition, with an offset and what a call says about it; and whose offsets they are in a group."""

from dataclasses import dataclass
from functools import total_ordering
from typing import Final

from tidelog.clients.values.errors import KafkaError

OFFSET_BEGINNING: Final = -2
"""The log start offset."""
OFFSET_END: Final = -1
"""The log end offset."""
OFFSET_STORED: Final = -1000
"""The group's committed offset."""
OFFSET_INVALID: Final = -1001
"""No offset: not set, or not known."""

PARTITION_UA: Final = -1
"""No partition named: the partitioner decides, or all of the topic's are meant."""


@total_ordering
class TopicPartition:
    """A topic's partition with an offset, as calls take and give it.

    `offset`: an offset, or one of the OFFSET_ constants. `metadata`: what is committed beside the offset.
    `leader_epoch`: None where there is none; below 0 counts as none. `error`: a call's error for this partition, None
    when it succeeded. Two are equal, and sort, by topic and partition alone. Raises TypeError for another type.
    Source: `confluent_kafka.TopicPartition`.
    """

    __slots__ = ("error", "leader_epoch", "metadata", "offset", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int = PARTITION_UA,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        for name, number in (("partition", partition), ("offset", offset)):
            if not isinstance(number, int):
                raise TypeError(f"{name} must be int, not {type(number).__name__}")
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.metadata = metadata
        self.leader_epoch = None if leader_epoch is None or leader_epoch < 0 else leader_epoch
        self.error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return self.topic == other.topic and self.partition == other.partition

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) < (other.topic, other.partition)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self.leader_epoch},error={self.error}}}"
        )


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """A group's member (KIP-447), for `send_offsets_to_transaction`; generation -1 and member "" outside a group."""

    group_id: str
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
