"""Stopping when asked: SIGINT and SIGTERM set a flag, so that a batch is never cut in two."""

import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Final, Self

from tidelog.log.base.clock import SystemClock

_CLOCK: Final = SystemClock()


class Stop:
    """Whether a signal, or a thread, asked this process to stop. A second signal does not wait: it ends the process.

    A log survives a process that ends at any moment; a pipe that no reader empties would hold back anything gentler.

    `wakeup` is a descriptor that becomes readable with the first request, for a caller that waits in `select`.
    `reason`: the signal's name, or why it was asked else; "" while it is not.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.signal = 0
        self.wakeup, self._write = -1, -1
        self._before: dict[int, Any] = {}
        self._wakeup_before = -1

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self.reason != ""

    @property
    def exit_code(self) -> int:
        """The shell's code of a process that a signal ended: 130 for SIGINT, 143 for SIGTERM; 0 when none came."""
        return 128 + self.signal if self.signal else 0

    def within(self, seconds: float | None = None) -> bool:
        """Whether a stop is asked for within `seconds`; None waits for it."""
        until_s = None if seconds is None else _CLOCK.elapsed_s() + seconds
        while not self.asked:
            left_s = None if until_s is None else max(0.0, until_s - _CLOCK.elapsed_s())
            if not select.select([self.wakeup], [], [], left_s)[0]:
                break
            if not self.asked:
                os.read(self.wakeup, 1)  # of another signal that the process handles
        return self.asked

    def ask(self, reason: str) -> None:
        """Ask this process to stop, from any thread."""
        if not self.asked:
            self.reason = reason
            os.write(self._write, b"!")

    def __enter__(self) -> Self:
        self.wakeup, self._write = os.pipe()
        # Only the main thread may handle signals; elsewhere no signal arrives.
        if threading.current_thread() is threading.main_thread():
            # A signal that another thread gets, or that comes just before the wait begins, ends no wait by itself.
            os.set_blocking(self._write, False)
            self._wakeup_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._write)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            os._exit(128 + number)
        self.signal = number
        self.ask(signal.Signals(number).name)
