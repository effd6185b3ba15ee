"""Close-once finalizer: explicit close, garbage collection or interpreter exit."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any


class Finalizer:
    """Ends a client once: by a call, by the garbage collection of the client, or at the interpreter's exit.

    `end` gets `args`, which must not lead to the client, and waits for the client's threads.
    """

    def __init__(self, client: object, end: Callable[..., None], *args: Any) -> None:
        self._end = partial(end, *args)
        self._finalize = weakref.finalize(client, _in_the_background, self._end)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._finalize.alive

    def __call__(self) -> None:
        """End now, and wait for it."""
        if self._finalize.detach() is not None:
            self._end()


def _in_the_background(end: Callable[[], None]) -> None:
    """End a client that was garbage-collected, or left to the interpreter's exit.

    A garbage collection may run in one of the client's own threads, and anywhere with locks held that its threads wait
    for: a finalizer must not wait there.
    """
    if threading.main_thread().is_alive():
        threading.Thread(target=end, name="end-of-client", daemon=True).start()
    else:
        end()
