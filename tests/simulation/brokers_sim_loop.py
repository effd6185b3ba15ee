"""Event loops, threads and wake-up pipes of simulated processes: asyncio's own loop by the scheduler's clock."""

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from sim_scheduler import Actor, Scheduler, SimThreading

from tidelog.log.base.clock import Clock

Spawn = Callable[[str, Callable[[], None]], Actor]


class SimLoop(asyncio.BaseEventLoop):
    """The loop of one actor. Where a real one waits for its sockets, it lets the other actors run.

    `rate`: how fast the process' clock goes, by which its timers are set.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock, network: Any = None, rate: float = 1.0) -> None:
        super().__init__()
        self.actor: Actor | None = None
        self.network = network
        self.faults: list[str] = []
        self._scheduler = scheduler
        self._clock = clock
        self._rate = rate
        self._selector = self
        self._is_waiting = self._woken = False
        self.set_exception_handler(self._note)

    def time(self) -> float:
        return self._clock.elapsed_s()

    def select(self, timeout: float | None) -> list[object]:
        """Wait for what comes first: a timer, another actor's call, a message."""
        self.actor = self._scheduler.current
        if timeout == 0 or self._woken:
            self._scheduler.require_alive()
        else:
            self._is_waiting = True
            self._scheduler.wait(None if timeout is None else timeout / self._rate)
            self._is_waiting = False
        self._woken = False
        return []

    def deliver(self, delay: float, call: Callable[..., object], *args: object) -> None:
        """From any actor: call it in this loop, `delay` seconds from now."""
        self.call_later(delay * self._rate, call, *args)
        if self._is_waiting and self.actor is not None:
            self._scheduler.wake(self.actor, delay)

    def _process_events(self, event_list: list[object]) -> None:
        pass

    def _write_to_self(self) -> None:
        self._woken = True
        if self._is_waiting and self.actor is not None:
            self._scheduler.wake(self.actor)

    async def create_connection(self, protocol_factory: Any, host: str, port: int, **_: Any) -> Any:  # type: ignore[override]
        return await self.network.connect(self, protocol_factory, (host, port))

    def _note(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.faults.append(f"{context.get('message')}: {type(error).__name__}: {error}")


class SimPool(Executor):
    """A pool of threads: actors of one process that wait for work."""

    def __init__(self, scheduler: Scheduler, spawn: Spawn, most: int) -> None:
        self._scheduler = scheduler
        self._spawn = spawn
        self._most = most
        self._count = 0
        self._tasks: deque[Callable[[], None]] = deque()
        self._idle: list[Actor] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def task() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except Exception as e:
                future.set_exception(e)
            else:
                future.set_result(result)

        self._tasks.append(task)
        if self._idle:
            self._scheduler.wake(self._idle.pop())
        elif self._count < self._most:
            self._count += 1
            self._spawn(f"worker{self._count}", self._work)
        return future

    def _work(self) -> None:
        while True:
            while self._tasks:
                self._tasks.popleft()()
            self._idle.append(self._scheduler.current)
            self._scheduler.wait(None)


class SimThread:
    """Stands for `threading.Thread`: an actor of the process that starts it."""

    def __init__(self, threading: "SimThreads", target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        self._threading = threading
        self._body = lambda: target(*args)
        self._name = name
        self._actor: Actor | None = None
        self.daemon = False

    def start(self) -> None:
        self._actor = self._threading.spawn(self._name, self._body)

    def join(self) -> None:
        while self._actor is not None and not self._actor.done:
            self._threading.scheduler.pause(0.01)


class SimThreads(SimThreading):
    """Stands for the module `threading` where threads are started, too. `spawn`: starts one in the current process."""

    def __init__(self, scheduler: Scheduler, spawn: Spawn) -> None:
        super().__init__(scheduler)
        self.scheduler = scheduler
        self.spawn = spawn

    def Thread(  # noqa: N802 - the standard library's name
        self, target: Callable[..., None], args: tuple[Any, ...] = (), name: str = "", daemon: bool = True
    ) -> SimThread:
        del daemon
        return SimThread(self, target, args, name)


class SimPipes:
    """Stands for the modules `os` and `select` in a product's module that waits for a pipe of its own."""

    POLLIN = 1

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._numbers = itertools.count(1_000, 2)
        self._written: set[int] = set()
        self._waiting: dict[int, Actor] = {}

    def pipe(self) -> tuple[int, int]:
        number = next(self._numbers)
        return number, number + 1

    def set_blocking(self, fd: int, blocking: bool) -> None:
        pass

    def close(self, fd: int) -> None:
        pass

    def write(self, fd: int, data: bytes) -> int:
        self._written.add(fd - 1)
        waiting = self._waiting.pop(fd - 1, None)
        if waiting is not None:
            self._scheduler.wake(waiting)
        return len(data)

    def read(self, fd: int, size: int) -> bytes:
        del size
        self._written.discard(fd)
        return b"w"

    def poll(self) -> "_Poll":
        return _Poll(self)

    def wait_for(self, fd: int, timeout_ms: float | None) -> list[tuple[int, int]]:
        """Wait until something is written, or the time is over."""
        if fd not in self._written and timeout_ms != 0:
            self._waiting[fd] = self._scheduler.current
            self._scheduler.wait(None if timeout_ms is None else math.ceil(timeout_ms) / 1000)
            self._waiting.pop(fd, None)
        return [(fd, self.POLLIN)] if fd in self._written else []


class _Poll:
    def __init__(self, pipes: SimPipes) -> None:
        self._pipes = pipes
        self._fd = -1

    def register(self, fd: int, events: int) -> None:
        del events
        self._fd = fd

    def poll(self, timeout_ms: float | None) -> list[tuple[int, int]]:
        return self._pipes.wait_for(self._fd, timeout_ms)
