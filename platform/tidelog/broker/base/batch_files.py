"""Record batches that memory has no room for, in files of this process: kept until their room is needed.

They are of what consumers were sent, or would have been: what memory drops is written down behind what it dropped
before, and the oldest file goes as a whole. A file has no name, so that nothing of it is left when the process ends.
What is rewritten in the log is forgotten here as it is in memory.
"""

import asyncio
import logging
import mmap
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from crc32c import crc32c

from tidelog.broker.base.batch_runs import BatchRun, Chunks, Place
from tidelog.broker.records.batches import NONE, epoch_of, of_epoch, split
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.state.rewrites import Rewrite
from tidelog.log.storage.scratch import ScratchFile
from tidelog.server.base.blocking import Blocking

logger = logging.getLogger(__name__)

# Files of all that may be kept, each of which goes as a whole; and the least size of one.
FILES: Final = 16
LEAST_FILE_BYTES: Final = 1024 * 1024
# Batches of about this size are checked together, and sent together.
GROUP_BYTES: Final = 64 * 1024
# What memory drops waits for that much to be written, so that runs which follow one another are written as one; while
# the second bound is reached, nothing more is kept.
WRITE_BYTES: Final = 8 * 1024 * 1024
MOST_WAITING_BYTES: Final = 32 * 1024 * 1024
# What is written as one at most: about what a consumer asks for of a partition.
_RUN_BYTES: Final = 1024 * 1024
# How long a file lasts that has bytes of records which the log has no more.
FORGOTTEN_S: Final = 600.0
# How long no file is made after an error.
_REST_S: Final = 60.0


class BatchFile:
    """A file of batches. `is_dropped`: its room was needed; a reader that looks at its bytes may go on."""

    def __init__(self, scratch: ScratchFile) -> None:
        self.scratch = scratch
        self.end = 0  # of what is written
        self.is_dropped = False
        self.runs: list[FiledRun] = []

    def has_room(self, size: int) -> bool:
        """Whether `size` bytes may be written behind the others."""
        return not self.is_dropped and self.end + size <= self.scratch.size


@dataclass(slots=True, eq=False)
class FiledRun(BatchRun):
    """A run whose batches are in a file, from its byte `at` on, all of one `epoch`. `batches` is empty.

    They are looked at in groups: `lasts` has the last offset of each, `borders` where it ends, from the run's begin on,
    and `sums` its CRC-32C.
    """

    file: BatchFile | None = None
    at: int = 0
    epoch: int = 0
    borders: Sequence[int] = ()
    sums: Sequence[int] = ()

    def part(self, offset: int, most_bytes: int) -> "FiledPart | None":
        """Its groups from the one that holds the offset on, up to `most_bytes`, one at least; None: none is there."""
        begin = bisect_left(self.lasts, offset)
        if begin == len(self.lasts):
            return None
        before = self.borders[begin - 1] if begin else 0
        end = bisect_left(self.borders, before + most_bytes + 1, begin + 1)
        return FiledPart(self, begin, end, offset, most_bytes)


class BatchPart(Protocol):
    """Batches of a run that follow one another."""

    @property
    def run(self) -> BatchRun:
        """The run that they are of."""

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def last(self) -> int:
        """The last offset."""

    @property
    def behind(self) -> int:
        """The offset at which to go on: behind offsets without a record, too."""

    @property
    def is_near(self) -> bool:
        """Whether they are in memory, so that they are read without a wait for a disk."""

    def read(self, leader_epoch: int) -> "Sequence[tuple[int, bytes | memoryview]]":
        """The batches as (last offset, bytes), each one or some that follow one another; for any thread.

        Raises OSError for what can't be read, or is not what was written.
        """


