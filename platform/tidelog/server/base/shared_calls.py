"""A call that many want done after they ask: those that ask while it runs share the next one."""

import asyncio
from collections.abc import Awaitable, Callable


class SharedCall:
    """One such call. For a loop's thread."""

    def __init__(self, call: Callable[[], Awaitable[object]]) -> None:
        self._call = call
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def __call__(self) -> None:
        """Return once a call has ended that began after this. Raises as the call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._after(self._running))
            self._next.add_done_callback(_retrieve)
        await asyncio.shield(self._next)  # others may wait for it, too

    async def _after(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait((before,))
        self._running, self._next = self._next, None
        await self._call()


def _retrieve(task: "asyncio.Task[None]") -> None:
    """What waited for it may have gone: then its error is for none, and no line in the log."""
    if not task.cancelled():
        task.exception()
