"""The raw batches that wait for one topic, from all connections: what waits becomes one entry."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import Linger
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.produce.entry import Appended, Settled, UnitWriter
from tidelog.broker.produce.linger import NextRound, due_in_s, small_files
from tidelog.broker.produce.reading import Chunk
from tidelog.broker.produce.request import ProducedBatch
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.base.request_ids import REQUEST
from tidelog.server.base.blocking import pause, until_done

logger = logging.getLogger(__name__)

# What waits is read while the entry before is written, from so much on: less is read sooner than a thread wakes up.
AHEAD_BYTES: Final = 1024 * 1024
# What is due so soon is due: a loop's timers may be early by the resolution of its clock.
SOON_S: Final = 1e-6


class TopicPool:
    """One topic's units, in the order in which they came, and what writes them: one entry at a time.

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
            while self._waiting or self._chunks or self._ahead is not None:
                await self._until_due()
                await self._write()
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
        left_s = self._next_round.left_s(self._units, now_s)
        if self._chunks or self._ahead is not None or not self._waiting:
            return left_s
        waited_s = now_s - self._waiting[0][1]
        files_left, rate = self._budget.left(now_s), self._budget.rate(now_s)
        return max(left_s, due_in_s(self._linger, files_left, rate, self._waiting_bytes, waited_s))

    @property
    def _units(self) -> int:
        """How many units wait, or are read already."""
        return self._chunk_units + len(self._waiting)

    async def _write(self) -> None:
        if self._ahead is not None:
            await self._ahead
        chunks, self._chunks = self._chunks, []
        units = self._take(self._linger.enough_bytes - self._chunk_bytes, at_least_one=not chunks)
        self._chunk_bytes = self._chunk_units = 0
        everything = [unit for chunk in chunks for unit in chunk.units] + units
        sizes = [(unit.partition, unit.header.size) for unit in everything]
        self._budget.take(small_files(self._linger, sizes), self._context.clock.elapsed_s())
        self._is_writing, began_s = True, self._context.clock.elapsed_s()
        self._read_ahead()
        try:
            settled = await self._committed(chunks, units)
        except Exception as e:  # no unit may wait for ever
            if not isinstance(e, TidelogError):
                logger.exception("Producing to topic '%s' failed by a fault in the program.", self.followed.name)
            refused = [one for chunk in chunks for one in chunk.refused]
            settled = Settled((), [*refused, *((unit, e) for unit in everything)])
        finally:
            self._is_writing = False
        now_s = self._context.clock.elapsed_s()
        self._next_round.answered(len(everything), self._units, now_s - began_s, now_s)
        self._settle(settled)

    async def _committed(self, chunks: Sequence[Chunk], units: Sequence[ProducedBatch]) -> Settled:
        blocking = self._context.blocking
        written = await blocking(self._writer.write, chunks, units)
        while not isinstance(written, Settled):
            if written.waits_for is not None:
                await until_done(written.waits_for)
            else:
                await pause(written.due_s())
            written = await blocking(written.advance) or written
        return written

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
            self._chunks.append(await self._context.blocking(self._writer.read, units))
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
            self._context.topics.committed(self.followed.name)
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
