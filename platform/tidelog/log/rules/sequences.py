"""The rules of idempotent producers: which of a producer's batches are new, which repeat what is there already.

A partition remembers of each producer its epoch and the last sequence that landed, one transaction id each
(docs/format.md, "Transaction ids"). Sequences count a producer's records in one partition and go round at 2^31 - 1.
Source: Kafka's `ProducerAppendInfo` and `ProducerStateManager`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    InvalidRecordError,
    OutOfOrderSequenceError,
    UnknownProducerIdError,
)
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.state.producer_memory import MAX_PRODUCER_ID, app_id, parse_app_id
from tidelog.log.state.topic_state import TopicState

MAX_SEQUENCE: Final = 2**31 - 1
MAX_EPOCH: Final = 2**15 - 1


def step(sequence: int, count: int) -> int:
    """The sequence `count` records after `sequence`; `step(MAX_SEQUENCE, 1)` is 0."""
    return (sequence + count) & MAX_SEQUENCE


@dataclass(frozen=True, slots=True)
class KnownProducer:
    """What a partition remembers of an idempotent producer. `updated_ms`: when it last appended, ms since the epoch."""

    partition: int
    producer_id: int
    epoch: int
    last_sequence: int
    updated_ms: int | None


def known_producers(state: TopicState) -> list[KnownProducer]:
    """The producers that a topic remembers and that have not expired, by partition and id."""
    producers = []
    for txn in state.producer_txns():
        producer = parse_app_id(txn.app_id)
        if producer is not None and txn.version >= 0:
            epoch, last = layout.unpack_epoch(txn.version)
            producers.append(KnownProducer(producer[1], producer[0], epoch, last, txn.last_updated_ms))
    return sorted(producers, key=lambda one: (one.partition, one.producer_id))


@dataclass(frozen=True, slots=True)
class ProducerBatch:
    """What a producer says of records that it sends: `sequences` is {partition: (first sequence, records)}.

    `is_pipelined`: the producer sends batches before it has the outcomes of those before them, as Kafka's clients do.
    Then a batch may come whose predecessor has failed and will be sent again.
    """

    producer_id: int
    epoch: int
    sequences: Mapping[int, tuple[int, int]]
    is_pipelined: bool = False


@dataclass(slots=True)
class Sequences:
    """Judges the batches of one append one after another, each as if those before it had landed.

    Producers that sent nothing for long, while others did, are expired, and known no more
    (`tidelog.log.state.txn_expiry`).
    """

    state: TopicState
    topic: str
    # (producer id, partition) -> (epoch, last sequence)
    _landed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def take(self, batch: ProducerBatch) -> frozenset[int]:
        """Take a batch in; the result is the partitions where all its records are already there.

        A batch that is refused changes nothing. Raises `InvalidProducerEpochError` for an older epoch than the
        partition has seen, `OutOfOrderSequenceError` for a gap or an overlap, and for a new epoch that does not begin
        at 0. A producer that the partition does not know, or knows no more, may begin anywhere; one that pipelines
        must begin at 0, else `UnknownProducerIdError`: the log keeps only the last sequence, so that a batch that
        failed and is sent again after its successor has landed would be taken for a repeat, and be lost.
        """
        _check(batch)
        repeated = set()
        landed = {}
        for partition, (first, count) in batch.sequences.items():
            if self._is_repeat(partition, batch, first, count):
                repeated.add(partition)
            else:
                landed[batch.producer_id, partition] = (batch.epoch, step(first, count - 1))
        self._landed.update(landed)
        return frozenset(repeated)

    def fork(self) -> "Sequences":
        """One that goes its own way from here: for batches that are taken together or not at all."""
        return Sequences(self.state, self.topic, dict(self._landed))

    def txns(self, now_ms: int) -> list[Txn]:
        """What the entry that appends the batches must say of their producers.

        Their time never falls: by it they expire, so that a writer whose clock is behind would be forgotten at once.
        """
        updated_ms = max(now_ms, self.state.updated_ms)
        return [
            Txn(app_id(*producer), layout.pack_epoch(epoch, last), updated_ms)
            for producer, (epoch, last) in sorted(self._landed.items())
        ]

    def _seen(self, producer_id: int, partition: int) -> tuple[int, int] | None:
        """The epoch and the last sequence of a producer in a partition."""
        if (producer_id, partition) in self._landed:
            return self._landed[producer_id, partition]
        found = self.state.producer(producer_id, partition)
        return None if found is None else layout.unpack_epoch(found)

    def _is_repeat(self, partition: int, batch: ProducerBatch, first: int, count: int) -> bool:
        seen = self._seen(batch.producer_id, partition)
        where = f"Topic '{self.topic}', partition {partition}: producer {batch.producer_id}"
        if seen is None:
            if batch.is_pipelined and first:
                raise UnknownProducerIdError(
                    f"{where} is not known here, and begins with sequence {first}: records before it may be missing."
                    " Send them first, or begin a new epoch of the producer with sequence 0."
                )
            return False
        epoch, last = seen
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
            " between them are missing, or some of these are there already. Create a new producer, which begins again."
        )


def can_be(batch: ProducerBatch) -> bool:
    """Whether ids, epochs and sequences are like a batch's, whatever the log knows of its producer."""
    known = 0 <= batch.producer_id <= MAX_PRODUCER_ID and 0 <= batch.epoch <= MAX_EPOCH
    return known and all(0 <= first <= MAX_SEQUENCE and count > 0 for first, count in batch.sequences.values())


def _check(batch: ProducerBatch) -> None:
    if not can_be(batch):
        raise InvalidRecordError(
            f"A batch of producer {batch.producer_id}, epoch {batch.epoch}, sequences {dict(batch.sequences)}, can't"
            " be: an id is a LONG and an epoch a SHORT from 0 on, a sequence lies between 0 and 2147483647, and there"
            " is at least one record in each partition."
        )