@dataclass(frozen=True, slots=True)
class WaitingPart:
    """Batches [begin, end) of a run that is not in a file yet."""

    run: BatchRun
    begin: int
    end: int
    size: int
    behind: int
    is_near: bool = True

    @property
    def last(self) -> int:
        """See `BatchPart`."""
        return self.run.lasts[self.end - 1]

    def read(self, leader_epoch: int) -> Sequence[tuple[int, bytes | memoryview]]:
        """See `BatchPart`."""
        batches = of_epoch(self.run.batches[self.begin : self.end], leader_epoch)
        return list(zip(self.run.lasts[self.begin : self.end], batches, strict=True))


@dataclass(frozen=True, slots=True)
class FiledPart:
    """Groups [begin, end) of a run, from an offset on, where `most_bytes` are to be sent."""

    run: FiledRun
    begin: int
    end: int
    offset: int
    most_bytes: int

    @property
    def size(self) -> int:
        """In bytes."""
        start, end = self._place
        return end - start

    @property
    def last(self) -> int:
        """See `BatchPart`."""
        return self.run.lasts[self.end - 1]

    @property
    def behind(self) -> int:
        """See `BatchPart`."""
        return self.run.end if self.end == len(self.run.borders) else self.last + 1

    @property
    def is_near(self) -> bool:
        """See `BatchPart`."""
        assert self.run.file is not None
        return self.run.file.scratch.is_near(*self._place)

    @property
    def _place(self) -> tuple[int, int]:
        run = self.run
        return run.at + (run.borders[self.begin - 1] if self.begin else 0), run.at + run.borders[self.end - 1]

    def read(self, leader_epoch: int) -> Sequence[tuple[int, bytes | memoryview]]:
        """See `BatchPart`."""
        run = self.run
        assert run.file is not None
        begin = run.borders[self.begin - 1] if self.begin else 0
        view = run.file.scratch.look(*self._place)
        start = 0
        for group in range(self.begin, self.end):
            end = run.borders[group] - begin
            if crc32c(view[start:end]) != run.sums[group]:
                raise OSError("it is not what was written")
            start = end
        last_before = run.lasts[self.begin - 1] if self.begin else run.first - 1
        if run.epoch == leader_epoch and self.offset <= last_before + 1 and len(view) <= self.most_bytes:
            return [(run.lasts[self.end - 1], view)]
        return self._exactly(view, leader_epoch)

    def _exactly(self, view: memoryview, leader_epoch: int) -> Sequence[tuple[int, bytes | memoryview]]:
        """From the batch on that holds the offset, whole batches up to `most_bytes`, but one at least."""
        pieces: list[tuple[int, bytes | memoryview]] = []
        left = self.most_bytes
        for header, batch in split(view):
            last = header.base_offset + header.last_offset_delta
            if last < self.offset:
                continue
            left -= len(batch)
            if pieces and left < 0:
                break
            pieces.append((last, batch))
        sent = of_epoch([batch for _, batch in pieces], leader_epoch)
        return [(last, batch) for (last, _), batch in zip(pieces, sent, strict=True)]


