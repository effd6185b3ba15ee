"""Whether offsets can be committed at all, whoever commits them."""

from collections.abc import Callable, Mapping
from typing import Final

from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.log.decisions import require_partition
from tidelog.log.errors import OffsetMetadataTooLargeError, OffsetOutOfRangeError, UnknownTopicError
from tidelog.log.state import TopicState

# Kafka's `offset.metadata.max.bytes`.
MOST_METADATA_BYTES: Final = 4096


def check_values(offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
    """Refuse offsets and metadata that no partition could have.

    Raises `OffsetOutOfRangeError`, `OffsetMetadataTooLargeError` (Kafka's `offset.metadata.max.bytes`, 4096).
    """
    for (topic, partition), committed in offsets.items():
        offset, size = committed.offset, len(committed.metadata.encode(errors="surrogatepass"))
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            raise OffsetOutOfRangeError(
                f"Offset {offset!r} of topic '{topic}', partition {partition} can't be committed: a committed offset"
                " is that of the next record to read, a whole number from 0. Commit the last offset read plus 1."
            )
        if size > MOST_METADATA_BYTES:
            raise OffsetMetadataTooLargeError(
                f"The metadata of the offset of topic '{topic}', partition {partition} have {size} bytes; an offset"
                f" carries at most {MOST_METADATA_BYTES}. Keep them elsewhere, and commit their name."
            )


def check_places(offsets: Mapping[TopicPartition, CommittedOffset], look: Callable[[str], TopicState | None]) -> None:
    """Refuse offsets of partitions that are not there, or past their end. `look` gives a topic's state by name.

    Raises `UnknownTopicError`, `UnknownPartitionError`, `OffsetOutOfRangeError`.
    """
    states = {topic: look(topic) for topic in sorted({topic for topic, _ in offsets})}
    for (topic, partition), committed in offsets.items():
        state = states[topic]
        if state is None:
            raise UnknownTopicError(
                f"Topic '{topic}' does not exist, so no offset of it can be committed. Create it, or drop the offset."
            )
        require_partition(state, topic, partition)
        if committed.offset > state.end(partition):
            raise OffsetOutOfRangeError(
                f"Offset {committed.offset} of topic '{topic}', partition {partition} can't be committed: the partition"
                f" ends at {state.end(partition)}, and a group can't have read more than there is. Commit at most that."
            )
