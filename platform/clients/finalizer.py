"""How a client ends: when it is closed, or when nobody has it any more."""

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any


class Ending:
    """How a client ends, once: by a call, when the client is forgotten, or with the program.

    `end` gets `args`, which must not lead to the client, and waits for the client's threads.
    """

    def __init__(self, client: object, end: Callable[..., None], *args: Any) -> None:
        self._end = partial(end, *args)
        self._forgotten = weakref.finalize(client, _in_the_background, self._end)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._forgotten.alive

    def __call__(self) -> None:
        """End now, and wait for it."""
        if self._forgotten.detach() is not None:
            self._end()


def _in_the_background(end: Callable[[], None]) -> None:
    """End a client that was forgotten, or left to the end of the program.

    A garbage collection may run in one of the client's own threads, and anywhere with locks held that its threads wait
    for: nothing is to be waited for there.
    """
    if threading.main_thread().is_alive():
        threading.Thread(target=end, name="end-of-client", daemon=True).start()
    else:
        end()
