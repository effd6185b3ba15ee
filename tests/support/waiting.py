"""Waiting for a condition: never for a time, and never for ever."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Longer than a busy machine takes for anything that a test waits for.
PATIENCE_S = 120.0


def eventually(condition: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Wait until the condition gives something true, and return that; fail with `what` after `timeout_s`."""
    for pause_s in _pauses(what, timeout_s):
        if found := condition():
            return found
        time.sleep(pause_s)
    raise AssertionError


async def eventually_async(condition: Callable[[], T], what: str, timeout_s: float = PATIENCE_S) -> T:
    """`eventually` in an event loop, which goes on meanwhile."""
    for pause_s in _pauses(what, timeout_s):
        if found := condition():
            return found
        await asyncio.sleep(pause_s)
    raise AssertionError


def _pauses(what: str, timeout_s: float) -> Iterator[float]:
    """Pauses between looks, 1 ms and then longer ones, until the time is over."""
    until, pause_s = time.monotonic() + timeout_s, 0.001
    while time.monotonic() < until:
        yield pause_s
        pause_s = min(0.05, 1.5 * pause_s)
    raise AssertionError(f"not within {timeout_s:g} s: {what}")
