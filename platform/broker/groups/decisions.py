"""Decisions over groups, on their way to the log: all that wait while one entry is written go into the next."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tidelog.broker.base.blocking import Blocking
from tidelog.groups.model import Decision, GroupView
from tidelog.groups.store.group_log import GroupLog

logger = logging.getLogger(__name__)

R = TypeVar("R")
Rule = Callable[[GroupView], Decision[Any]]
Done = Callable[[Any, Exception | None], None]

# At most this many go into one entry.
MOST_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class _Submitted:
    group_id: str
    rule: Rule
    done: Done


class Decisions:
    """One broker's way to the log of groups. For the loop's thread.

    Outcomes come in the order of the log, so that a caller's picture of a group never goes back.
    """

    def __init__(self, log: GroupLog, blocking: Blocking) -> None:
        self._log = log
        self._blocking = blocking
        self._waiting: list[_Submitted] = []
        self._running: asyncio.Task[None] | None = None

    def submit(self, group_id: str, rule: Rule, done: Done) -> None:
        """Decide, and call `done` with the rule's response, or with why there is none."""
        self._waiting.append(_Submitted(group_id, rule, done))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def decide(self, group_id: str, rule: Callable[[GroupView], Decision[R]]) -> R:
        """The rule's response, once it is durable. Raises as `GroupLog.decide`; a cancelled caller does not end it."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def done(response: R, error: Exception | None) -> None:
            if future.done():  # its client is gone
                return
            if error is None:
                future.set_result(response)
            else:
                future.set_exception(error)

        self.submit(group_id, rule, done)
        return await future

    async def finish(self) -> None:
        """Wait until nothing waits."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                for one, (response, error) in zip(batch, await self._outcomes(batch), strict=True):
                    try:
                        one.done(response, error)
                    except Exception:
                        logger.exception("The outcome of a decision over group %r was not taken.", one.group_id)
        finally:
            self._running = None

    async def _outcomes(self, batch: list[_Submitted]) -> list[tuple[Any, Exception | None]]:
        try:
            return await self._blocking(self._log.decide_all, [(one.group_id, one.rule) for one in batch])
        except Exception as e:  # each of them hears of it
            return [(None, e)] * len(batch)