class BatchFiles:
    """Up to `most_bytes` of batches in files. For the loop's thread.

    `new_file`: makes a file of a size, in any thread. Raises OSError.
    """

    def __init__(
        self, most_bytes: int, new_file: Callable[[int], ScratchFile], blocking: Blocking, clock: Clock
    ) -> None:
        self.most_bytes = most_bytes
        self._file_bytes = max(most_bytes // FILES, min(most_bytes, LEAST_FILE_BYTES))
        self._write_bytes = min(WRITE_BYTES, self._file_bytes)
        self._new_file = new_file
        self._blocking = blocking
        self._clock = clock
        self._runs = Chunks()
        self._files: deque[BatchFile] = deque()
        self._waiting: list[BatchRun] = []
        self._waiting_bytes = 0
        self._writing: asyncio.Task[None] | None = None
        self._rest_until_s = 0.0
        # Files that go soon, and when.
        self._due: dict[BatchFile, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """The bytes that files have room for."""
        return sum(file.scratch.size for file in self._files)

    def put(self, run: BatchRun) -> None:
        """Keep what memory drops."""
        is_late = self._waiting_bytes + run.size > MOST_WAITING_BYTES
        if not run.size or run.size > self._file_bytes or is_late or self._clock.elapsed_s() < self._rest_until_s:
            return
        run.close()
        self._runs.add(run)
        self._waiting.append(run)
        self._waiting_bytes += run.size
        if self._waiting_bytes >= self._write_bytes and self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    def find(self, place: Place, offset: int) -> BatchRun | None:
        """The run that covers the offset, which may be on its way into a file yet; None: it is not here."""
        return self._runs.find((place[0], place[1], NONE), offset) or self._runs.find(place, offset)

    def part(self, place: Place, offset: int, most_bytes: int) -> BatchPart | None:
        """Batches from the one that holds the offset on, up to `most_bytes`, but one at least; None: none is here."""
        run = self.find(place, offset)
        if isinstance(run, FiledRun):
            return run.part(offset, most_bytes)
        if run is None:
            return None
        begin, rest = bisect_left(run.lasts, offset), run.read(offset, most_bytes, at_least_one=True)
        return WaitingPart(run, begin, begin + len(rest.batches), rest.size, rest.end) if rest.batches else None

    def next_first(self, place: Place, offset: int) -> int | None:
        """Where the first run begins that begins after the offset."""
        produced = self._runs.next_first((place[0], place[1], NONE), offset)
        read = self._runs.next_first(place, offset)
        return min((first for first in (produced, read) if first is not None), default=None)

    def drop(self, run: BatchRun) -> None:
        """Give a run up."""
        if self._has(run):
            self._runs.remove(run)

    def forget(self, topic: UUID, rewrites: Iterable[Rewrite] | None) -> None:
        """As `BatchCache.forget`. What is on a disk is gone from there in a while."""
        due_s = self._clock.elapsed_s() + FORGOTTEN_S
        for run in self._runs.forget(topic, rewrites):
            if isinstance(run, FiledRun) and run.file is not None and not run.file.is_dropped:
                self._due.setdefault(run.file, due_s)
        self._await_due()

    def close(self) -> None:
        """Keep nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        self._rest_until_s = float("inf")
        self._waiting.clear()
        while self._files:
            self._drop_file(self._files[0])

    # --- writing -------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Write what waits, until that is little."""
        try:
            while self._waiting_bytes >= self._write_bytes:
                waiting, self._waiting = self._waiting, []
                size, together = sum(run.size for run in waiting), _together(filter(self._has, waiting))
                newest = self._files[-1] if self._files else None
                try:
                    files, filed = await self._blocking(self._written, together, newest)
                    self._take(files, together, filed)
                except OSError as e:
                    logger.warning("Batches are not kept in files for %.0f s: %s", _REST_S, e)
                    self._rest_until_s = max(self._rest_until_s, self._clock.elapsed_s() + _REST_S)
                    for run in (*waiting, *self._waiting):
                        self.drop(run)
                    size, self._waiting = self._waiting_bytes, []
                self._waiting_bytes -= size
        finally:
            self._writing = None

    def _has(self, run: BatchRun) -> bool:
        return self._runs.find(run.place, run.first) is run

    def _written(
        self, together: Sequence[Sequence[BatchRun]], file: BatchFile | None
    ) -> tuple[Sequence[BatchFile], Sequence[FiledRun]]:
        """(new files, runs in their files), in a thread, one at a time. Raises OSError."""
        files, filed = [], []
        for runs in together:
            if file is None or not file.has_room(sum(run.size for run in runs)):
                file = BatchFile(self._new_file(self._file_bytes))
                files.append(file)
            filed.append(_filed(runs, file))
        return files, filed

    def _take(
        self, files: Iterable[BatchFile], together: Sequence[Sequence[BatchRun]], filed: Sequence[FiledRun]
    ) -> None:
        """Have these in place of what was in memory, unless that was forgotten meanwhile."""
        if self._rest_until_s == float("inf"):
            return
        self._files.extend(files)
        for runs, kept in zip(together, filed, strict=True):
            file = kept.file
            assert file is not None
            is_whole = all(map(self._has, runs))
            if is_whole and not file.is_dropped:
                self._runs.add(kept)
                file.runs.append(kept)
                continue
            for run in runs:
                self.drop(run)
            if not is_whole:
                self._due.setdefault(file, self._clock.elapsed_s() + FORGOTTEN_S)
        while len(self._files) > 1 and self.size > self.most_bytes:
            self._drop_file(self._files[0])
        self._await_due()

    # --- files that go -------------------------------------------------------------------------------------

    def _drop_file(self, file: BatchFile) -> None:
        self._files.remove(file)
        self._due.pop(file, None)
        file.is_dropped = True
        for run in file.runs:
            self.drop(run)
        file.runs.clear()

    def _await_due(self) -> None:
        if self._due and self._timer is None:
            wait_s = max(0.0, min(self._due.values()) - self._clock.elapsed_s())
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._drop_due)

    def _drop_due(self) -> None:
        self._timer = None
        now_s = self._clock.elapsed_s()
        for file in [file for file, due_s in self._due.items() if due_s <= now_s]:
            if file.is_dropped:
                del self._due[file]
            else:
                self._drop_file(file)
        self._await_due()


def batch_files(most_bytes: int, folder: str | None, blocking: Blocking, clock: Clock) -> BatchFiles | None:
    """A broker's files in a folder, None: the system's; none for 0 bytes. Raises `InvalidConfigError`."""
    if not most_bytes:
        return None
    try:
        ScratchFile(folder or "", mmap.PAGESIZE)
    except OSError as e:
        raise InvalidConfigError(
            f"Batches can't be kept in files, as cache.files.bytes asks: {e}. Name a folder that takes files by"
            " cache.files.dir, or set cache.files.bytes to 0."
        ) from e
    return BatchFiles(most_bytes, partial(ScratchFile, folder or ""), blocking, clock)


def _together(runs: Iterable[BatchRun]) -> Sequence[Sequence[BatchRun]]:
    """Runs that are written as one, as they follow one another."""
    together: list[list[BatchRun]] = []
    size = 0
    for run in sorted(runs, key=lambda run: (run.place, run.first)):
        before = together[-1][-1] if together else None
        size += run.size
        if (
            before is not None
            and size <= _RUN_BYTES
            and (before.place, before.end, before.version) == (run.place, run.first, run.version)
        ):
            together[-1].append(run)
        else:
            together.append([run])
            size = run.size
    return together


def _filed(runs: Sequence[BatchRun], file: BatchFile) -> FiledRun:
    """Runs as one, written into its file behind what is there, whose groups are noted. Raises OSError."""
    all_lasts = [last for run in runs for last in run.lasts]
    all_batches = [batch for run in runs for batch in run.batches]
    epoch = epoch_of(all_batches[-1])
    lasts, borders, sums, parts = array("q"), array("q"), array("I"), []
    group: list[bytes | memoryview] = []
    size = border = 0
    batches = of_epoch(all_batches, epoch)
    for number, batch in enumerate(batches, 1):
        group.append(batch)
        size += len(batch)
        if size < GROUP_BYTES and number < len(batches):
            continue
        data = group[0] if len(group) == 1 else b"".join(group)
        border += size
        parts.append(data)
        lasts.append(all_lasts[number - 1])
        borders.append(border)
        sums.append(crc32c(data))
        group, size = [], 0
    file.scratch.write(file.end, parts)
    at, file.end = file.end, file.end + border
    first, last = runs[0], runs[-1]
    return FiledRun(
        first.place, first.first, last.end, lasts, (), border, first.version, file, at, epoch, borders, sums
    )
