"""Decisions over groups, on their way to the log: all that wait while one entry is written go into the next.

Only the coordinator's go there. One that was frozen finds requests of clients that have long gone elsewhere, and would
take back what those have committed since. So it looks at the cluster again before it decides, and decides nothing that
was asked in another epoch. What takes longer than a look is good for is decided again, by another look.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tidelog.broker.base.context import Context
from tidelog.broker.groups.errors import NotCoordinatorError
from tidelog.groups.model import Decision, GroupView
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.request_ids import REQUEST

logger = logging.getLogger(__name__)

R = TypeVar("R")
Rule = Callable[[GroupView], Decision[Any]]
Done = Callable[[Any, Exception | None], None]

# At most this many go into one entry.
MOST_AT_ONCE = 512
# How long a look at the cluster is good for: no other broker takes its place sooner after a heartbeat.
GOOD_S = 1.0
# How often a decision is tried that takes longer than that by itself.
MOST_TRIES = 3


class _LateError(NotCoordinatorError):
    """The look at the cluster is too old by now: another is to be taken."""


@dataclass(slots=True)
class _Submitted:
    group_id: str
    rule: Rule
    done: Done
    epoch: int
    taken: Callable[[], None] | None
    tries: int = 0


class Decisions:
    """One broker's way to the log of groups. For the loop's thread.

    Outcomes come in the order of the log, so that a caller's picture of a group never goes back.
    """

    def __init__(self, log: GroupLog, context: Context) -> None:
        self._log = log
        self._context = context
        self._waiting: list[_Submitted] = []
        self._running: asyncio.Task[None] | None = None

    def submit(
        self, group_id: str, rule: Rule, done: Done, epoch: int | None = None, taken: Callable[[], None] | None = None
    ) -> None:
        """Decide, and call `done` with the rule's response, or with why there is none.

        `epoch`: the cluster's when the client's request had come, None for now. `taken`: is called when it waits no
        more, before the rule is.
        """
        epoch = self._context.cluster().epoch if epoch is None else epoch
        self._waiting.append(_Submitted(group_id, rule, done, epoch, taken))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run())

    async def decide(self, group_id: str, rule: Callable[[GroupView], Decision[R]], epoch: int | None = None) -> R:
        """The rule's response, once it is durable; `epoch` as in `submit`.

        Raises as `GroupLog.decide`, and `NotCoordinatorError`. A cancelled caller does not end it.
        """
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def done(response: R, error: Exception | None) -> None:
            if future.done():  # its client is gone
                return
            if error is None:
                future.set_result(response)
            else:
                future.set_exception(error)

        self.submit(group_id, rule, done, epoch)
        return await future

    async def finish(self) -> None:
        """Wait until nothing waits."""
        while self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        REQUEST.set(None)  # from here on the task works for many
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                again: list[_Submitted] = []
                for submission in batch:
                    if submission.taken is not None:
                        submission.taken()
                for submission, (response, error) in zip(batch, await self._outcomes(batch), strict=True):
                    if isinstance(error, _LateError) and submission.tries < MOST_TRIES:
                        again.append(submission)
                        continue
                    try:
                        submission.done(response, error)
                    except Exception:
                        logger.exception("The outcome of a decision over group %r was not taken.", submission.group_id)
                self._waiting[:0] = again
        finally:
            self._running = None

    async def _outcomes(self, batch: list[_Submitted]) -> list[tuple[Any, Exception | None]]:
        try:
            return await self._context.blocking(self._decide_all, batch)
        except Exception as e:  # each of them hears of it
            return [(None, e)] * len(batch)

    def _decide_all(self, batch: list[_Submitted]) -> list[tuple[Any, Exception | None]]:
        """Decide, in a worker thread."""
        clock, view = self._context.clock, self._context.confirmed()
        until_s = clock.elapsed_s() + GOOD_S

        def fenced(submission: _Submitted, *, is_first: bool) -> Rule:
            submission.tries += is_first
            coordinates = (
                view.coordinator("group", submission.group_id).id == view.node_id and view.epoch == submission.epoch
            )

            def rule(group: GroupView) -> Decision[Any]:
                if not is_first and clock.elapsed_s() > until_s:  # those before it have taken all of the time
                    raise _LateError(_elsewhere(submission.group_id))
                decision = submission.rule(group)
                if not (decision.group is not None or decision.offsets or decision.pending):
                    return decision
                if not coordinates:
                    raise elsewhere(submission.group_id)
                if clock.elapsed_s() > until_s:
                    raise _LateError(_elsewhere(submission.group_id))
                return decision

            return rule

        return self._log.decide_all(
            [(one.group_id, fenced(one, is_first=place == 0)) for place, one in enumerate(batch)]
        )


def elsewhere(group_id: str) -> NotCoordinatorError:
    """The refusal of a group that another broker coordinates."""
    return NotCoordinatorError(_elsewhere(group_id))


def _elsewhere(group_id: str) -> str:
    return f"Group {group_id!r} is coordinated by another broker: the brokers have changed. Look for its coordinator."
