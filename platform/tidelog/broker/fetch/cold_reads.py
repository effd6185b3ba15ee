"""Reads of segments for consumers: one at a time for all that read at one place, and one chunk ahead of them."""

import asyncio
from collections import OrderedDict
from functools import partial
from typing import Final

from tidelog.broker.base.batch_runs import BatchRun, Place
from tidelog.broker.base.context import Context
from tidelog.broker.base.topics import BrokerTopic
from tidelog.broker.fetch.segment_stream import SegmentStream
from tidelog.broker.records.columns import RecordCodec

# Reads at once. Produced records need threads too.
AT_ONCE: Final = 4
# Streams that are kept open between two reads, and for how long.
MOST_OPEN: Final = 64
OPEN_S: Final = 10.0
# A cache of less has no room for what is read before it is asked for: other reads would drop it.
LEAST_AHEAD: Final = 16 * 1024 * 1024
# A read that begins no more than this before an offset may bring it along: it is waited for.
NEAR: Final = 65_536


class ColdReads:
    """Reads chunks of segments into the cache. For the loop's thread."""

    def __init__(self, context: Context, records: RecordCodec) -> None:
        self._context = context
        self._records = records
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._reading: dict[Place, dict[int, asyncio.Task[BatchRun]]] = {}
        # By place and position, the one that waits for the longest time first; with the time it was put here.
        self._open: OrderedDict[tuple[Place, int], tuple[SegmentStream, float]] = OrderedDict()
        self._closing: asyncio.TimerHandle | None = None

    @property
    def is_ahead(self) -> bool:
        """Whether chunks may be read before they are asked for."""
        return self._context.cache.most_bytes >= LEAST_AHEAD

    def read(self, topic: BrokerTopic, place: Place, offset: int) -> "asyncio.Task[BatchRun]":
        """Read the chunk that begins at the offset, or the one that is on its way and may hold it.

        It is the chunk that the cache gets, and is not empty but at the log end. The task raises a `TidelogError`; it
        goes on when no request waits for it any more.
        """
        reading = self._reading.setdefault(place, {})
        for begin, task in reading.items():
            if begin <= offset < begin + NEAR:
                return task
        task = asyncio.get_running_loop().create_task(self._read(topic, place, offset))
        reading[offset] = task
        task.add_done_callback(partial(self._done, place, offset))
        return task

    def close(self) -> None:
        """Close what is open."""
        if self._closing is not None:
            self._closing.cancel()
        for stream, _ in self._open.values():
            stream.close()
        self._open.clear()

    async def _read(self, topic: BrokerTopic, place: Place, offset: int) -> BatchRun:
        async with self._turns:
            context = self._context
            known = context.cache.find(place, offset)
            if known is not None:
                return known
            chunk, stream = await self._chunk(topic, place, offset)
            if topic.is_stale(chunk):  # while it was read
                stream.close()
                chunk, stream = await self._chunk(topic, place, offset)
            if chunk.end > chunk.first and not topic.is_stale(chunk):
                context.cache.add_read(chunk)
            self._keep(place, stream)
            return chunk

    async def _chunk(self, topic: BrokerTopic, place: Place, offset: int) -> tuple[BatchRun, SegmentStream]:
        """A chunk from segments, and the stream that reads on behind it."""
        context = self._context
        stream, _ = self._open.pop((place, offset), (None, 0.0))
        if stream is None:
            stream = SegmentStream(context.lake.storage, topic.topic, place, offset)
        epoch, stop = context.cluster().epoch, context.cache.next_first(place, offset)
        try:
            return await context.blocking(stream.read, self._records, epoch, stop), stream
        except BaseException:
            stream.close()
            raise

    def _keep(self, place: Place, stream: SegmentStream) -> None:
        """Keep a stream open for the next read."""
        before, _ = self._open.pop((place, stream.position), (None, 0.0))
        if before is not None:
            before.close()
        self._open[place, stream.position] = (stream, self._context.clock.elapsed_s())
        while len(self._open) > MOST_OPEN:
            self._close_oldest()
        if self._closing is None:
            self._closing = asyncio.get_running_loop().call_later(OPEN_S, self._close_idle)

    def _close_idle(self) -> None:
        self._closing = None
        now_s = self._context.clock.elapsed_s()
        while self._open and now_s - next(iter(self._open.values()))[1] >= OPEN_S:
            self._close_oldest()
        if self._open:
            self._closing = asyncio.get_running_loop().call_later(OPEN_S, self._close_idle)

    def _close_oldest(self) -> None:
        _, (stream, _) = self._open.popitem(last=False)
        stream.close()

    def _done(self, place: Place, offset: int, task: "asyncio.Task[BatchRun]") -> None:
        reading = self._reading[place]
        del reading[offset]
        if not reading:
            del self._reading[place]
        if not task.cancelled():
            task.exception()  # what waits for it gets it; if nothing does, the next read tries again
