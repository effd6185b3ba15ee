"""The audit in a topic: each line is a record, appended soon after it was written to the log."""

import asyncio
import logging
from collections import deque
from contextlib import suppress
from typing import Final

import pyarrow as pa

from tidelog.broker.base.topics import BrokerTopics
from tidelog.log.appends.appender import AppendBatch
from tidelog.log.base.errors import RequestForgottenError, TidelogError
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import Blocking

logger = logging.getLogger(__name__)

# Lines that wait while the store gives no answer; with more, the oldest are in the log only.
MOST_WAITING: Final = 10_000
AGAIN_AFTER_S: Final = 1.0


class AuditTopic:
    """Appends lines to a topic, which is created with the first. For the loop's thread."""

    def __init__(self, name: str, lake: Lake, topics: BrokerTopics, blocking: Blocking) -> None:
        self._name = name
        self._appender = lake.appender(name, retries=0)
        self._topics = topics
        self._blocking = blocking
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        # The lines that are being appended: the same ones until they are there, so that each is there once.
        self._batch: AppendBatch | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._failing = False

    def add(self, line: bytes) -> None:
        """Have a line appended, behind those before it."""
        self._waiting.append(line)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._append_all())

    async def close(self) -> None:
        """Append what waits; what can't be appended at once is in the log only."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _append_all(self) -> None:
        while self._batch is not None or self._waiting:
            if self._batch is None:
                self._batch = self._appender.begin(pa.table({"value": pa.array(list(self._waiting), pa.binary())}))
                self._waiting.clear()
            if await self._is_appended(self._batch):
                self._batch = None
            elif self._closing.is_set():
                return
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), AGAIN_AFTER_S)

    async def _is_appended(self, batch: AppendBatch) -> bool:
        """Whether the lines are there by now, or whether they are will never be known."""
        try:
            await self._blocking(batch.run)
        except RequestForgottenError as e:
            logger.warning("Whether lines of the audit are in topic '%s' is not known. %s", self._name, e)
        except TidelogError as e:
            if not self._failing:
                logger.warning("The audit is in the log only, for now: topic '%s' takes nothing. %s", self._name, e)
            self._failing = True
            return False
        self._failing = False
        self._topics.committed(self._name)
        return True
