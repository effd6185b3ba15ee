"""A world with one clock in which one actor runs at a time; the seed decides which one is next.

Actors are threads that hand a baton on whenever they pause. Virtual time only passes while actors pause, so a
run of minutes takes milliseconds, and the same seed gives the same run.
"""

import heapq
import itertools
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any


class Crashed(BaseException):
    """The process of this actor is gone: nothing that it still does has any effect."""


@dataclass(eq=False)
class Process:
    """What dies and freezes as a whole."""

    name: str
    dead: bool = False
    frozen_until: float = 0.0
    # What the clocks of its machine lost while a hypervisor paused it: the elapsed clock, and the wall clock.
    lost_s: float = 0.0
    wall_lost_s: float = 0.0
    paused_until: float = float("-inf")


@dataclass(eq=False)
class Actor:
    """One thread of a process."""

    name: str
    process: Process
    body: Callable[[], None] | None = None
    done: bool = False
    # How often it was given the baton: what is queued for an earlier turn counts no more.
    turn: int = 0
    # Whether its turn has come while its process was frozen.
    is_held: bool = False
    # Whether a person may press Ctrl-C in it: only in a program's own thread, never in its background.
    interruptible: bool = False
    baton: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.baton.acquire()


class Scheduler:
    """Which actor runs next, and what time it is. The caller's own thread is the actor `main`, which never dies."""

    def __init__(self) -> None:
        self.now = 0.0
        self.failures: list[str] = []
        self.main = Actor("main", Process("world"))
        self.current = self.main
        self._order = itertools.count()
        self._queue: list[tuple[float, int, int, Actor]] = []
        self._started: set[Actor] = set()

    def spawn(self, process: Process, name: str, body: Callable[[], None], delay: float = 0.0) -> Actor:
        """Start an actor after `delay` seconds."""
        actor = Actor(name, process, body)
        self._push(self.now + delay, actor)
        return actor

    def pause(self, seconds: float) -> None:
        """Let the others run for this long. Raises `Crashed` when the actor's process has died meanwhile."""
        self.require_alive()
        self._push(self.now + seconds, self.current)
        self._yield()

    def wait(self, seconds: float | None) -> None:
        """Let the others run for this long, None: without end, or until an actor calls `wake`."""
        self.require_alive()
        if seconds is not None:
            self._push(self.now + seconds, self.current)
        self._yield()

    def block(self) -> None:
        """Wait until an actor calls `wake`. Raises `Crashed` as `pause` does."""
        self.require_alive()
        self._yield()

    def wake(self, actor: Actor, delay: float = 0.0) -> None:
        """Have an actor that waits go on, after `delay` seconds; nothing when something else wakes it before."""
        self._push(self.now + delay, actor)

    def close(self) -> None:
        """End every actor, so that no thread stays behind."""
        for actor in sorted(self._started, key=lambda a: a.name):
            actor.process.dead = True
            self._push(self.now, actor)
        while self._started:
            self._push(self.now, self.main)
            self._yield()

    def require_alive(self) -> None:
        if self.current.process.dead:
            raise Crashed

    def thaw(self, process: Process, actors: list[Actor]) -> None:
        """A frozen process goes on at once."""
        process.frozen_until = 0.0
        for actor in actors:
            if actor.is_held and not actor.done:
                self._push(self.now, actor)

    def kill(self, process: Process, actors: list[Actor]) -> None:
        """The process is gone at once; its actors unwind without any effect."""
        process.dead = True
        for actor in actors:
            if not actor.done:
                self._push(self.now, actor)

    def _push(self, at: float, actor: Actor) -> None:
        heapq.heappush(self._queue, (at, next(self._order), actor.turn, actor))

    def _next(self) -> Actor:
        while True:
            at, _, turn, actor = heapq.heappop(self._queue)
            if actor.done or actor.turn != turn:
                continue
            if not actor.process.dead and actor.process.frozen_until > max(at, self.now):
                actor.is_held = True
                self._push(actor.process.frozen_until, actor)
                continue
            self.now = max(self.now, at)
            actor.turn += 1
            actor.is_held = False
            return actor

    def _yield(self) -> None:
        me, other = self.current, self._next()
        if other is not me:
            self._hand_over(other)
            me.baton.acquire()
        self.require_alive()

    def _hand_over(self, other: Actor) -> None:
        self.current = other
        if other.body is None:
            other.baton.release()
            return
        body, other.body = other.body, None
        self._started.add(other)
        threading.Thread(target=self._run, args=(other, body), name=other.name, daemon=True).start()

    def _run(self, actor: Actor, body: Callable[[], None]) -> None:
        try:
            if not actor.process.dead:
                body()
        except Crashed:
            pass
        except BaseException as e:
            self.failures.append(f"{self.now:.6f} {actor.name}: {type(e).__name__}: {e}\n{traceback.format_exc()}")
            self._push(self.now, self.main)
        actor.done = True
        self._started.discard(actor)
        self._hand_over(self._next())


class SimLock:
    """A lock, reentrant or not, whose waiters let the others run."""

    def __init__(self, scheduler: Scheduler, reentrant: bool) -> None:
        self._scheduler = scheduler
        self._reentrant = reentrant
        self._owner: Actor | None = None
        self._depth = 0
        self._waiters: deque[Actor] = deque()

    def acquire(self, blocking: bool = True) -> bool:
        me = self._scheduler.current
        if self._owner is None or (self._owner is me and self._reentrant):
            self._owner = me
            self._depth += 1
            return True
        if not blocking:
            return False
        self._waiters.append(me)
        self._scheduler.block()  # the owner hands the lock over
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._owner = None
        if self._waiters:
            self._owner, self._depth = self._waiters.popleft(), 1
            self._scheduler.wake(self._owner)

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimCondition(SimLock):
    """A condition whose waiters let the others run."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, reentrant=True)
        self._watchers: list[Actor] = []

    def wait(self, timeout: float | None = None) -> None:
        me = self._scheduler.current
        self._watchers.append(me)
        self.release()
        # A process' clock has finer numbers than the scheduler: less than this might let no time pass at all.
        self._scheduler.wait(None if timeout is None else max(timeout, 1e-6))
        if me in self._watchers:
            self._watchers.remove(me)
        self.acquire()

    def notify_all(self) -> None:
        for waiter in self._watchers:
            self._scheduler.wake(waiter)
        self._watchers.clear()


class SimThreading:
    """Stands for the module `threading` in a product's module."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def Lock(self) -> SimLock:  # noqa: N802 - the standard library's name
        return SimLock(self._scheduler, reentrant=False)

    def RLock(self) -> SimLock:  # noqa: N802 - the standard library's name
        return SimLock(self._scheduler, reentrant=True)

    def Condition(self) -> SimCondition:  # noqa: N802 - the standard library's name
        return SimCondition(self._scheduler)


class SimExecutor(Executor):
    """A process's background: one actor that works tasks off in their order."""

    def __init__(self, scheduler: Scheduler, start: Callable[[Callable[[], None]], Actor]) -> None:
        self._scheduler = scheduler
        self._start = start
        self._tasks: deque[Callable[[], None]] = deque()
        self._busy = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def task() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as e:
                future.set_exception(e)

        self._tasks.append(task)
        if not self._busy:
            self._busy = True
            self._start(self._work)
        return future

    def _work(self) -> None:
        while self._tasks:
            self._tasks.popleft()()
        self._busy = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        while wait and self._busy:
            self._scheduler.pause(0.05)
