"""Lines that a broker writes to a topic by itself: each is a record, appended soon after it came."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pyarrow as pa

from tidelog.broker.base.topics import BrokerTopics
from tidelog.log.appends.appender import AppendBatch, Appender
from tidelog.log.base.errors import RecordTooLargeError, RequestForgottenError, TidelogError
from tidelog.server.base.blocking import Blocking

logger = logging.getLogger(__name__)

# Lines that wait while the store gives no answer; with more, the oldest are in no topic.
MOST_WAITING: Final = 10_000
MOST_WAITING_BYTES: Final = 64 * 1024 * 1024
AGAIN_AFTER_S: Final = 1.0


class TopicLines:
    """Appends lines to a topic, which is created with the first. For the loop's thread.

    `what` the lines are, and `elsewhere`, a sentence about where they are while the topic takes nothing, for warnings.
    `gather_s`: how long a line waits for others, so that an entry holds many. `most` of them wait, of `most_bytes`.
    """

    def __init__(
        self,
        appender: Appender,
        topics: BrokerTopics,
        blocking: Blocking,
        *,
        what: str,
        elsewhere: str,
        gather_s: float = 0.0,
        most: int = MOST_WAITING,
        most_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self._appender = appender
        self._topics = topics
        self._blocking = blocking
        self._what, self._elsewhere = what, elsewhere
        self._gather_s = gather_s
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._most, self._most_bytes = most, most_bytes
        # The lines that are being appended: the same ones until they are there, so that each is there once.
        self._batch: AppendBatch | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._failing = False

    def add(self, *lines: bytes) -> None:
        """Have lines appended, behind those before them."""
        self._waiting.extend(lines)
        self._waiting_bytes += sum(map(len, lines))
        while len(self._waiting) > self._most or self._waiting_bytes > self._most_bytes:
            self._waiting_bytes -= len(self._waiting.popleft())
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._append_all())

    async def close(self) -> None:
        """Append what waits; what can't be appended at once is in no topic."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _append_all(self) -> None:
        while self._batch is not None or self._waiting:
            if self._batch is None:
                if self._gather_s:
                    await self._closed_within(self._gather_s)
                self._batch = self._appender.begin(pa.table({"value": _binary(self._waiting)}))
                self._waiting.clear()
                self._waiting_bytes = 0
            if await self._is_appended(self._batch):
                self._batch = None
            elif self._closing.is_set():
                return
            else:
                await self._closed_within(AGAIN_AFTER_S)

    async def _closed_within(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)

    async def _is_appended(self, batch: AppendBatch) -> bool:
        """Whether nothing is left to do: the lines are there, can't be there, or whether they are is not known."""
        topic = self._appender.topic
        try:
            await self._blocking(batch.run)
        except RequestForgottenError as e:
            logger.warning("Whether lines of %s are in topic '%s' is not known. %s", self._what, topic, e)
        except RecordTooLargeError as e:  # no repeat makes it smaller, and those behind it would wait for ever
            logger.warning("Lines of %s are in no topic: '%s' does not take one of them. %s", self._what, topic, e)
        except TidelogError as e:
            if not self._failing:
                logger.warning("%s, for now: topic '%s' takes nothing. %s", self._elsewhere, topic, e)
            self._failing = True
            return False
        self._failing = False
        self._topics.committed(topic)
        return True


def _binary(lines: Iterable[bytes]) -> pa.Array:
    return pa.array(list(lines), pa.binary())
