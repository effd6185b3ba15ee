"""A clock that stands still until a test puts it forward: how long the machine takes makes no difference."""

from tidelog.log.base.clock import Clock


class PassingClock:
    """`clock`, but for a caller that asks how much time has passed: that is `passed_s`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_s = clock.elapsed_s()
        self.passed_s = 0.0

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def elapsed_s(self) -> float:
        return self._began_s + self.passed_s

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
