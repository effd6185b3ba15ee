"""Stopping when asked: SIGINT and SIGTERM set a flag, so that a batch is never cut in two."""

import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


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
        return self.asked or bool(select.select([self.wakeup], [], [], seconds)[0])

    def ask(self, reason: str) -> None:
        """Ask this process to stop, from any thread."""
        if not self.asked:
            self.reason = reason
            os.write(self._write, b"!")

    def __enter__(self) -> Self:
        self.wakeup, self._write = os.pipe()
        # Only the main thread may handle signals; elsewhere no signal arrives.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._write)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            os._exit(128 + number)
        self.signal = number
        self.ask(signal.Signals(number).name)
