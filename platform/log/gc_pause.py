"""Python's cyclic garbage collector, put off while many small values are made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Put collections off: none of a checkpoint's values is in a cycle, and looking for one costs a third of reading.

    Memory is freed as always, by counting references. Threads that do this at once may turn it on again early.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
