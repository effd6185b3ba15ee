"""The rules of idempotent producers: which of a producer's batches are new, which repeat what is there already.

A partition remembers of each producer its epoch and the last sequence that landed, one transaction id each
(docs/format.md, "Transaction ids"). Sequences count a producer's records in one partition and go round at 2^31 - 1.
Source: Kafka's `ProducerAppendInfo` and `ProducerStateManager`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.log import layout
from tidelog.log.actions import Txn
from tidelog.log.errors import InvalidProducerEpochError, InvalidRecordError, OutOfOrderSequenceError
from tidelog.log.state import TopicState

MAX_SEQUENCE: Final = 2**31 - 1
MAX_EPOCH: Final = 2**15 - 1
MAX_PRODUCER_ID: Final = 2**63 - 1

_EPOCH: Final = 2**32


def step(sequence: int, count: int) -> int:
    """The sequence `count` records after `sequence`; `step(MAX_SEQUENCE, 1)` is 0."""
    return (sequence + count) & MAX_SEQUENCE


def app_id(producer_id: int, partition: int) -> str:
    """The transaction id under which a partition remembers a producer."""
    return f"{layout.PRODUCER_PREFIX}{producer_id}/{partition}"


def is_expired(txn: Txn, since_ms: int) -> bool:
    """Whether what a partition remembers of a producer is older than `since_ms` (ms since the epoch)."""
    return txn.last_updated_ms is not None and txn.last_updated_ms < since_ms


@dataclass(frozen=True, slots=True)
class KnownProducer:
    """What a partition remembers of an idempotent producer. `updated_ms`: when it last appended, ms since the epoch."""

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    updated_ms: int | None


def known_producers(state: TopicState, since_ms: int = 0) -> list[KnownProducer]:
    """The producers that a topic remembers and that have not expired, by partition and id."""
    found = []
    for name, txn in state.txns.items():
        if name.startswith(layout.PRODUCER_PREFIX) and txn.version >= 0 and not is_expired(txn, since_ms):
            producer_id, _, partition = name.removeprefix(layout.PRODUCER_PREFIX).partition("/")
            epoch, last = divmod(txn.version, _EPOCH)
            found.append(KnownProducer(int(partition), int(producer_id), epoch, last, txn.last_updated_ms))
    return sorted(found, key=lambda one: (one.partition, one.producer_id))


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """What a producer says of records that it sends: `sequences` is {partition: (first sequence, records)}."""

    producer_id: int
    epoch: int
    sequences: Mapping[int, tuple[int, int]]


@dataclass(slots=True)
class Sequences:
    """Judges the batches of one append one after another, each as if those before it had landed.

    `since_ms`: producers that sent nothing since then (ms since the epoch) are expired, and known no more.
    """

    state: TopicState
    topic: str
    since_ms: int = 0
    _landed: dict[str, tuple[int, int]] = field(default_factory=dict)

    def take(self, batch: ProducerBatch) -> frozenset[int]:
        """Take a batch in; the result is the partitions where all its records are already there.

        A batch that is refused changes nothing. Raises `InvalidProducerEpochError` for an older epoch than the
        partition has seen, `OutOfOrderSequenceError` for a gap or an overlap, and for a new epoch that does not begin
        at 0. A producer that the partition does not know, or knows no more, may begin anywhere, as in Kafka.
        """
        _check(batch)
        repeated = set()
        landed = {}
        for partition, (first, count) in batch.sequences.items():
            name = app_id(batch.producer_id, partition)
            if self._is_repeat(name, partition, batch, first, count):
                repeated.add(partition)
            else:
                landed[name] = (batch.epoch, step(first, count - 1))
        self._landed.update(landed)
        return frozenset(repeated)

    def txns(self, now_ms: int) -> list[Txn]:
        """What the entry that appends the batches must say of their producers."""
        return [Txn(name, epoch * _EPOCH + last, now_ms) for name, (epoch, last) in sorted(self._landed.items())]

    def _seen(self, name: str) -> tuple[int, int] | None:
        """The epoch and the last sequence of a producer in a partition."""
        if name in self._landed:
            return self._landed[name]
        found = self.state.txns.get(name)
        if found is None or found.version < 0 or is_expired(found, self.since_ms):
            return None
        return divmod(found.version, _EPOCH)

    def _is_repeat(self, name: str, partition: int, batch: ProducerBatch, first: int, count: int) -> bool:
        seen = self._seen(name)
        if seen is None:
            return False
        epoch, last = seen
        where = f"Topic '{self.topic}', partition {partition}: producer {batch.producer_id}"
        if batch.epoch < epoch:
            raise InvalidProducerEpochError(
                f"{where} sends with epoch {batch.epoch}, but the partition has seen its epoch {epoch}: a newer"
                " producer of the same identity has taken over. Close this one."
            )
        if batch.epoch > epoch:
            if first:
                raise OutOfOrderSequenceError(
                    f"{where} begins epoch {batch.epoch} with sequence {first}: a new epoch begins with 0, else"
                    " records before it may be missing. Create a new producer."
                )
            return False
        ahead = step(first, -last - 1)
        if ahead == 0:
            return False
        # How far behind its first record is, counted to the last one that landed.
        behind = MAX_SEQUENCE + 1 - ahead
        if count <= behind <= MAX_SEQUENCE // 2:
            return True
        raise OutOfOrderSequenceError(
            f"{where} sends sequences from {first} ({count} records), but {step(last, 1)} comes next: records"
            " between them are missing, or some of these are there already. Create a new producer, which begins anew."
        )


def _check(batch: ProducerBatch) -> None:
    known = 0 <= batch.producer_id <= MAX_PRODUCER_ID and 0 <= batch.epoch <= MAX_EPOCH
    if not known or any(not 0 <= first <= MAX_SEQUENCE or count < 1 for first, count in batch.sequences.values()):
        raise InvalidRecordError(
            f"A batch of producer {batch.producer_id}, epoch {batch.epoch}, sequences {dict(batch.sequences)}, can't"
            " be: an id is a LONG and an epoch a SHORT from 0 on, a sequence lies between 0 and 2147483647, and there"
            " is at least one record in each partition."
        )
