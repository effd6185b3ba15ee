"""When a process is to end: a signal asks it to, or the end of standard input says that what started it is gone."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable

# How long a broker may take to stop once the process that started it is gone.
_ORPHAN_S = 30.0


def stop_when_asked(*, tied: bool = False) -> "asyncio.Future[str]":
    """A future of why to stop. A second signal does not wait for the end of draining."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    def ask(reason: str, number: int = 0) -> None:
        if not stop.done():
            stop.set_result(reason)
        elif number:
            os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number.name, number)
    if tied:
        gone = "the process that started it is gone"
        end_with_parent(lambda: loop.call_soon_threadsafe(ask, gone), _ORPHAN_S)
    return stop


def end_with_parent(ask: Callable[[], object], within_s: float) -> None:
    """Once standard input ends: `ask` this process to end, and end it by force when it has not after `within_s`.

    A thread of its own waits for that, so that the process ends even when nothing else in it goes on.
    """
    threading.Thread(target=_watch, args=(ask, within_s), name="tidelog-parent", daemon=True).start()


def _watch(ask: Callable[[], object], within_s: float) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        continue
    try:
        ask()
        threading.Event().wait(within_s)
    finally:
        os._exit(1)
