"""A real clock that a test puts forward."""

from tidelog.log.base.clock import Clock


class PassingClock:
    """`clock`, ahead by `passed_s` where a caller asks how much time has passed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.passed_s = 0.0

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def elapsed_s(self) -> float:
        return self._clock.elapsed_s() + self.passed_s

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)
