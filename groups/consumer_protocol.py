"""The bytes in which consumers of a group exchange what they subscribe to, own, and are to read.

They are Kafka's, so that members behind a broker can share a group with native ones. Versions 0 to 3 are read, 3 is
written; one above 3 is read as 3: by Kafka's promise, fields are only added. All numbers are big-endian; a string is
its length (int16) and UTF-8, bytes are a length (int32) and themselves, -1 is null; an array is a count (int32) and its
elements.

Source: `ConsumerProtocolSubscription.json`, `ConsumerProtocolAssignment.json`, `ConsumerProtocol`,
`StickyAssignor.serializeTopicPartitionAssignment`.
"""

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tidelog.groups.model import TopicPartition
from tidelog.log.base.errors import InconsistentProtocolError

# The protocol type of consumers' groups.
PROTOCOL_TYPE = "consumer"
NEWEST = 3
NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member says when it joins. `generation`: the last one it took part in, in which it owned `owned`."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a member is to read."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    """In the newest version. Topics and owned partitions go sorted, as the Java client sends them."""
    fields = (
        struct.pack(">h", NEWEST),
        _array(_string(topic) for topic in sorted(subscription.topics)),
        _bytes(subscription.user_data),
        _partitions(sorted(subscription.owned)),
        struct.pack(">i", subscription.generation),
        _string(subscription.rack),
    )
    return b"".join(fields)


def decode_subscription(data: bytes) -> Subscription:
    """Read a subscription of any version. Raises InconsistentProtocolError."""
    reader = _FieldReader(data, "subscription")
    version = reader.version()
    topics = tuple(reader.strings())
    user_data = reader.data()
    owned = tuple(reader.partitions()) if version >= 1 else ()
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.nullable_string() if version >= 3 else None
    return Subscription(topics, user_data, owned, generation, rack or None)


def subscribed_topics(data: bytes) -> frozenset[str]:
    """The topics of a subscription, read as version 0, which every version begins with. InconsistentProtocolError."""
    reader = _FieldReader(data, "subscription")
    reader.version()
    return frozenset(reader.strings())


def encode_assignment(assignment: Assignment) -> bytes:
    """In the newest version. Topics come in the order in which the partitions name them first."""
    return struct.pack(">h", NEWEST) + _partitions(assignment.partitions) + _bytes(assignment.user_data)


def decode_assignment(data: bytes) -> Assignment:
    """Read an assignment of any version; b"", which a member gets that the leader forgot, is an empty one.

    Raises InconsistentProtocolError.
    """
    if not data:
        return Assignment()
    reader = _FieldReader(data, "assignment")
    reader.version()
    return Assignment(tuple(reader.partitions()), reader.data())


def newest_claims(
    claims: Mapping[str, tuple[Collection[TopicPartition], int]],
) -> dict[str, list[TopicPartition]]:
    """What each member may say it owns: of several that claim a partition, those of the newest generation.

    `claims`: by member, partitions and the generation in which it owned them. Source: `AbstractStickyAssignor`.
    """
    newest: defaultdict[TopicPartition, int] = defaultdict(lambda: -2)
    for partitions, generation in claims.values():
        for partition in partitions:
            newest[partition] = max(newest[partition], generation)
    return {
        name: [partition for partition in partitions if newest[partition] == generation]
        for name, (partitions, generation) in claims.items()
    }


def encode_sticky_user_data(owned: Iterable[TopicPartition], generation: int) -> bytes:
    """What the `sticky` assignor remembers: what the member was given last, and in which generation."""
    return _partitions(sorted(owned)) + struct.pack(">i", generation)


def decode_sticky_user_data(data: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """What a member was given last, and in which generation; nothing, in no generation, where that can't be read.

    The form without a generation, of Kafka before 2.3, is read too.
    """
    if not data:
        return (), NO_GENERATION
    try:
        reader = _FieldReader(data, "user data")
        owned = tuple(reader.partitions())
        return owned, reader.int32() if reader.left else NO_GENERATION
    except InconsistentProtocolError:
        return (), NO_GENERATION


def encode_cooperative_user_data(generation: int) -> bytes:
    """What the `cooperative-sticky` assignor remembers, for leaders that read subscriptions below version 2."""
    return struct.pack(">i", generation)


# --- fields ------------------------------------------------------------------------------------------------


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _array(elements: Iterable[bytes]) -> bytes:
    listed = list(elements)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def _partitions(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        by_topic[topic].append(number)
    return _array(
        _string(topic) + _array(struct.pack(">i", number) for number in numbers) for topic, numbers in by_topic.items()
    )


class _FieldReader:
    """Reads fields one after another; what is cut off or is no text is an InconsistentProtocolError."""

    def __init__(self, data: bytes, what: str) -> None:
        self._all = data
        self._what = what
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._all) - self._at

    def version(self) -> int:
        version = self._int(">h")
        if version < 0:
            raise self._broken(f"its version is {version}")
        return min(version, NEWEST)

    def int32(self) -> int:
        return self._int(">i")

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise self._broken("a name is missing")
        return text

    def nullable_string(self) -> str | None:
        length = self._int(">h")
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise self._broken("a name is no UTF-8") from None

    def data(self) -> bytes | None:
        length = self._int(">i")
        return None if length < 0 else self._take(length)

    def strings(self) -> list[str]:
        return [self.string() for _ in range(self._count())]

    def partitions(self) -> list[TopicPartition]:
        partitions: list[TopicPartition] = []
        for _ in range(self._count()):
            topic = self.string()
            partitions.extend((topic, self.int32()) for _ in range(self._count()))
        return partitions

    def _count(self) -> int:
        """How many elements follow: never more than there are bytes."""
        count = self._int(">i")
        if not 0 <= count <= self.left:
            raise self._broken(f"it announces {count} elements")
        return count

    def _int(self, form: str) -> int:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return int(number)

    def _take(self, count: int) -> bytes:
        if count > self.left:
            raise self._broken("it is cut off")
        self._at += count
        return self._all[self._at - count : self._at]

    def _broken(self, why: str) -> InconsistentProtocolError:
        return InconsistentProtocolError(
            f"A member's {self._what} can't be read: {why}. Members of a consumer group exchange what they "
            "read in the form of Kafka's consumer protocol. Stop the member that does not."
        )
