"""Processes of this machine that a process has: started again when they die, ended with it, at the latest.

Their plans come by a pipe, so that no command line shows a store's secrets.
"""

import gc
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any, Final, NamedTuple

from tidelog.log.base.backoff import Backoff
from tidelog.log.base.clock import Clock, SystemClock
from tidelog.log.base.environment import ONE_THREAD
from tidelog.log.base.errors import TidelogError
from tidelog.server.process.stopping import Stop

logger = logging.getLogger(__name__)

Context = ForkServerContext | SpawnContext

# Between a process' death and its restart: doubled with each death, until it has lived for a while.
FIRST_WAIT_S: Final = 0.5
LONGEST_WAIT_S: Final = 30.0
_LIVED_S: Final = 60.0
# A process that has not ended so long after SIGTERM is killed.
_KILLED_AFTER_S: Final = 30.0
# How often a process looks whether the one that it was forked from is there.
_LOOK_S: Final = 1.0
# What a process gets once it can take it, not while it begins.
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Child(NamedTuple):
    """A process that was started, and where it is heard."""

    process: BaseProcess
    heard: Connection


def forking(*modules: str) -> ForkServerContext:
    """Processes are forked from one that has imported these modules once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    return context


def spawning() -> SpawnContext:
    """Each process is a new interpreter."""
    return multiprocessing.get_context("spawn")


def started(context: Context, target: Callable[..., None], *arguments: object) -> Child:
    """A process that runs `target(says, *arguments)`, a module's function, which says what the parent is to hear.

    Raises `OSError`, `EOFError` when it can't be started.
    """
    heard, says = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(target, says, arguments), daemon=True)
    with says, _as_forks_need(context):
        process.start()
    return Child(process, heard)


@contextmanager
def _as_forks_need(context: Context) -> Iterator[None]:
    """Meanwhile what is started begins without signals, and what forks without threads."""
    resource_tracker.ensure_running()  # which unblocks signals when it starts
    own = ONE_THREAD if context.get_start_method() == "forkserver" else {}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(target: Callable[..., None], says: Connection, arguments: Sequence[object]) -> None:
    """The process: of a session of its own, as Ctrl-C is for the one that has started it, which ends the others."""
    gc.freeze()  # a collection would else copy every page of what was imported before the fork
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    target(says, *arguments)


def end_with_parent(ask: Callable[[], object], within_s: float) -> None:
    """Once the process that has started this one is gone: `ask` this one to end, and end it by force after `within_s`.

    A thread of its own waits for that, so that the process ends even when nothing else in it goes on.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        raise ValueError("no process has started this one")
    threading.Thread(
        target=_watch, args=(parent.sentinel, os.getppid(), ask, within_s), name="tidelog-parent", daemon=True
    ).start()


def _watch(parent: int, forked_from: int, ask: Callable[[], object], within_s: float) -> None:
    while not wait([parent], _LOOK_S) and os.getppid() == forked_from:
        continue
    try:
        ask()
        threading.Event().wait(within_s)
    finally:
        os._exit(1)


class StartFailedError(TidelogError):
    """A process did not start; it has said why."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"A {what.lower()}'s process did not start, so none runs. Its message above says why.")
        self.code = code


class KeptProcess:
    """A process, and those that follow it when it dies. `what`: it is. `target` runs in it, and gets the `plan`.

    `is_up`: it was, once; what has nothing to say is from the beginning. `after`: which one is to be up before it.
    """

    def __init__(
        self, what: str, context: Context, target: Callable[[Connection, Any], None], plan: Any, *, is_up: bool = False
    ) -> None:
        self.plan = plan
        self.is_up = is_up
        self.after: KeptProcess | None = None
        self._what = what
        self._context = context
        self._target = target
        self._backoff = Backoff(FIRST_WAIT_S, LONGEST_WAIT_S)
        self._began_s = self._due_s = 0.0
        self._child: Child | None = None
        self._hears = False

    @property
    def id(self) -> object:
        """By which the log calls it."""
        return "-"

    def begin(self) -> Child:
        """Start it. Raises `OSError`, `EOFError`."""
        return started(self._context, self._target, self.plan)

    def hear(self, said: Any) -> None:
        """Take what it says once it is up."""

    def look(self, now_s: float) -> float | None:
        """Start it where it is due, take what it says, and note its end; in how many seconds it is due, if it is known.

        Raises `StartFailedError` where it ends before it was ever up.
        """
        if self._child is None:
            if self.after is not None and not self.after.is_up:
                return None
            if now_s < self._due_s:
                return self._due_s - now_s
            self._began_s, self._hears = now_s, True
            try:
                self._child = self.begin()
            except (OSError, EOFError) as error:
                logger.warning("%s could not be started: id=%s: %s", self._what, self.id, error)
                return self._died(1, now_s)
        code = self._child.process.exitcode
        self._listen(self._child.heard)  # all that it said before its end is there now
        if code is None:
            return None
        self._forget(self._child)
        return self._died(code, now_s)

    @property
    def handles(self) -> list[Any]:
        """What becomes readable when there is something to look at."""
        if self._child is None:
            return []
        return [self._child.process.sentinel, *([self._child.heard] if self._hears else [])]

    def ask_to_end(self) -> None:
        """Send it SIGTERM."""
        if self._child is not None:
            self._child.process.terminate()

    def end(self, within_s: float) -> None:
        """Wait for its end, and kill it where that takes longer than `within_s`."""
        if self._child is not None:
            process = self._child.process
            process.join(max(0.0, within_s))
            if process.exitcode is None:
                process.kill()
            self._forget(self._child)

    def _listen(self, heard: Connection) -> None:
        while self._hears and heard.poll():
            try:
                said = heard.recv()
            except (EOFError, OSError):
                self._hears = False  # it says no more
                return
            self.is_up = True
            self.hear(said)

    def _forget(self, child: Child) -> None:
        child.process.join()
        child.process.close()
        child.heard.close()
        self._child = None

    def _died(self, code: int, now_s: float) -> float:
        if not self.is_up:
            raise StartFailedError(self._what, code)
        if now_s - self._began_s > _LIVED_S:
            self._backoff.reset()
        wait_s = self._backoff.next_s()
        self._due_s = now_s + wait_s
        logger.warning("%s died: id=%s exit=%d; it is started again in %g s", self._what, self.id, code, wait_s)
        return wait_s


def keep(kept: Sequence[KeptProcess], stop: Stop, clock: Clock | None = None) -> None:
    """Keep processes running until `stop`; then, or when one does not start, they are asked to end.

    Raises `StartFailedError`.
    """
    clock = clock or SystemClock()
    try:
        while not stop.asked:
            now_s = clock.elapsed_s()
            due = [seconds for process in kept if (seconds := process.look(now_s)) is not None]
            wait([stop.wakeup, *(handle for process in kept for handle in process.handles)], min(due, default=None))
    finally:
        for process in kept:
            process.ask_to_end()


def end(kept: Sequence[KeptProcess], clock: Clock | None = None) -> None:
    """Wait for the end of processes that were asked for it; kill those that take too long."""
    clock = clock or SystemClock()
    until_s = clock.elapsed_s() + _KILLED_AFTER_S
    for process in kept:
        process.end(until_s - clock.elapsed_s())
