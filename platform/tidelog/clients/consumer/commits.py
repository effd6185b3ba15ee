"""Committing a consumer's offsets: as a member of its group, or, with manual assignment, without a member id."""

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext

from tidelog.clients.consumer.assignment import TopicPartitionKey
from tidelog.clients.consumer.shared import ConsumerShared
from tidelog.clients.values.errors import KafkaError, KafkaException, invalid_argument, kafka_error, kafka_exception
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import OFFSET_INVALID, TopicPartition
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StaleMemberEpochError, TidelogError
from tidelog.transactions.ports import GroupIdentity

Offsets = dict[TopicPartitionKey, CommittedOffset]


class Committer:
    """Commits for one consumer, one commit after another, so that an older offset never follows a newer one.

    `identity`: None for a consumer without a subscription; `owned`: what is then its to commit.
    """

    def __init__(
        self,
        shared: ConsumerShared,
        log: GroupLog,
        identity: Callable[[], GroupIdentity | None],
        owned: Callable[[], frozenset[TopicPartitionKey] | None],
    ) -> None:
        self._lock, self._assignment = shared.lock, shared.assignment
        self._group_id = shared.settings.group_id
        self._traffic = shared.traffic
        self._log = log
        self._identity = identity
        self._owned = owned
        self._turn = threading.RLock()

    def offsets(self, timeout_s: float = 0.0) -> Mapping[TopicPartitionKey, CommittedOffset]:
        """The group's committed offsets. Raises tidelog's errors, `UnstableOffsetError` among them.

        That one only when, after `timeout_s`, some of them still wait for an open transaction.
        """
        return self._log.stable_offsets(self._group_id, timeout_s)

    def stored(self, places: Iterable[TopicPartitionKey] | None = None) -> Offsets:
        """What is stored and not committed yet, of these partitions or of all."""
        with self._lock:
            found = self._assignment.uncommitted()
        wanted, owned = found.keys() if places is None else set(places), self._owned()
        return {place: one for place, one in found.items() if place in wanted and (owned is None or place in owned)}

    def commit(self, offsets: Offsets | None, places: Iterable[TopicPartitionKey] | None = None) -> Offsets:
        """Commit offsets, or (None) what is stored; returns them. Raises tidelog's errors."""
        with self._turn:
            taken = self.stored(places) if offsets is None else offsets
            if taken:
                with nullcontext() if self._traffic is None else self._traffic.asking("OffsetCommit"):
                    self._commit(taken)
                with self._lock:
                    self._assignment.committed(taken)
            return taken

    def _commit(self, taken: Offsets) -> None:
        while True:
            who = self._identity() or GroupIdentity(self._group_id)
            try:
                self._log.commit_offsets(self._group_id, taken, who.member_id, who.generation, who.instance_id)
            except StaleMemberEpochError:
                # The member has come to another epoch meanwhile; what it still owns there is its own to commit.
                if self._identity() == who or not (self._owned() or frozenset()).issuperset(taken):
                    raise
            else:
                return

    def forfeit(self, places: Iterable[TopicPartitionKey]) -> None:
        """Hand out and commit nothing more of these partitions."""
        with self._turn, self._lock:
            self._assignment.forfeit(places)

    def require_assigned(self, offsets: Offsets) -> None:
        """Refuse, for a member of a group, offsets of partitions that are not assigned to it."""
        if self._identity() is None:
            return
        owned = self._owned() or frozenset()
        with self._lock:
            others = [place for place in offsets if place not in self._assignment or place not in owned]
        if others:
            topic, partition = others[0]
            raise kafka_exception(
                KafkaError._STATE,
                f"Commit failed: {topic} [{partition}] is not assigned to this consumer, and in group"
                f" {self._group_id!r} only its owner commits. Commit what assignment() lists; offsets of others are"
                " changed with AdminClient.alter_consumer_group_offsets while the group is empty.",
            )


def to_offsets(message: Message | None, offsets: list[TopicPartition] | None) -> Offsets | None:
    """What a call names, a message or offsets; None when it names neither.

    Offsets that are OFFSET_INVALID are left out; nothing left is an error, as in librdkafka.
    Raises ValueError, TypeError, KafkaException.
    """
    if message is not None and offsets is not None:
        raise ValueError("expected either message or offsets, not both")
    if message is not None:
        if not isinstance(message, Message):
            raise TypeError(f"expected tidelog's Message, not {type(message).__name__}")
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if message.error() is not None or topic is None or partition is None or offset is None:
            raise invalid_argument("Commit failed: the message is an error and has no offset.")
        return {(topic, partition): CommittedOffset(offset + 1)}
    if offsets is None:
        return None
    to_commit = {
        (one.topic, one.partition): offset_to_commit(one)
        for one in partitions_of(offsets)
        if one.offset != OFFSET_INVALID
    }
    if not to_commit:
        raise KafkaException(no_offset())
    return to_commit


def offset_to_commit(one: TopicPartition) -> CommittedOffset:
    """What a call names as a partition's offset to commit."""
    return CommittedOffset(one.offset, one.metadata or "", -1 if one.leader_epoch is None else one.leader_epoch)


def no_offset() -> KafkaError:
    """The error of a commit that has nothing to commit."""
    return KafkaError(KafkaError._NO_OFFSET, "Commit failed: Local: No offset stored")


def partitions_of(partitions: object) -> list[TopicPartition]:
    """The list that a call was given. Raises TypeError for anything else."""
    if not isinstance(partitions, list | tuple) or not all(isinstance(p, TopicPartition) for p in partitions):
        raise TypeError("expected a list of TopicPartition")
    return list(partitions)


def as_partition(place: TopicPartitionKey, offset: CommittedOffset | None) -> TopicPartition:
    """A partition with its committed offset, OFFSET_INVALID where there is none."""
    if offset is None:
        return TopicPartition(*place)
    return TopicPartition(*place, offset.offset, offset.metadata or None, offset.leader_epoch)


def as_partitions(offsets: Mapping[TopicPartitionKey, CommittedOffset]) -> list[TopicPartition]:
    """Committed offsets as a call gives them, sorted by partition."""
    return [as_partition(place, offsets[place]) for place in sorted(offsets)]


def commit_failed(error: TidelogError) -> KafkaError:
    """One of tidelog's errors as that of a commit."""
    found = kafka_error(error)
    return KafkaError(found.code(), f"Commit failed: {found.str()}", fatal=found.fatal(), retriable=found.retriable())
