"""How long an application may be silent: it polls within `max.poll.interval.ms`, or its consumer leaves the group."""

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import MaxPollExceededError


class PollLimit:
    """Until when the application of one consumer must have polled. Its owner says at each step that it is awake."""

    def __init__(self, group_id: str, max_poll_interval_ms: int, clock: Clock) -> None:
        self._group_id = group_id
        self._interval_ms = max_poll_interval_ms
        self._clock = clock
        self._polled_s = self._stepped_s = clock.elapsed_s()

    @property
    def at_s(self) -> float:
        """The time at which it has been silent for too long, unless it polls before."""
        return self._polled_s + self._interval_ms / 1000

    def polled(self) -> None:
        """The application has polled, or begins again."""
        self._polled_s = self._clock.elapsed_s()

    def stepped(self, session_timeout_ms: int) -> None:
        """The process is awake. A gap of over half a session since the last call counts for nothing.

        The whole process was frozen then: it is no time in which the application did not poll.
        """
        now_s = self._clock.elapsed_s()
        if now_s - self._stepped_s > session_timeout_ms / 2000:
            self._polled_s = min(self._polled_s + now_s - self._stepped_s, now_s)
        self._stepped_s = now_s

    def is_over(self) -> bool:
        """Whether it has been silent for too long."""
        return self._clock.elapsed_s() >= self.at_s

    def overdue(self) -> MaxPollExceededError:
        """Why the consumer leaves."""
        return MaxPollExceededError(
            f"The application did not poll for {self._interval_ms} ms, so that its consumer left group "
            f"{self._group_id!r}: others read on from its last commit. Poll oftener, take fewer records at a time, or"
            " raise `max.poll.interval.ms`."
        )
