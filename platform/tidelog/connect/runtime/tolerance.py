"""What becomes of a record that can't be processed: tried again, skipped and reported, or the end of the task.

Source: Connect's `RetryWithToleranceOperator` (KIP-298).
"""

import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.runtime.task_figures import TaskFigure, TaskFigures
from tidelog.log.base.errors import TidelogError

logger = logging.getLogger("tidelog.connect")

R = TypeVar("R")
_FIRST_DELAY_MS: Final = 300
_HEADER: Final = "__connect.errors."


class ErrorStage(StrEnum):
    """Where a record failed, by Connect's names."""

    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TASK_PUT = "TASK_PUT"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"


class RecordFailedError(ConnectError):
    """A record failed at a stage, in a class; `cause` says why."""

    def __init__(self, stage: ErrorStage, class_name: str, cause: Exception) -> None:
        super().__init__(f"Error at {stage} in {class_name}: {type(cause).__name__}: {cause}")
        self.stage = stage
        self.class_name = class_name
        self.cause = cause


@dataclass(frozen=True, slots=True)
class TolerancePolicy:
    """The keys `errors.*` of a connector: how long to try again, and what to do then. Times in ms."""

    retry_timeout_ms: int = 0
    retry_delay_max_ms: int = 60_000
    tolerates_all: bool = False
    logs: bool = False
    logs_messages: bool = False

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> "TolerancePolicy":
        """The policy of a parsed configuration."""
        return cls(
            parsed["errors.retry.timeout"], parsed["errors.retry.delay.max.ms"],
            parsed["errors.tolerance"].lower() == "all", parsed["errors.log.enable"],
            parsed["errors.log.include.messages"],
        )  # fmt: skip


def delay_ms(attempt: int, most_ms: int, fraction: float) -> float:
    """The pause before try `attempt` + 1 (from 1 on): doubled each time; a random part of the longest one above it."""
    wanted = _FIRST_DELAY_MS * 2 ** min(attempt - 1, 40)
    return float(wanted) if wanted <= most_ms else most_ms * fraction


class ToleranceOperator:
    """Applies a policy. `wait`: pauses for seconds, True when the task is to stop; `now_s`: an elapsed clock;
    `fraction`: random numbers from 0 to 1.

    Only `RetriableConnectError` and other retriable errors of tidelog are tried again.
    """

    def __init__(
        self,
        policy: TolerancePolicy,
        wait: Callable[[float], bool],
        now_s: Callable[[], float],
        fraction: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._wait = wait
        self._now_s = now_s
        self._fraction = fraction
        self.figures = TaskFigures(now_s)

    def run(self, stage: ErrorStage, class_name: str, call: Callable[[], R]) -> R:
        """The result of a call. Raises `RecordFailedError` once it is not to be tried again."""
        try:
            return call()
        except Exception as error:
            return self.recover(stage, class_name, call, error)

    def recover(self, stage: ErrorStage, class_name: str, call: Callable[[], R], error: Exception) -> R:
        """The result of a call that has just failed by `error`, tried again as the policy says; raises as `run`."""
        policy, started_s, attempt = self._policy, self._now_s(), 0
        while True:
            attempt += 1
            self.figures.add(TaskFigure.FAILURES)
            pause_ms = delay_ms(attempt, policy.retry_delay_max_ms, self._fraction())
            spent_ms = (self._now_s() - started_s) * 1000
            in_time = policy.retry_timeout_ms < 0 or spent_ms + pause_ms <= policy.retry_timeout_ms
            if not (is_retriable(error) and in_time):
                raise RecordFailedError(stage, class_name, error) from error
            self.figures.add(TaskFigure.RETRIES)
            if self._wait(pause_ms / 1000):
                raise RecordFailedError(stage, class_name, error) from error
            try:
                return call()
            except Exception as again:
                error = again

    def tolerate(self, failure: RecordFailedError, described: str, report: Callable[[], None] | None = None) -> None:
        """Skip a record, where errors are tolerated. `described`: where it is; `report`: keeps it elsewhere.

        Raises `ConnectError` where they are not: the task fails.
        """
        self.figures.add(TaskFigure.ERRORS)
        if self._policy.logs:
            self.figures.add(TaskFigure.LOGGED)
            where = f" {described}" if self._policy.logs_messages else ""
            logger.error("Record failed: stage=%s class=%s%s", failure.stage, failure.class_name, where,
                         exc_info=failure.cause)  # fmt: skip
        if not self._policy.tolerates_all:
            raise ConnectError(f"Tolerance exceeded in error handler. {failure}") from failure.cause
        if report is not None:
            report()
            self.figures.add(TaskFigure.DEAD_LETTERS)
        self.figures.add(TaskFigure.SKIPPED)


def is_retriable(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, RetriableConnectError) or (isinstance(error, TidelogError) and error.retriable)


def dead_letter_headers(
    headers: Sequence[tuple[str, bytes | None]],
    failure: RecordFailedError,
    connector: str,
    task: int,
    place: tuple[str, int, int],
) -> list[tuple[str, bytes | None]]:
    """A dead letter's headers: its own, then what happened to it (KIP-298). `place`: topic, partition, offset."""
    cause = failure.cause
    said = {
        "topic": place[0],
        "partition": str(place[1]),
        "offset": str(place[2]),
        "connector.name": connector,
        "task.id": str(task),
        "stage": str(failure.stage),
        "class.name": failure.class_name,
        "exception.class.name": f"{type(cause).__module__}.{type(cause).__qualname__}",
        "exception.message": str(cause),
        "exception.stacktrace": "".join(traceback.format_exception(cause)),
    }
    return [*headers, *((_HEADER + name, text.encode("utf-8", "replace")) for name, text in said.items())]
