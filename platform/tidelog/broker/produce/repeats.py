"""Which offsets the last batches of idempotent producers got here, to answer a batch that comes again.

The log says of a repeat that it is one, not where its records are. A producer has five requests on their way at most,
so five batches are remembered of each, as Kafka does (`ProducerStateEntry`).
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

BATCHES: Final = 5
# Producers and partitions that are remembered, the least recently heard ones are forgotten: some 10 MiB.
MOST: Final = 10_000


class Landed(NamedTuple):
    """A batch in the log: its first offset, and its timestamp under LogAppendTime (ms since the epoch), else None."""

    offset: int
    append_ms: int | None


_Key = tuple[int, int]
_Batch = tuple[int, int, int]


class Repeats:
    """What one topic's producers sent last. For one thread at a time."""

    def __init__(self) -> None:
        self._last: OrderedDict[_Key, deque[tuple[_Batch, Landed]]] = OrderedDict()

    def note(self, partition: int, producer_id: int, batch: _Batch, landed: Landed) -> None:
        """A batch (epoch, first sequence, records) has landed."""
        key = producer_id, partition
        last = self._last.get(key)
        if last is None:
            last = self._last[key] = deque(maxlen=BATCHES)
            if len(self._last) > MOST:
                self._last.popitem(last=False)
        else:
            self._last.move_to_end(key)
        last.append((batch, landed))

    def find(self, partition: int, producer_id: int, batch: _Batch) -> Landed | None:
        """Where the same batch landed; None where that is not known here."""
        for known, landed in self._last.get((producer_id, partition), ()):
            if known == batch:
                return landed
        return None
