"""New records of topics, as server-sent events: a bounded number a second for each page, the rest counted.

All pages that follow a topic share one session of fetches.
Source: the HTML standard, "Server-sent events".
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa
from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from tidelog.console.base.calls import ConsoleCall
from tidelog.console.base.console import Console
from tidelog.console.records.paging import records_of
from tidelog.console.records.requests import RecordView, partitions_of, topic_of
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.follow.fetches import Fetched, FetchFailed, FetchLimits
from tidelog.log.follow.loop import FetchLoop, FetchSession

logger = logging.getLogger("tidelog.console")

# A fetch that nothing answers is asked again after this.
_WAIT_S: Final = 60.0
_LIMITS: Final = FetchLimits(max_wait_s=_WAIT_S)
# Called with each batch of new records, in the thread of the tails: columns as `schema.RECORDS_WITH_HEADERS`.
Take = Callable[[pa.RecordBatch], None]
MOST_A_SECOND: Final = 200
HEARTBEAT_S: Final = 15.0
# Events that wait for a page that reads slowly.
_MOST_WAITING: Final = 1_000


class Tails:
    """A part of the console. All methods may be called from many threads."""

    def __init__(self, console: Console) -> None:
        self._lake = console.lake
        self._loop = FetchLoop(console.lake)
        self._lock = threading.Lock()
        self._followed: dict[str, tuple[FetchSession, list[Take]]] = {}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._rounds = Rounds(logger, "Reading new records", self._ended.wait)
        self._pages = Rounds(logger, "Showing new records to a page")

    def close(self) -> None:
        """End the thread, and give back what the loop holds."""
        self._ended.set()
        if self._thread is not None:
            self._loop.wake()
            self._thread.join()
        self._loop.close()

    def follow(self, topic: str, take: Take) -> None:
        """Call `take` with what is appended to a topic from now on, until `leave`. Raises `UnknownTopicError`."""
        ends = {p: end for p, (_, end) in self._lake.offsets(topic).items()}
        with self._lock:
            if topic not in self._followed:
                session = self._loop.session(headers=True)
                for partition, end in ends.items():
                    session.put(topic, partition, end)
                self._followed[topic] = session, []
                session.ask(_LIMITS)
            self._followed[topic][1].append(take)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="console-tails", daemon=True)
                self._thread.start()

    def leave(self, topic: str, take: Take) -> None:
        """Call `take` no more."""
        with self._lock:
            session, takes = self._followed[topic]
            takes.remove(take)
            if takes:
                return
            del self._followed[topic]
        session.close()

    def widen(self, topic: str) -> None:
        """Follow partitions that the topic got since, from their starts on. Raises `UnknownTopicError`."""
        partitions = self._lake.offsets(topic)
        with self._lock:
            if topic in self._followed:
                session = self._followed[topic][0]
                for partition in partitions.keys() - {p for _, p in session.partitions()}:
                    session.put(topic, partition, partitions[partition][0])

    def followed(self) -> dict[str, int]:
        """{topic: pages that follow it}."""
        with self._lock:
            return {topic: len(takes) for topic, (_, takes) in self._followed.items()}

    def _run(self) -> None:
        while not self._ended.is_set():
            with self._rounds.round():
                for session in self._loop.next(_WAIT_S):
                    with self._rounds.round():
                        self._hand_out(session)
                    session.ask(_LIMITS)

    def _hand_out(self, session: FetchSession) -> None:
        for event in session.read():
            if isinstance(event, FetchFailed):
                logger.warning("New records of %s [%d] can't be read: %s", *_place(event), event.error)
            elif isinstance(event, Fetched):
                batch = event.records
                for take in self._takes(event.cursor.topic):
                    with self._pages.round():
                        take(batch)

    def _takes(self, topic: str) -> Sequence[Take]:
        with self._lock:
            return list(self._followed[topic][1]) if topic in self._followed else ()


def _place(event: FetchFailed) -> tuple[str, int]:
    return event.cursor.topic, event.cursor.partition


class PageTail:
    """The events of one page: filled by the thread of the tails, taken by the page's answer.

    `wake` is called when there is something to take.
    """

    def __init__(self, view: RecordView, partition: int | None, clock: Clock) -> None:
        self._view = view
        self._partition = partition
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[bytes] = deque()
        self._dropped = 0
        self._second, self._in_second = 0, 0
        self.wake: Any = lambda: None

    def take(self, batch: pa.RecordBatch) -> None:
        """Add what the page wants of a batch."""
        if self._partition is not None and batch.num_rows and batch.column("partition")[0].as_py() != self._partition:
            return
        for record in records_of(batch):
            if not self._view.takes(record):
                continue
            if self._is_over():
                with self._lock:
                    self._dropped += 1
                continue
            event = event_of("record", self._view.shown(record))
            with self._lock:
                self._waiting.append(event)
        self.wake()

    def taken(self) -> list[bytes]:
        """The events that wait, and how many records were left out."""
        with self._lock:
            found, self._waiting = list(self._waiting), deque()
            dropped, self._dropped = self._dropped, 0
        return [*found, event_of("dropped", {"count": dropped})] if dropped else found

    def _is_over(self) -> bool:
        second = int(self._clock.elapsed_s())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        return self._in_second > MOST_A_SECOND or len(self._waiting) >= _MOST_WAITING


def event_of(name: str, body: Mapping[str, Any]) -> bytes:
    """An event as bytes; JSON has no line breaks of its own.

    >>> event_of("dropped", {"count": 2})
    b'event: dropped\\ndata: {"count":2}\\n\\n'
    """
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(body))


def tail(call: ConsoleCall) -> Response:
    """New records of a topic, from now on until the page leaves."""
    topic = topic_of(call)
    partitions_of(call, topic)
    page = PageTail(RecordView.of(call), call.optional_number("partition", 0, 2**31 - 1), call.console.lake.clock)
    return StreamingResponse(_events(call, page), media_type="text/event-stream")


async def _events(call: ConsoleCall, page: PageTail) -> AsyncIterator[bytes]:
    tails, clock = call.console.part(Tails), call.console.lake.clock
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    page.wake = partial(loop.call_soon_threadsafe, there.set)
    call.console.wakes.add(page.wake)
    await to_thread.run_sync(tails.follow, call.topic, page.take)
    try:
        while not call.console.ends:
            yield event_of("heartbeat", {"at_ms": clock.now_ms()})
            beat_s = loop.time() + HEARTBEAT_S
            while (left_s := beat_s - loop.time()) > 0:
                try:
                    await asyncio.wait_for(there.wait(), left_s)
                except TimeoutError:
                    break
                if call.console.ends:
                    return
                there.clear()
                for event in page.taken():
                    yield event
            await to_thread.run_sync(_widen, tails, call.topic)
    finally:
        call.console.wakes.discard(page.wake)
        page.wake = lambda: None
        await asyncio.shield(asyncio.to_thread(tails.leave, call.topic, page.take))


def _widen(tails: Tails, topic: str) -> None:
    try:
        tails.widen(topic)
    except TidelogError:
        return  # a topic that is deleted has nothing more to show; the page asks for it itself
