"""The partitions a consumer reads: the position of each one, what is stored to be committed, and what is committed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tidelog.clients.values.errors import KafkaError, kafka_exception
from tidelog.clients.values.partitions import OFFSET_INVALID, OFFSET_STORED, TopicPartition
from tidelog.groups.model import CommittedOffset
from tidelog.log.follow.cursor import Cursor

TopicPartitionKey: TypeAlias = tuple[str, int]


@dataclass(eq=False, slots=True)
class PartitionState:
    """One partition of the assignment.

    `start`: the offset to start from, which may be a logical one, until it is known; then `cursor` reads. `position`:
    the next offset that the application gets. `stored`: what the next commit without offsets takes.
    `eof`: the last end that was reported.
    """

    topic: str
    partition: int
    start: int = OFFSET_STORED
    cursor: Cursor | None = None
    paused: bool = False
    position: int = OFFSET_INVALID
    stored: int = OFFSET_INVALID
    stored_metadata: str = ""
    committed: int = OFFSET_INVALID
    log_start: int = OFFSET_INVALID
    log_end: int = OFFSET_INVALID
    eof: int = OFFSET_INVALID
    reported_error: str = ""
    retry_s: float = 0.0

    @property
    def place(self) -> TopicPartitionKey:
        """Topic and partition."""
        return self.topic, self.partition

    def move(self, start: int) -> None:
        """Go on from another offset; what was read ahead counts no more."""
        self.cursor = None
        self.start = start
        self.reported_error = ""
        self.retry_s = 0.0

    def give_back(self, offset: int, *, stores: bool) -> None:
        """Hand out the record at an offset again, and what follows; `stores`: its offset was stored, which no more."""
        self.move(offset)
        self.position = offset
        if stores:
            self.stored = offset


class ConsumerAssignment:
    """What a consumer reads, by topic and partition. The caller holds the consumer's lock."""

    def __init__(self) -> None:
        self._owned: dict[TopicPartitionKey, PartitionState] = {}

    def __len__(self) -> int:
        return len(self._owned)

    def __iter__(self) -> Iterator[PartitionState]:
        return iter(self._owned.values())

    def __contains__(self, place: TopicPartitionKey) -> bool:
        return place in self._owned

    def get(self, place: TopicPartitionKey) -> PartitionState | None:
        """The partition, if it is assigned."""
        return self._owned.get(place)

    def places(self) -> list[TopicPartitionKey]:
        """What is assigned, in the order in which it was."""
        return list(self._owned)

    def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these too. Raises KafkaException for one that is assigned already."""
        wanted = list(partitions)
        for partition in wanted:
            if (partition.topic, partition.partition) in self._owned:
                raise kafka_exception(
                    KafkaError._CONFLICT,
                    f"{partition.topic} [{partition.partition}] is already part of the current assignment",
                )
        for partition in wanted:
            start = OFFSET_STORED if partition.offset == OFFSET_INVALID else partition.offset
            self._owned[partition.topic, partition.partition] = PartitionState(
                partition.topic, partition.partition, start
            )

    def require(self, places: Iterable[TopicPartitionKey]) -> None:
        """Refuse places that are not assigned, with KafkaException."""
        for topic, partition in places:
            if (topic, partition) not in self._owned:
                raise kafka_exception(
                    KafkaError._INVALID_ARG,
                    f"{topic} [{partition}] can't be unassigned since it is not in the current assignment",
                )

    def drop(self, places: Iterable[TopicPartitionKey]) -> None:
        """Read these no more; those that are not assigned are passed over."""
        for place in places:
            owned = self._owned.pop(place, None)
            if owned is not None:
                owned.cursor = None

    def seek(self, place: TopicPartitionKey, offset: int) -> None:
        """Go on from an offset, which may be a logical one. Raises KafkaException for one not assigned."""
        owned = self._owned.get(place)
        if owned is None:
            raise kafka_exception(
                KafkaError._UNKNOWN_PARTITION,
                f"Failed to seek to offset {offset}: {place[0]} [{place[1]}] is not assigned",
            )
        owned.move(offset)
        owned.position = offset if offset >= 0 else OFFSET_INVALID

    def pause(self, places: Iterable[TopicPartitionKey]) -> None:
        """Read nothing of these until `resume`, and then from the position; those not assigned are passed over."""
        for owned in self._assigned(places):
            owned.paused = True
            owned.move(owned.position if owned.position >= 0 else owned.start)

    def resume(self, places: Iterable[TopicPartitionKey]) -> None:
        """Go on with paused partitions."""
        for owned in self._assigned(places):
            owned.paused = False

    def _assigned(self, places: Iterable[TopicPartitionKey]) -> list[PartitionState]:
        return [self._owned[place] for place in places if place in self._owned]

    def forfeit(self, places: Iterable[TopicPartitionKey]) -> None:
        """Hand out and commit nothing more of these partitions: they are others' by now, and will be removed."""
        for owned in self._assigned(places):
            owned.cursor, owned.paused, owned.stored = None, True, OFFSET_INVALID

    def store(self, place: TopicPartitionKey, offset: int, metadata: str) -> None:
        """Store an offset to be committed. Raises KafkaException for a partition that is not assigned."""
        owned = self._owned.get(place)
        if owned is None:
            raise kafka_exception(
                KafkaError._STATE,
                f"No offset of {place[0]} [{place[1]}] can be stored: the partition is not assigned to this consumer",
            )
        owned.stored, owned.stored_metadata = offset, metadata

    def uncommitted(self) -> dict[TopicPartitionKey, CommittedOffset]:
        """The stored offsets that are not committed yet."""
        return {
            owned.place: CommittedOffset(owned.stored, owned.stored_metadata)
            for owned in self._owned.values()
            if owned.stored >= 0 and owned.stored != owned.committed
        }

    def committed(self, offsets: dict[TopicPartitionKey, CommittedOffset]) -> None:
        """Note what was committed."""
        for place, committed in offsets.items():
            owned = self._owned.get(place)
            if owned is not None:
                owned.committed = committed.offset


def as_list(places: Iterable[TopicPartitionKey]) -> list[TopicPartition]:
    """Places as TopicPartitions, sorted."""
    return [TopicPartition(topic, partition) for topic, partition in sorted(places)]
