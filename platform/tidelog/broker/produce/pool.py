"""The raw batches that wait for one topic, from all connections: what waits becomes one entry."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.produce.entry import Appended, Settled, StagingWriter, UnitWriter, UnsettledUnits
from tidelog.broker.produce.entry_spans import entry_spans
from tidelog.broker.produce.linger import NextRound, Overlap, due_in_s, small_files
from tidelog.broker.produce.reading import Chunk
from tidelog.broker.produce.request import ProducedBatch
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.base.request_ids import REQUEST
from tidelog.server.base.blocking import pause, until_done

logger = logging.getLogger(__name__)

# What waits is read while the entry before is written, from so much on: less is read sooner than a thread wakes up.
AHEAD_BYTES: Final = 1024 * 1024
# What is due so soon is due: a loop's timers may be early by the resolution of its clock, and it waits no shorter.
SOON_S: Final = 1e-6
# An entry is staged ahead if it has this part of the units of the entry before: producers that wait for that one's
# answers send all they have in the entry after it, and files of a few units would cost as much.
_PART: Final = 0.25


@dataclass(slots=True)
class _Entry:
    """What becomes one entry: what was read of it before, and the rest. `begun`: it, where it is staged already."""

    chunks: Sequence[Chunk]
    units: Sequence[ProducedBatch]
    begun: Settled | UnsettledUnits | None = None

    @property
    def everything(self) -> list[ProducedBatch]:
        """All of its units, in their order."""
        return [unit for chunk in self.chunks for unit in chunk.units] + [*self.units]


class TopicPool:
    """One topic's units, in the order in which they came, and what writes them: one entry after another.

    While one is committed, the next one may be staged: it is committed after that, whatever became of that.
    `topic_id`: of the topic that they are for; another one may have its name by now. For the loop's thread.
    """

    def __init__(
        self,
        context: Context,
        followed: BrokerTopic,
        topic_id: str,
        writer: UnitWriter,
        linger: Linger,
        lost: Callable[[], None],
    ) -> None:
        self.followed = followed
        self.topic_id = topic_id
        self.uuid = UUID(topic_id)
        self._context = context
        self._writer = writer
        self._linger = linger
        self._lost = lost
        self._budget = writer.budget
        self._staging = writer if isinstance(writer, StagingWriter) else None
        self._overlap = Overlap(linger)
        self._next: asyncio.Task[_Entry] | None = None
        self._next_round = NextRound()
        self._waiting: deque[tuple[ProducedBatch, float]] = deque()
        self._waiting_bytes = 0
        self._chunks: list[Chunk] = []
        self._chunk_bytes = self._chunk_units = 0
        self._ahead: asyncio.Task[None] | None = None
        self._full = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_writing = False

    @property
    def is_current(self) -> bool:
        """Whether the topic of that name is still the one that this pool is for, as far as is known."""
        log = self.followed.log
        return log.error is None and log.topic is not None and log.topic.id == self.topic_id

    def add(self, unit: ProducedBatch, now_s: float) -> None:
        """Take a unit in. It has its outcome later, by itself."""
        self._waiting.append((unit, now_s))
        self._waiting_bytes += unit.header.size
        if self._waiting_bytes >= self._linger.enough_bytes or self._next_round.completed_by(self._units):
            self._full.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        elif self._is_writing:
            self._read_ahead()

    # --- entries -------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Write entries until nothing waits."""
        REQUEST.set(None)  # from here on the task works for many
        try:
            while self._waiting or self._chunks or self._ahead is not None or self._next is not None:
                if self._next is not None:
                    entry, self._next = await self._next, None
                else:
                    await self._until_due()
                    entry = await self._taken()
                await self._write(entry)
        finally:
            self._task = None

    async def _until_due(self) -> None:
        """Wait until what waits is due."""
        while (left_s := self._due_in_s()) > SOON_S:
            self._full.clear()
            try:
                await asyncio.wait_for(self._full.wait(), left_s)
            except TimeoutError:
                continue

    def _due_in_s(self) -> float:
        """In how many seconds what waits is due; what is read already waits for no budget of files."""
        if self._waiting_bytes + self._chunk_bytes >= self._linger.enough_bytes:
            return 0.0
        now_s = self._context.clock.elapsed_s()
        return max(self._next_round.left_s(self._units, now_s), self._lingers_s(now_s))

    def _lingers_s(self, now_s: float) -> float:
        """How long what waits does so for others, and for the budget."""
        if self._chunks or self._ahead is not None or not self._waiting:
            return 0.0
        waited_s = now_s - self._waiting[0][1]
        files_left, rate = self._budget.left(now_s), self._budget.rate(now_s)
        return due_in_s(self._linger, files_left, rate, self._waiting_bytes, waited_s)

    @property
    def _units(self) -> int:
        """How many units wait, or are read already."""
        return self._chunk_units + len(self._waiting)

    async def _taken(self) -> _Entry:
        """What is read and what waits, as the next entry."""
        while self._ahead is not None:  # once it ends, another may have begun: what it reads comes before what waits
            await self._ahead
        chunks, self._chunks = self._chunks, []
        units = self._take(self._linger.enough_bytes - self._chunk_bytes, at_least_one=not chunks)
        self._chunk_bytes = self._chunk_units = 0
        entry = _Entry(chunks, units)
        sizes = [(unit.partition, unit.header.size) for unit in entry.everything]
        self._budget.take(small_files(self._linger, sizes), self._context.clock.elapsed_s())
        return entry

    async def _write(self, entry: _Entry) -> None:
        everything = entry.everything
        self._is_writing, began_s = True, self._context.clock.elapsed_s()
        self._read_ahead()
        try:
            settled = await self._overlapped(entry, len(everything))
        except Exception as e:  # no unit may wait for ever
            if not isinstance(e, TidelogError):
                logger.exception("Producing to topic '%s' failed by a fault in the program.", self.followed.name)
            refused = [one for chunk in entry.chunks for one in chunk.refused]
            settled = Settled((), [*refused, *((unit, e) for unit in everything)])
        finally:
            self._is_writing = False
        now_s = self._context.clock.elapsed_s()
        (self._overlap.wrote if entry.begun is None else self._overlap.committed)(now_s - began_s)
        self._next_round.answered(len(everything), self._units, now_s - began_s, now_s)
        if self._context.meter.tracing is not None:
            done = "commit" if self._staging is not None else "stage"
            entry_spans(f"{done} {self.followed.name}", settled, began_s, now_s)
        self._settle(settled)

    async def _overlapped(self, entry: _Entry, units: int) -> Settled:
        """Have an entry committed, and meanwhile the next one staged where that is worth it."""
        begins_in_s = self._overlap.begins_in_s(is_staged=entry.begun is not None)
        if self._staging is None or begins_in_s is None:
            return await self._committed(entry)
        commit = asyncio.create_task(self._committed(entry))
        await asyncio.wait({commit}, timeout=begins_in_s)
        now_s = self._context.clock.elapsed_s()
        is_worth_it = self._units >= _PART * units and self._context.load(now_s) < self._linger.busy
        if not commit.done() and self._units and is_worth_it and self._lingers_s(now_s) <= SOON_S:
            self._next = asyncio.create_task(self._staged(self._staging))
        return await commit

    async def _committed(self, entry: _Entry) -> Settled:
        blocking, written = self._context.blocking, entry.begun
        if written is None:
            written = await blocking(self._writer.write, entry.chunks, entry.units)
        elif not isinstance(written, Settled):
            written = await blocking(written.advance) or written
        while not isinstance(written, Settled):
            if written.waits_for is not None:
                await until_done(written.waits_for)
            else:
                await pause(max(SOON_S, written.due_s()))  # less may be nothing by the loop's clock
            written = await blocking(written.advance) or written
        return written

    async def _staged(self, writer: StagingWriter) -> _Entry:
        """The next entry, staged; what can't be staged for now is written from the beginning in its turn."""
        entry, began_s = await self._taken(), self._context.clock.elapsed_s()
        try:
            entry.begun = await self._context.blocking(writer.stage, entry.chunks, entry.units)
        except Exception as e:
            if not isinstance(e, TidelogError):
                logger.exception("Staging for topic '%s' failed by a fault in the program.", self.followed.name)
        self._overlap.staged(self._context.clock.elapsed_s() - began_s)
        return entry

    def _take(self, most_bytes: int, *, at_least_one: bool) -> list[ProducedBatch]:
        units: list[ProducedBatch] = []
        while self._waiting:
            size = self._waiting[0][0].header.size
            if size > most_bytes and (units or not at_least_one):
                break
            most_bytes -= size
            self._waiting_bytes -= size
            units.append(self._waiting.popleft()[0])
        return units

    # --- reading ahead -------------------------------------------------------------------------------------

    def _read_ahead(self) -> None:
        """Have what waits read by a thread, while another writes the entry before."""
        room = self._linger.enough_bytes - self._chunk_bytes
        if self._ahead is None and self._waiting_bytes >= AHEAD_BYTES and room >= AHEAD_BYTES:
            units = self._take(room, at_least_one=False)
            if units:
                self._chunk_bytes += sum(unit.header.size for unit in units)
                self._chunk_units += len(units)
                self._ahead = asyncio.create_task(self._read(units))

    async def _read(self, units: Sequence[ProducedBatch]) -> None:
        try:
            chunk = await self._context.blocking(self._writer.read, units)
            self._chunks.append(chunk)
        except Exception as e:
            if not isinstance(e, TidelogError):
                logger.exception("Records for topic '%s' can't be read by a fault.", self.followed.name)
            self._settle(Settled((), [(unit, e) for unit in units]))
        finally:
            self._ahead = None
        if self._is_writing:
            self._read_ahead()

    # --- outcomes ------------------------------------------------------------------------------------------

    def _settle(self, settled: Settled) -> None:
        """Let consumers have what is in the log, and tell the producers."""
        cache, counts = self._context.cache, self._context.meter.topic(self.followed.name)
        counts.produce_requests += len(settled.appended) + len(settled.refused)
        counts.failed_produce_requests += len(settled.refused)
        tells = logger.isEnabledFor(logging.DEBUG)
        for appended in settled.appended:
            offset = appended.landed.offset
            if tells:
                self._tell(appended, offset)
            counts.messages_in += appended.unit.header.count
            counts.bytes_in += appended.unit.header.size
            place, end = (self.uuid, appended.unit.partition), offset + appended.unit.header.count
            if appended.batch is not None and not self.followed.is_rewritten(*place, offset, end):
                cache.add(*place, offset, end - 1, appended.batch)
            appended.unit.landed(offset, appended.landed.append_ms, appended.log_start_offset)
        for unit, error in settled.refused:
            unit.refused(error)
        if settled.appended:
            partitions = {appended.unit.partition for appended in settled.appended}
            self._context.topics.committed(self.followed.name, partitions)
        if any(isinstance(error, UnknownTopicError | TopicChangedError) for _, error in settled.refused):
            self._lost()

    def _tell(self, appended: Appended, offset: int) -> None:
        """Write which offsets a request's batch got: the entry that adds the file of these offsets is its entry."""
        logger.debug(
            "Appended: topic=%s partition=%d offset=%d records=%d",
            self.followed.name,
            appended.unit.partition,
            offset,
            appended.unit.header.count,
            extra={"request": appended.unit.request.id},
        )
