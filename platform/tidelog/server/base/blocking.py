"""Calls that wait for a store or a processor, beside the loop that answers clients."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import Any, Final, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

# What a request goes through without a pause: a few ms of work.
AT_ONCE: Final = 250


class Blocking(Protocol):
    """Runs a call elsewhere, and has its result awaited: threads, or at once in a simulation."""

    def __call__(self, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Begin the call; it goes on even when its caller waits no more."""


def in_threads(executor: Executor) -> Blocking:
    """Calls go to these threads, and with each the request that it is for: lines of the log name it there, too."""

    def run(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        context = copy_context()
        return asyncio.wrap_future(executor.submit(lambda: context.run(call, *args, **kwargs)))

    return run


async def here(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """As `Blocking` has it, at once and in the loop: for what is short, and for a simulation."""
    return call(*args, **kwargs)


async def pause(seconds: float) -> None:
    """Let others go on for so long, by the loop's clock."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _end, over)
    try:
        await over
    finally:
        timer.cancel()


async def turn() -> None:
    """Let others have the loop, once."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_soon(_end, over)
    await over


async def in_turns(items: Sequence[T], at_once: int = AT_ONCE) -> AsyncIterator[T]:
    """The items, in order; others have the loop between one `at_once` of them and the next."""
    for number, item in enumerate(items, 1):
        yield item
        if number % at_once == 0:
            await turn()


async def until_done(future: "Future[Any]") -> None:
    """Wait until it is done, however it ends."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    future.add_done_callback(lambda _: loop.call_soon_threadsafe(_end, over))
    await over


def _end(over: asyncio.Future[None]) -> None:
    if not over.done():  # its task may be cancelled while the loop has both to do
        over.set_result(None)
