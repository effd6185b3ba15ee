"""What a transaction is, as the log of transactions says."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tidelog.log.delta import layout
from tidelog.log.segments.writer import Staged

# Kafka's epochs are SHORTs: a producer id lasts for this number of ours.
EPOCHS_OF_AN_ID: Final = 2**15
MAX_EPOCH: Final = 2**31 - 1


class State(StrEnum):
    """Kafka's states of a transactional id, by the names its tools print."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"


class Verdict(StrEnum):
    """What the log says of one transaction.

    SETTLED: it is older than what the log still holds. Its effects on groups, if it had any, were made before that, so
    that a reader that finds traces of it looks once more: what is still pending then was aborted.
    """

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class TransactionKey:
    """One transaction: of a transactional id, in an epoch of it, the `number`-th that the log knows, from 1.

    Epochs of a transactional id never fall, also when it expired and returned: they alone tell its transactions apart,
    whatever producer id it had in one.
    """

    transactional_id: str
    producer_id: int = field(compare=False)
    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class IntentPart:
    """What a transaction appends to one incarnation of a topic: staged segments, in their order."""

    topic: str
    topic_id: str
    segments: tuple[Staged, ...]


@dataclass(frozen=True, slots=True)
class Intent:
    """A transaction that is decided to be committed. `sequence`: its place among all intents of the lake, from 1."""

    epoch: int
    number: int
    sequence: int
    parts: tuple[IntentPart, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def partitions(self) -> Sequence[tuple[str, int]]:
        """The (topic, partition)s that it appends to, sorted."""
        return sorted({(part.topic, segment.partition) for part in self.parts for segment in part.segments})

    def names(self, topic_id: str) -> bool:
        """Whether it appends to this incarnation of a topic."""
        return any(part.topic_id == topic_id for part in self.parts)


@dataclass(frozen=True, slots=True)
class Transactional:
    """A transactional id, as its newest event says.

    `number`: how many transactions of this epoch are decided, the last one with `outcome` (None: none was). `intent`:
    one that is committed and not marked complete, of this epoch or an earlier one. `sequence`: of its newest
    intent. `batch`: the caller's own number of the last one that it committed with a number, -1 for none; ids that have
    one never expire. `updated_ms`: the time of the event, ms since the epoch, its writer's clock.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    number: int = 0
    outcome: Verdict | None = None
    sequence: int = 0
    batch: int = -1
    updated_ms: int = 0
    intent: Intent | None = None

    @property
    def state(self) -> State:
        """Kafka's name for it."""
        if self.intent is not None:
            return State.PREPARE_COMMIT
        if self.outcome is None:
            return State.EMPTY
        return State.COMPLETE_COMMIT if self.outcome is Verdict.COMMITTED else State.COMPLETE_ABORT

    @property
    def kafka_epoch(self) -> int:
        """The epoch as Kafka counts it for this producer id: a SHORT."""
        return self.epoch % EPOCHS_OF_AN_ID

    def key(self, number: int) -> TransactionKey:
        """One of this epoch's transactions."""
        return TransactionKey(self.transactional_id, self.producer_id, self.epoch, number)

    def key_of(self, intent: Intent) -> TransactionKey:
        """The transaction that an intent of this id decided."""
        return TransactionKey(self.transactional_id, self.producer_id, intent.epoch, intent.number)


def marker(transactional_id: str) -> str:
    """The transaction id under which a topic notes the newest intent of a transactional id that it holds."""
    return f"{layout.TRANSACTION_PREFIX}{transactional_id}"


def marker_version(epoch: int, number: int) -> int:
    """The marker's version, which rises from one intent of the id to the next."""
    return layout.pack_epoch(epoch, number)
