"""Waiting for the next entries of many logs at once, at little cost, without a thread of its own and without listing.

On a local disk the kernel says which log grew. Everywhere else, and where the kernel's watches are used up, the reader
looks at one name, the next entry's, less and less often while nothing comes.
"""

import os
import select
import threading
from contextlib import suppress
from dataclasses import dataclass

from tidelog.log.base.backoff import SHARE
from tidelog.log.base.clock import Clock
from tidelog.log.delta import layout
from tidelog.log.storage.port import OnThisMachine, Storage
from tidelog.log.storage.watching import FolderWatcher, open_watcher

# Between looks at a log without a watch: right after it grew, and when it has long been silent.
FIRST_PAUSE_S = 0.001
LAST_PAUSE_S = 0.25
# Between looks at a log that is watched: should a watch ever fail silently, this is how late one learns. Short enough
# that the door does not think it was away and lists the floors.
WATCHED_PAUSE_S = 4.0
# Looks a second at most, over all logs.
MOST_LOOKS = 400


@dataclass(slots=True)
class _Log:
    users: int
    due_s: float
    pause_s: float = FIRST_PAUSE_S
    watched: bool = False


class LookSchedule:
    """When to look at which log, in seconds of a clock that is passed in. A log is due as soon as it is added."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}

    def add(self, log: str, now_s: float) -> bool:
        """Have a log looked at, for one user more; True for the first."""
        found = self._logs.setdefault(log, _Log(0, now_s))
        found.users += 1
        return found.users == 1

    def remove(self, log: str) -> bool:
        """One user less; True for the last."""
        entry = self._logs.get(log)
        if entry is None:
            return False
        entry.users -= 1
        if entry.users:
            return False
        del self._logs[log]
        return True

    def watched(self, log: str, yes: bool) -> None:
        """Whether a watch is on the log, so that looks may be rare."""
        if log in self._logs:
            self._logs[log].watched = yes

    @property
    def unwatched(self) -> list[str]:
        """The logs without a watch."""
        return [name for name, log in self._logs.items() if not log.watched]

    def due(self, now_s: float) -> set[str]:
        """The logs to look at now. The next look at each is planned as if this one found nothing."""
        due = {name for name, log in self._logs.items() if log.due_s <= now_s}
        for name in due:
            self._plan(self._logs[name], now_s)
        return due

    def looked(self, log: str, *, grew: bool, took_s: float, now_s: float) -> None:
        """The outcome of a look: whether the log `grew`, and how long it took."""
        kept = self._logs.get(log)
        if kept is None:
            return
        kept.pause_s = FIRST_PAUSE_S if grew else min(kept.pause_s * 2, LAST_PAUSE_S)
        # Looks take about a tenth of the time, over all logs together: each costs its time as often as there are logs.
        dearest_s = took_s * (1 / SHARE - 1) * (1 if grew else len(self._logs))
        self._plan(kept, now_s, max(kept.pause_s, min(dearest_s, LAST_PAUSE_S * len(self._logs))))

    def _plan(self, log: _Log, now_s: float, pause_s: float | None = None) -> None:
        pause_s = log.pause_s if pause_s is None else pause_s
        if log.watched:
            pause_s = WATCHED_PAUSE_S
        elif log.pause_s >= LAST_PAUSE_S:
            pause_s = max(pause_s, len(self._logs) / MOST_LOOKS)
        log.due_s = now_s + pause_s

    def next_s(self) -> float:
        """When the next look is due; infinity when there is nothing to look at."""
        return min((log.due_s for log in self._logs.values()), default=float("inf"))


class Tailing:
    """Many logs of one lake, waited for by one thread at a time; any thread may call the other methods.

    A log is named by its folder below the lake's root. `wait` says at which logs to look, which may turn out to have
    nothing new; `looked` reports the outcome.
    """

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._lock = threading.Lock()
        # Never held while waiting; reentrant, as signal handlers and finalizers call `wake`.
        self._waking = threading.RLock()
        self._schedule = LookSchedule()
        self._watcher: FolderWatcher | None = open_watcher(storage)
        self._logs: dict[str, str] = {}  # by watched folder
        self._unborn: dict[str, set[str]] = {}  # logs that are not there yet, by the folder where they would come from
        self._closed = False
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        if self._watcher is not None:
            self._poll.register(self._watcher.fileno(), select.POLLIN)

    def add(self, log: str) -> None:
        """Wait for this log too. Its first look is due at once: after it, nothing is missed."""
        with self._lock:
            if self._schedule.add(log, self._clock.elapsed_s()):
                self._watch(log)
        self.wake()

    def hears(self, log: str) -> bool:
        """Whether the kernel notifies of this log's entries, so that `wait` names it as soon as there is one."""
        with self._lock:
            return log in self._logs.values()

    def remove(self, log: str) -> None:
        """Wait for it no more, once every caller that added it has removed it."""
        with self._lock:
            if self._schedule.remove(log):
                self._forget(log)

    def wake(self) -> None:
        """End the wait that is going on, or else the next one. After `close` it does nothing."""
        with self._waking, suppress(BlockingIOError):  # it is full of calls to wake up
            if not self._closed:  # else the number may be another file's by now
                os.write(self._waker, b"w")

    def wait(self, timeout_s: float | None) -> set[str]:
        """The logs at which to look now; waits until there are some, another thread calls `wake`, or the time is over.

        `timeout_s` None: without end.
        """
        began_s = self._clock.elapsed_s()
        until_s = float("inf") if timeout_s is None else began_s + timeout_s
        now_s, woken = began_s, False
        while True:
            with self._lock:
                logs = self._due(now_s)
                next_s = now_s if logs else min(until_s, self._schedule.next_s())
            ready = self._poll.poll(None if next_s == float("inf") else max(0.0, next_s - now_s) * 1000)
            for fd, _ in ready:
                if fd == self._woken:
                    os.read(self._woken, 4096)
                    woken = True
                else:
                    with self._lock:
                        logs |= self._heard()
            now_s = self._clock.elapsed_s()
            if logs or woken or now_s >= until_s:
                return logs

    def looked(self, log: str, *, grew: bool, took_s: float) -> None:
        """The outcome of a look: whether the log `grew`, and how many seconds it took."""
        with self._lock:
            self._schedule.looked(log, grew=grew, took_s=took_s, now_s=self._clock.elapsed_s())

    def close(self) -> None:
        """Give back the files; no thread may be waiting."""
        with self._lock, self._waking:
            self._closed = True
            if self._watcher is not None:
                self._watcher.close()
                self._watcher = None
            os.close(self._woken)
            os.close(self._waker)

    def _due(self, now_s: float) -> set[str]:
        due = self._schedule.due(now_s)
        if self._watcher is not None:
            for log in due.intersection(self._schedule.unwatched):  # its folder may have come into being
                self._watch(log)
        return due

    def _heard(self) -> set[str]:
        if self._watcher is None:
            return set()
        heard = set()
        for folder in self._watcher.changed():
            if folder in self._logs:
                heard.add(self._logs[folder])
                if not self._watcher.watches(folder):
                    self._schedule.watched(self._logs.pop(folder), False)
            elif folder in self._unborn:
                self._watcher.remove(folder)
                for log in self._unborn.pop(folder):
                    heard.add(log)
                    self._schedule.watched(log, False)
                    self._watch(log)
        return heard

    def _watch(self, log: str) -> None:
        """Watch a log, or where it would come into being; it is looked at where the limit of watches is reached."""
        if self._watcher is None or not isinstance(self._storage, OnThisMachine):
            return
        folder, root = self._storage.local_path(f"{log}/{layout.LOG_FOLDER}"), self._storage.local_path("")
        with suppress(OSError):
            self._watcher.add(folder)
            self._logs[folder] = log
            self._schedule.watched(log, True)
            return
        there = _nearest(folder, root)
        with suppress(OSError):
            while there and there != folder:
                if there not in self._unborn:
                    self._watcher.add(there, anything=True)
                before, there = there, _nearest(folder, root)
                if there == before:
                    self._unborn.setdefault(there, set()).add(log)
                    self._schedule.watched(log, True)
                    return
                if before not in self._unborn:
                    self._watcher.remove(before)

    def _forget(self, log: str) -> None:
        for folder in [f for f, name in self._logs.items() if name == log]:
            del self._logs[folder]
            if self._watcher is not None:
                self._watcher.remove(folder)
        for folder in [f for f, logs in self._unborn.items() if log in logs]:
            self._unborn[folder].discard(log)
            if not self._unborn[folder]:
                del self._unborn[folder]
                if self._watcher is not None:
                    self._watcher.remove(folder)


def _nearest(folder: str, root: str) -> str:
    """The innermost folder on the way from the root that is there; "" without any."""
    while not os.path.isdir(folder):
        if len(folder) <= len(root):
            return ""
        folder = os.path.dirname(folder)
    return folder
