"""A loop whose time is a test's clock: it waits for nothing, and jumps to the next timer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from support.broker_connections import FakeClock


class VirtualLoop(asyncio.SelectorEventLoop):
    """Timers by a `FakeClock`, which it moves on where there is nothing else to do."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    def time(self) -> float:
        return self.clock.now_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.clock.now_s = max(self.clock.now_s, self._scheduled[0].when())
        super()._run_once()


def run_virtually(scenario: Callable[[FakeClock], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario in such a loop, and see that nothing of it fails silently."""
    unhandled: list[Any] = []
    loop = VirtualLoop(FakeClock())
    loop.set_exception_handler(lambda _, what: unhandled.append(what))
    try:
        loop.run_until_complete(scenario(loop.clock))
    finally:
        loop.close()
    assert unhandled == []
