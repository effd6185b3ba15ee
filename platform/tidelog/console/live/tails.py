"""New records of topics, for every page that follows them: one session of fetches for each topic."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from tidelog.console.base.console import Console
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.follow.fetches import Fetched, FetchFailed, FetchLimits
from tidelog.log.follow.loop import FetchLoop, FetchSession

logger = logging.getLogger("tidelog.console")

# A fetch that nothing answers is asked again after this.
_WAIT_S: Final = 60.0
_LIMITS: Final = FetchLimits(max_wait_s=_WAIT_S)
# Called with each batch of new records, in the thread of the tails: columns as `schema.RECORDS_WITH_HEADERS`.
Take = Callable[[pa.RecordBatch], None]


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
