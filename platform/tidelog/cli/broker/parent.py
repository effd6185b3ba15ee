"""A process that ends with the one that started it: the end of standard input says that it is gone."""

import os
import sys
import threading
from collections.abc import Callable


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
