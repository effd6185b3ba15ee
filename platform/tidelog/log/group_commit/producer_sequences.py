"""An idempotent producer's identity in one topic, and the sequences that its next records get."""

from collections.abc import Mapping

from tidelog.log.base.clock import Ids
from tidelog.log.rules.sequences import MAX_EPOCH, ProducerBatch, step
from tidelog.log.state.producer_memory import new_producer_id


class Numbering:
    """An idempotent producer's id, epoch and sequences in one topic.

    They move on only when records have landed. Where that is not known, a new epoch begins, which needs no answer.
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._producer_id = new_producer_id(self._ids)
        self._epoch = 0
        self._next: dict[int, int] = {}

    def batch(self, counts: Mapping[int, int]) -> ProducerBatch:
        """The sequences of the next {partition: records}."""
        return ProducerBatch(
            self._producer_id, self._epoch, {p: (self._next.get(p, 0), count) for p, count in counts.items()}
        )

    def snapshot(self) -> tuple[int, int, Mapping[int, int]]:
        """The producer id, its epoch, and the next sequence of each partition."""
        return self._producer_id, self._epoch, dict(self._next)

    def landed(self, counts: Mapping[int, int]) -> None:
        """These records are in the log."""
        for partition, count in counts.items():
            self._next[partition] = step(self._next.get(partition, 0), count)

    def bump_epoch(self) -> None:
        """Begin a new epoch: the last records may be in the log or not, and the next ones must not depend on it."""
        if self._epoch == MAX_EPOCH:
            self.reset_producer_id()
        else:
            self._epoch += 1
            self._next = {}

    def reset_producer_id(self) -> None:
        """Begin again with another id: the log has seen something of this one that it did not send."""
        self._producer_id, self._epoch, self._next = new_producer_id(self._ids), 0, {}
