"""The audit in a topic: each line is a record, appended soon after it was written to the log."""

import asyncio
import logging
from collections import deque
from typing import Final

from tidelog.broker.base.topics import BrokerTopics
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import Blocking, pause

logger = logging.getLogger(__name__)

# Lines that wait while the store gives no answer; with more, the oldest are in the log only.
MOST_WAITING: Final = 10_000
AGAIN_AFTER_S: Final = 1.0


class AuditTopic:
    """Appends lines to a topic, which is created with the first. For the loop's thread."""

    def __init__(self, name: str, lake: Lake, topics: BrokerTopics, blocking: Blocking) -> None:
        self._name = name
        self._lake = lake
        self._topics = topics
        self._blocking = blocking
        self._waiting: deque[bytes] = deque(maxlen=MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def add(self, line: bytes) -> None:
        """Have a line appended, behind those before it."""
        self._waiting.append(line)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._append_all())

    async def close(self) -> None:
        """Append what waits; what can't be appended at once is in the log only."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._waiting:
            await self._append(list(self._waiting))
            self._waiting.clear()

    async def _append_all(self) -> None:
        while self._waiting:
            lines = list(self._waiting)
            if await self._append(lines):
                for _ in range(min(len(lines), len(self._waiting))):
                    self._waiting.popleft()
            else:
                await pause(AGAIN_AFTER_S)

    async def _append(self, lines: list[bytes]) -> bool:
        """Whether they could be appended. A line whose append had no clear outcome may be there twice."""
        try:
            await asyncio.shield(asyncio.ensure_future(self._blocking(self._write, lines)))
        except TidelogError as e:
            if not self._failing:
                logger.warning("The audit is in the log only, for now: topic '%s' takes nothing. %s", self._name, e)
            self._failing = True
            return False
        self._failing = False
        self._topics.committed(self._name)
        return True

    def _write(self, lines: list[bytes]) -> None:
        self._lake.ensure_topic(self._name)
        self._lake.topic(self._name).append([{"value": line} for line in lines])
