"""From an event loop to threads and back: blocking calls of a client in threads, its callbacks in the loop."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_CALLBACKS: Final = ("error_cb", "stats_cb", "on_commit")


class AsyncClient:
    """A client whose blocking calls run in threads: of `executor`, or of one of its own with `max_workers`.

    Make it in a coroutine: its callbacks, which may be coroutine functions, run in that loop. An executor of the
    caller's needs two threads for each client whose callbacks call it.
    """

    def __init__(self, max_workers: int, executor: Executor | None) -> None:
        if max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._loop = asyncio.get_running_loop()
        self._own = ThreadPoolExecutor(max_workers, "tidelog-aio") if executor is None else None
        self._executor: Executor = self._own or executor  # type: ignore[assignment] # one of them is there

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    async def close(self) -> Any:
        """End the client."""
        raise NotImplementedError

    def _in_thread(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[R]":
        """Make a blocking call in a thread. It goes on when the future is cancelled."""
        return self._loop.run_in_executor(self._executor, partial(call, *args, **kwargs))

    async def _shut(self) -> None:
        """Give the threads back, once their calls have returned."""
        if self._own is not None:
            await self._loop.run_in_executor(None, self._own.shutdown)

    def _with_callbacks(self, conf: Mapping[str, Any]) -> dict[str, Any]:
        """A client's configuration with its callbacks as its threads call them."""
        return {**conf, **{name: self._in_loop(conf[name]) for name in _CALLBACKS if callable(conf.get(name))}}

    def _in_loop(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """What runs `callback` in the loop, and waits for it: a callback's exception is raised by the call it is of."""

        def call(*args: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(awaited(callback, *args), self._loop).result()

        return call


async def awaited(call: Callable[..., Any], *args: Any) -> Any:
    """What a function gives, or a coroutine function once it is awaited."""
    answer = call(*args)
    return await answer if inspect.isawaitable(answer) else answer


def in_thread(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
    """A blocking client's method as one of its asyncio client, whose `_client` is that client."""

    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await self._in_thread(getattr(self._client, method.__name__), *args, **kwargs)
        return answer

    return update_wrapper(call, method)
