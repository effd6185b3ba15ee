"""A Produce request from its arrival until every partition of it has its outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from tidelog.broker.records.batches import BatchHeader
from tidelog.broker.wire.errors import (
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    TopicAuthorizationError,
)
from tidelog.broker.wire.produce_answer import ProducedPartition
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.base.kafka_codes import KafkaCode
from tidelog.log.base.request_ids import REQUEST

TopicRef = str | UUID


class DuplicateSequenceError(TidelogError, kafka_code=KafkaCode.DUPLICATE_SEQUENCE_NUMBER):
    """The records are there already, and their offsets are not known here. Clients take it as done."""


class NotLeaderError(TidelogError, kafka_code=KafkaCode.NOT_LEADER_OR_FOLLOWER, retriable=True):
    """Another broker takes this topic's records now. `leader`: (id, epoch) of the one to go to."""

    def __init__(self, message: str, leader: tuple[int, int]) -> None:
        super().__init__(message)
        self.leader = leader


class ProduceRequest:
    """Its partitions' outcomes, by topic as they were asked; `done` is called when all have theirs.

    `rack`: its client's. `writes`: whether its client may write to the topic of a name; None: to all. `id`: what lines
    of the log call it.
    """

    __slots__ = ("_done", "_open", "acks", "id", "rack", "topics", "writes")

    def __init__(
        self, acks: int, rack: str | None, writes: Callable[[str], bool] | None, done: Callable[[], object]
    ) -> None:
        self.acks = acks
        self.rack = rack
        self.writes = writes
        self.id = REQUEST.get()
        self.topics: list[tuple[TopicRef, list[ProducedPartition]]] = []
        self._done = done
        self._open = 1  # what is still being handed in

    def begin(self) -> None:
        """One more partition has no outcome yet."""
        self._open += 1

    def end(self) -> None:
        """One partition has its outcome, or all are handed in."""
        self._open -= 1
        if not self._open:
            self._done()

    @property
    def error(self) -> ProducedPartition | None:
        """A partition that was refused; None where there is none."""
        for _, partitions in self.topics:
            for partition in partitions:
                if partition.error_code:
                    return partition
        return None


@dataclass(slots=True, eq=False)
class ProducedBatch:
    """One batch of a request: what is taken or refused as a whole. `deadline_s` on the elapsed clock.

    `transactional_id`: "" for one that is in no transaction; `begins`: it adds its partition to its transaction, and
    begins that (KIP-890).
    """

    request: ProduceRequest
    topic: TopicRef
    outcome: ProducedPartition
    header: BatchHeader
    batch: bytes | memoryview
    deadline_s: float
    transactional_id: str = ""
    begins: bool = False

    @property
    def partition(self) -> int:
        """The partition that it is for."""
        return self.outcome.index

    @property
    def acks(self) -> int:
        """Which answer its client waits for: 0, 1 or -1 (all)."""
        return self.request.acks

    @property
    def sequence(self) -> tuple[int, int, int]:
        """Its producer's epoch, the first sequence, and the number of records."""
        header = self.header
        return header.producer_epoch, header.base_sequence, header.count

    def is_refused(self, name: str) -> bool:
        """Refuse it where its client may not write to the topic of this name; whether that was so."""
        if self.request.writes is None or self.request.writes(name):
            return False
        self.refused(TopicAuthorizationError("The principal of this connection may not write to this topic."))
        return True

    def landed(self, offset: int, append_ms: int | None, log_start_offset: int) -> None:
        """Its records are in the log."""
        outcome = self.outcome
        outcome.base_offset, outcome.log_start_offset = offset, log_start_offset
        outcome.append_ms = -1 if append_ms is None else append_ms
        self.request.end()

    def refused(self, error: BaseException) -> None:
        """They are not, or that is unknown."""
        refuse(self.outcome, error, self.topic)
        self.request.end()


def refuse(outcome: ProducedPartition, error: BaseException, topic: TopicRef) -> None:
    """Note an error as its partition's outcome, by Kafka's code."""
    outcome.error_code = code_of(error, topic)
    outcome.error_message = str(error) if isinstance(error, TidelogError) else "The broker failed; its log says how."
    outcome.record_errors = getattr(error, "record_errors", ())
    outcome.leader = error.leader if isinstance(error, NotLeaderError) else None


def code_of(error: BaseException, topic: TopicRef) -> int:
    """The code that a client is given: it asks again where the topic is, when there is none of that name or id."""
    if isinstance(error, UnknownTopicError | TopicChangedError):
        return UNKNOWN_TOPIC_ID if isinstance(topic, UUID) else UNKNOWN_TOPIC_OR_PARTITION
    return error.kafka_code if isinstance(error, TidelogError) else UNKNOWN_SERVER_ERROR
