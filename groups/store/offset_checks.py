"""Whether offsets can be committed at all, by any member, and whether they still mean anything."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.log.base.errors import OffsetMetadataTooLargeError, OffsetOutOfRangeError, UnknownTopicError
from tidelog.log.rules.topics import require_partition
from tidelog.log.state.topic_state import TopicState

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


def placed(
    offsets: Mapping[TopicPartition, CommittedOffset],
    look: Callable[[str], TopicState | None],
    *,
    past_end: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets with the ids of their topics. `look` gives a topic's state by name.

    Refuses partitions that are not there, and offsets past their end unless `past_end`: raises `UnknownTopicError`,
    `UnknownPartitionError`, `OffsetOutOfRangeError`.
    """
    states = {topic: look(topic) for topic in sorted({topic for topic, _ in offsets})}
    checked = {}
    for (topic, partition), committed in offsets.items():
        state = states[topic]
        if state is None:
            raise no_topic_of_an_offset(topic)
        require_partition(state, topic, partition)
        if committed.offset > state.end(partition) and not past_end:
            raise OffsetOutOfRangeError(
                f"Offset {committed.offset} of topic '{topic}', partition {partition} can't be committed: the partition"
                f" ends at {state.end(partition)}, and a group can't have read more than there is. Commit at most that."
            )
        checked[topic, partition] = replace(committed, topic_id=state.topic_id)
    return checked


def of_this_life(
    offsets: Mapping[TopicPartition, CommittedOffset], look: Callable[[str], TopicState | None]
) -> dict[TopicPartition, CommittedOffset]:
    """The offsets without those of topics that were deleted since, even if others have their names by now.

    An offset without a topic's id counts for whatever topic has the name.
    """
    states = {topic: look(topic) for topic in dict.fromkeys(topic for topic, _ in offsets)}
    ids = {topic: state.topic_id for topic, state in states.items() if state is not None}
    return {
        place: committed
        for place, committed in offsets.items()
        if place[0] in ids and committed.topic_id in ("", ids[place[0]])
    }


def no_topic_of_an_offset(topic: str) -> UnknownTopicError:
    """What an offset of a topic that is not there is refused with."""
    return UnknownTopicError(
        f"Topic '{topic}' does not exist, so no offset of it can be committed. Create it, or leave it out."
    )
