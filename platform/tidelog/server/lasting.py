"""Answers that last: their right is asked for again as long as they do, as Kafka asks at each Fetch."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import Any, Final

from anyio import to_thread

from tidelog.server.errors import RequestRefusedError

# With how long what is known of access counts (`tidelog.access.following`), an answer ends within a second.
ASK_EVERY_S: Final = 0.4


class RightEndedError(RequestRefusedError):
    """The right to an answer ended while it was sent."""

    def __init__(self, why: str) -> None:
        super().__init__(403, why)


async def while_it_stands(pieces: AsyncIterable[Any], ask: Callable[[], None]) -> AsyncIterator[Any]:
    """The pieces of an answer as they come, and before each is sent, and while none comes, its right asked for.

    `ask`: for worker threads; raises what it likes where the right has ended. Raises `RightEndedError` then.
    """
    loop, iterator = asyncio.get_running_loop(), aiter(pieces)
    asked_s = loop.time()
    ahead: asyncio.Task[Any] | None = None
    try:
        while True:
            ahead = loop.create_task(_next(iterator))
            while True:
                await asyncio.wait([ahead], timeout=max(0.0, asked_s + ASK_EVERY_S - loop.time()))
                if loop.time() >= asked_s + ASK_EVERY_S:
                    await _asked(ask)
                    asked_s = loop.time()
                if ahead.done():
                    break
            try:
                piece = ahead.result()
            except _EndedError:
                return
            yield piece
    finally:  # in a task of its own: this one may be cancelled again and again
        closing = loop.create_task(_closed(iterator, ahead))
        _CLOSING.add(closing)
        closing.add_done_callback(_CLOSING.discard)
        await asyncio.shield(closing)


# Tasks that end answers which were broken off: the loop holds none by itself.
_CLOSING: Final[set[asyncio.Task[None]]] = set()


async def _closed(iterator: AsyncIterator[Any], ahead: asyncio.Task[Any] | None) -> None:
    if ahead is not None:
        ahead.cancel()
        await asyncio.wait([ahead])
        if not ahead.cancelled():
            ahead.exception()  # or asyncio would say that it was never looked at
    if isinstance(iterator, AsyncGenerator):
        await iterator.aclose()


class _EndedError(Exception):
    """There is no next piece: a task can't end by StopAsyncIteration."""


async def _next(iterator: AsyncIterator[Any]) -> Any:
    try:
        return await anext(iterator)
    except StopAsyncIteration:
        raise _EndedError from None


async def _asked(ask: Callable[[], None]) -> None:
    try:
        await to_thread.run_sync(ask)
    except Exception as error:
        raise RightEndedError(str(error)) from error
