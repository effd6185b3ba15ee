"""Futures of an AdminClient: each part of a request has one, and keeps to the request's time."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from tidelog.clients.values.errors import KafkaError, kafka_exception, kafka_exceptions
from tidelog.log.base.clock import Clock

K = TypeVar("K")

DEFAULT_TIMEOUT_S: Final = 60.0
_MAX_TIMEOUT_S: Final = 3600.0
_WORKERS: Final = 4


class TimedFuture(Future[Any]):
    """A future that gives up waiting when its request's time is over: KafkaException (`_TIMED_OUT`).

    What it waits for goes on, as a broker would: look whether it came to pass before asking again.
    """

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        super().__init__()
        self._clock = clock
        self._deadline_s = clock.elapsed_s() + timeout_s

    def result(self, timeout: float | None = None) -> Any:
        """Return what the request gave, or raise what it raised."""
        return self._within(super().result, timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the request raised, None when it succeeded."""
        found: BaseException | None = self._within(super().exception, timeout)
        return found

    def _within(self, wait: Callable[[float | None], Any], timeout: float | None) -> Any:
        left_s = max(0.0, self._deadline_s - self._clock.elapsed_s())
        if timeout is not None and timeout < left_s:
            return wait(timeout)
        try:
            return wait(left_s)
        except TimeoutError:
            if self.done():  # the request itself raised it
                raise
            raise kafka_exception(
                KafkaError._TIMED_OUT,
                "The request's time is over (request_timeout), and it may still come to pass. Look whether it did, and "
                "give it more time.",
                retriable=True,
            ) from None


class Answers:
    """Runs parts of requests side by side, in threads of the AdminClient."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="tidelog-admin")
        self._closed = False

    def one(self, work: Callable[[], Any], timeout_s: float | None) -> TimedFuture:
        """Start one piece of work. Raises RuntimeError when closed, ValueError for an impossible time."""
        if self._closed:
            raise RuntimeError("AdminClient closed")
        answer = TimedFuture(self._clock, checked_timeout("request_timeout", timeout_s))
        self._threads.submit(_fill, answer, work)
        return answer

    def each(self, keys: Iterable[K], work: Callable[[K], Any], timeout_s: float | None) -> dict[K, Future[Any]]:
        """Start one piece of work for each key; their futures by key."""
        return {key: self.one(partial(work, key), timeout_s) for key in keys}

    def close(self) -> None:
        """Wait for what was started."""
        self._closed = True
        self._threads.shutdown(wait=True)


def checked_timeout(name: str, timeout_s: float | None) -> float:
    """Return a time in seconds, 60 where None or -1 is given. Raises ValueError and TypeError."""
    if timeout_s is None or timeout_s == -1:
        return DEFAULT_TIMEOUT_S
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
        raise TypeError(f"{name} must be a number of seconds, not {type(timeout_s).__name__}")
    if not 0 <= timeout_s <= _MAX_TIMEOUT_S:
        raise ValueError(f"{name} must be from 0 to {_MAX_TIMEOUT_S:.0f} seconds, not {timeout_s}")
    return float(timeout_s)


def _fill(answer: TimedFuture, work: Callable[[], Any]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        with kafka_exceptions():
            answer.set_result(work())
    except BaseException as e:
        answer.set_exception(e)
