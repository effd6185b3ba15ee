"""Record batches in memory, as consumers are sent them: what was produced here last, and what was read from segments.

Committed batches only. An offset that is here is answered without a look at the store.
"""

from collections.abc import Iterable
from uuid import UUID

from tidelog.broker.base.batch_files import BatchFiles
from tidelog.broker.base.batch_runs import BatchRun, Chunks, Place
from tidelog.broker.records.batches import NONE
from tidelog.log.state.rewrites import Rewrite


class BatchCache:
    """The batches of a process that consumers may ask for next, `most_bytes` in all; for the loop's thread.

    Half of it is for what was produced through this broker, half for what was read from segments. Either may have
    what the other does not need. What there is no room for goes into `files`, where there are any.
    """

    def __init__(self, most_bytes: int, files: BatchFiles | None = None) -> None:
        self.most_bytes = most_bytes
        self.files = files
        self._produced = Chunks()
        self._read = Chunks()

    @property
    def size(self) -> int:
        """The bytes that are kept, with what keeping them takes."""
        return self._produced.size + self._read.size

    def add(self, topic: UUID, partition: int, first: int, last: int, batch: bytes) -> None:
        """Keep a committed batch of offsets `first` to `last`, as consumers are to see it: its offsets are set."""
        place = (topic, partition, NONE)
        if self._produced.extend(place, first, last, batch):
            self._trim()
        elif self._produced.find(place, first) is None and self._produced.find(place, last) is None:
            self._produced.append(place, first, last, batch)
            self._trim()

    def add_read(self, chunk: BatchRun) -> None:
        """Keep what was read from segments."""
        chunk.close()
        self._read.add(chunk)
        self._trim()

    def forget(self, topic: UUID, rewrites: Iterable[Rewrite] | None) -> None:
        """Drop what these rewrites of a topic replaced; None: all of the topic, as for one that is gone."""
        gone = None if rewrites is None else tuple(rewrites)
        self._produced.forget(topic, gone)
        self._read.forget(topic, gone)
        if self.files is not None:
            self.files.forget(topic, gone)

    def get(self, topic: UUID, partition: int, offset: int) -> bytes | memoryview | None:
        """The batch that holds the offset, or the next one where compaction has left none; None: it is not here."""
        chunk = self.find((topic, partition, NONE), offset)
        found = None if chunk is None else chunk.read(offset, 0, at_least_one=True)
        return found.batches[0] if found is not None and found.batches else None

    def find(self, place: Place, offset: int) -> BatchRun | None:
        """The chunk that covers the offset; None: it is not here. What was produced here comes first."""
        return self._produced.find((place[0], place[1], NONE), offset) or self._read.find(place, offset)

    def next_first(self, place: Place, offset: int) -> int | None:
        """The first offset after this one at which a chunk begins, here or in a file; None: there is none."""
        firsts = [
            self._produced.next_first((place[0], place[1], NONE), offset),
            self._read.next_first(place, offset),
            None if self.files is None else self.files.next_first(place, offset),
        ]
        return min((first for first in firsts if first is not None), default=None)

    def _trim(self) -> None:
        while self.size > self.most_bytes:
            chunk = (self._produced if self._produced.size > self._read.size else self._read).drop()
            if self.files is not None:
                self.files.put(chunk)
