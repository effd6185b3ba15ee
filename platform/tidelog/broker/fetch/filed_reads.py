"""Batches read back from files of this process: all that a request wants of them in one go, each checked."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidelog.broker.base.batch_files import BatchPart
from tidelog.broker.base.batch_runs import BatchRun, Place
from tidelog.broker.base.context import Context
from tidelog.broker.base.topics import BrokerTopic

logger = logging.getLogger(__name__)

# What is looked at by the loop itself: less than a millisecond's work, and less than a thread takes to be woken for it.
AT_ONCE_BYTES: Final = 4 * 1024 * 1024


class FromFiles(NamedTuple):
    """What a request wants of a partition: batches from an offset on, up to `most_bytes`."""

    topic: BrokerTopic
    place: Place
    offset: int
    most_bytes: int


@dataclass(slots=True)
class _FiledReading:
    """What is read for one partition: parts that follow one another, and their `pieces` with the last offset of each.

    `end`: the offset at which to go on. `broken`: a run that can't be read.
    """

    wanted: FromFiles
    parts: list[BatchPart] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    pieces: list[bytes | memoryview] = field(default_factory=list)
    end: int = 0
    broken: BatchRun | None = None
    why: OSError | None = None

    def read(self, leader_epoch: int) -> None:
        """Look at the parts, in a thread. What follows one that fails is left out."""
        for part in self.parts:
            try:
                pieces = part.read(leader_epoch)
            except OSError as e:
                self.broken, self.why = part.run, e
                return
            for last, piece in pieces:
                self.lasts.append(last)
                self.pieces.append(piece)
            # Less than was planned, where the last batches do not fit.
            self.end = part.behind if self.lasts[-1] == part.last else self.lasts[-1] + 1

    def run(self) -> BatchRun | None:
        """What was read as one run, as of the earliest version of its parts."""
        if not self.pieces:
            return None
        version = min(part.run.version for part in self.parts)
        size = sum(map(len, self.pieces))
        return BatchRun(self.wanted.place, self.wanted.offset, self.end, self.lasts, self.pieces, size, version)


class FiledReads:
    """Reads batches of files. For the loop's thread."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def has(self, place: Place, offset: int) -> bool:
        """Whether a file may have the batch of an offset."""
        files = self._context.cache.files
        return files is not None and files.find(place, offset) is not None

    async def read(self, wanted: Sequence[FromFiles], most_bytes: int) -> Sequence[BatchRun | None]:
        """A run for each from its offset on, of one batch at least; None where there is none after all.

        All of them have `most_bytes`, or one batch each. What is not as it was written is given up.
        """
        readings = self._readings(wanted, most_bytes)
        if any(reading.parts for reading in readings):
            await self._context.blocking(_read, readings, self._context.cluster().epoch)
        return self._runs(readings)

    def read_at_once(self, wanted: Sequence[FromFiles], most_bytes: int) -> Sequence[BatchRun | None] | None:
        """As `read`; None where that waits for a disk, or takes a while."""
        readings = self._readings(wanted, most_bytes)
        parts = [part for reading in readings for part in reading.parts]
        if sum(part.size for part in parts) > AT_ONCE_BYTES or not all(part.is_near for part in parts):
            return None
        _read(readings, self._context.cluster().epoch)
        return self._runs(readings)

    def _readings(self, wanted: Sequence[FromFiles], most_bytes: int) -> Sequence[_FiledReading]:
        readings = []
        for one in wanted:
            reading = _FiledReading(one, self._parts(one, most_bytes))
            readings.append(reading)
            most_bytes -= sum(part.size for part in reading.parts)
        return readings

    def _runs(self, readings: Sequence[_FiledReading]) -> Sequence[BatchRun | None]:
        for reading in readings:
            if reading.broken is not None:
                logger.warning("Batches are read from segments, as a file of this process fails: %s", reading.why)
                self._give_up(reading.broken)
        return [reading.run() for reading in readings]

    def _parts(self, wanted: FromFiles, most_bytes: int) -> list[BatchPart]:
        """What there is to be read, one part at least if there is any: all produced here, or all of segments."""
        parts: list[BatchPart] = []
        left, offset = min(wanted.most_bytes, most_bytes), wanted.offset
        files = self._context.cache.files
        while files is not None and (left > 0 or not parts):
            part = files.part(wanted.place, offset, left)
            if part is None:
                break
            if wanted.topic.is_stale(part.run):
                self._give_up(part.run)
                break
            if parts and (part.size > left or (part.run.version < 0) != (parts[0].run.version < 0)):
                break
            parts.append(part)
            left -= part.size
            offset = part.behind
        return parts

    def _give_up(self, run: BatchRun) -> None:
        files = self._context.cache.files
        if files is not None:
            files.drop(run)


def _read(readings: Sequence[_FiledReading], leader_epoch: int) -> None:
    for reading in readings:
        reading.read(leader_epoch)
