"""A store that takes time, loses answers, is full, and loses what was not synced when the power goes.

`Disk` holds the bytes for all processes; each process reaches it through its own `SimStorage`, where every call
lets the other actors run and may go wrong as the seed says.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, BinaryIO, Protocol, TypeVar

from sim_scheduler import Process, Scheduler
from support.memory_disk import MemoryDisk

from tidelog.log.base.errors import ObjectNotFoundError, StorageFullError, StorageUnavailableError
from tidelog.log.storage.port import ObjectInfo

T = TypeVar("T")

LOG, FLOORS = "/_delta_log/", "/_tidelog/floor"
# What a node misses that was away, and has just come back.
MISSED_MS = 60_000


class Disk(MemoryDisk):
    """The bytes, and what of them survives a power loss."""

    def lose_power_partly(self, rng: Random) -> None:
        """Whatever was not synced is gone, there, or torn, each name by itself; so are deletions."""
        unsynced = sorted(p for p, o in self._objects.items() if self._durable.get(p) != o)
        deleted = sorted(self._deleted)
        torn = {}
        for path in unsynced:
            fate = rng.random()
            if fate < 0.3:
                self._durable[path] = self._objects[path]
            elif fate < 0.5:
                data = self._objects[path].data
                torn[path] = data[: rng.choice([0, len(data) // 2, len(data) - 1])]
        self.lose_power()
        for path in deleted:
            if rng.random() < 0.5:
                self.delete(path)
        for path, data in torn.items():
            self.put(path, data)
        self.sync([*torn, *deleted])

    def paths(self, folder: str) -> list[str]:
        """Every object directly in a folder."""
        return [o.path for o in self.list_after(folder)]


@dataclass(slots=True)
class Trouble:
    """How likely calls go wrong. All are chances for one call, but `seconds` and `answer_s`."""

    slow: float = 0.0
    unsent: float = 0.0  # the call never reached the store
    lost: float = 0.0  # executed, and the answer lost
    late: float = 0.0  # the caller gives up; it is executed later
    misread: float = 0.0  # the client repeats inside, and takes its own success for another's
    conflict: float = 0.0  # "already exists", and nothing is stored
    full: float = 0.0
    interrupt: float = 0.0  # Ctrl-C
    freeze: float = 0.0
    freeze_at_put: float = 0.0  # the same around the put of a log entry or a floor
    paused: float = 0.0  # of freezes, those in which the whole machine is paused, and its clocks stand still
    stale: float = 0.0  # a node that has just come back answers: it misses what was stored in the last seconds


@dataclass(slots=True)
class _Call:
    before_s: float
    after_s: float
    kind: str  # "" or the trouble's name


class Observer(Protocol):
    """An observer of the calls."""

    def called(self, process: Process, method: str, path: str, result: object) -> None: ...

    def stored(self, method: str, path: str, data: bytes) -> None: ...


class SimStorage:
    """The storage port of one process."""

    def __init__(
        self, disk: Disk, process: Process, scheduler: Scheduler, rng: Random, trouble: Trouble, observer: Observer,
        *, synced: bool,
    ) -> None:  # fmt: skip
        self.disk = disk
        self._process = process
        self._scheduler = scheduler
        self._rng = rng
        self._trouble = trouble
        self._observer = observer
        self._synced = synced
        self._unreachable_until = 0.0
        self._puts_only = False
        self._nodes = Random(f"nodes {process.name}")  # beside what a seed meant before

    @property
    def several(self) -> bool:
        """Whether it is a store of nodes, of which one may miss what others have."""
        return bool(self._trouble.stale)

    @property
    def uri(self) -> str:
        return self.disk.uri

    @property
    def is_shared(self) -> bool:
        return self._synced

    # --- the port ------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        return self._call("get", path, lambda: self.disk.get(path))

    def get_from_one(self, path: str) -> bytes:
        """One node's word."""
        if not self._is_behind():
            return self.get(path)

        def effect() -> bytes:
            if self._is_missed(self.disk.head(path)):
                raise ObjectNotFoundError(f"There is no object {path} at a node that has just come back.")
            return self.disk.get(path)

        return self._call("get", path, effect)

    def head(self, path: str) -> ObjectInfo:
        return self._call("head", path, lambda: self.disk.head(path))

    def open(self, path: str, size: int | None = None) -> Any:
        return self._call("open", path, lambda: self.disk.open(path, size))

    def put_if_absent(self, path: str, data: bytes, before: Callable[[], None] | None = None) -> bool:
        if before:
            before()

        def effect() -> bool:
            stored = self.disk.put_if_absent(path, data)
            if stored:
                self._observer.stored("put_if_absent", path, data)
            return stored

        return self._call("put_if_absent", path, effect)

    def put(self, path: str, data: bytes) -> None:
        self._put("put", path, data)

    def _put(self, method: str, path: str, data: bytes) -> None:
        def effect() -> None:
            self.disk.put(path, data)
            if self._synced:
                self.disk.sync([path])
            self._observer.stored(method, path, data)

        self._call(method, path, effect)

    @contextmanager
    def create(self, path: str) -> Iterator[BinaryIO]:
        file = _NewFile()
        yield file
        self._put("create", path, file.data())

    def sync(self, paths: Iterable[str]) -> list[str]:
        missing = (self._call("sync", path, lambda path=path: self.disk.sync([path])) for path in paths)
        return [path for found in missing for path in found]

    def list_after(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        """No snapshot: of what changes during the call, any part may show."""
        first = list(self.disk.list_after(folder, after))
        self._call("list_after", folder, lambda: None)
        then = {o.path: o for o in self.disk.list_after(folder, after)}
        both = {o.path: o for o in first} | then
        known = {o.path for o in first} & then.keys()
        if FLOORS in folder and self._is_behind():  # two nodes' listings may both miss it: one of them was cut off
            both = {path: info for path, info in both.items() if not self._is_missed(info)}
        return iter([both[p] for p in sorted(both) if p in known or self._rng.random() < 0.5])

    def list_folders(self, folder: str) -> list[str]:
        return self._call("list_folders", folder, lambda: self.disk.list_folders(folder))

    def delete(self, path: str) -> None:
        self._call("delete", path, lambda: self.disk.delete(path))

    def heal(self) -> None:
        """Nothing goes wrong from here on."""
        self._trouble = Trouble()
        self._unreachable_until = 0.0

    def lose_connection(self, seconds: float, puts_only: bool) -> None:
        """No call (or no `put_if_absent`) gets an answer for a while; half of them are executed all the same."""
        self._unreachable_until = self._scheduler.now + seconds
        self._puts_only = puts_only

    def _is_behind(self) -> bool:
        """Whether a node that has just come back answers."""
        return bool(self._trouble.stale) and self._nodes.random() < self._trouble.stale

    def _is_missed(self, info: ObjectInfo) -> bool:
        return self.disk._clock.now_ms() - info.modified_ms < MISSED_MS

    # --- what may happen -----------------------------------------------------------------------------------

    def _call(self, method: str, path: str, effect: Callable[[], T]) -> T:
        call = self._draw(method, path)
        self._freeze(method, path)
        if call.before_s:
            self._scheduler.pause(call.before_s)
        self._scheduler.require_alive()
        try:
            result = self._carry_out(method, path, effect, call)
        except ObjectNotFoundError:
            self._observer.called(self._process, method, path, "not found")
            raise
        self._freeze(method, path)
        if call.after_s:
            self._scheduler.pause(call.after_s)
        self._fail_afterwards(call, path)
        self._observer.called(self._process, method, path, result)
        return result

    def _carry_out(self, method: str, path: str, effect: Callable[[], T], call: _Call) -> T:
        if call.kind:
            self._observer.called(self._process, method, path, call.kind)
        if call.kind == "full":
            raise StorageFullError(f"No space left for {path}.")
        if call.kind == "unsent":
            raise StorageUnavailableError(f"No connection for {path}.")
        if call.kind == "late":
            self._scheduler.spawn(Process("network"), "network", lambda: _ignore(effect), self._rng.uniform(0.5, 40.0))
            raise StorageUnavailableError(f"Time-out for {path}.")
        if call.kind == "conflict":
            return False  # type: ignore[return-value]
        if call.kind == "misread":
            effect()
            return False  # type: ignore[return-value]
        if call.kind == "interrupt" and self._rng.random() < 0.5:
            call.kind = ""
            raise KeyboardInterrupt
        return effect()

    @staticmethod
    def _fail_afterwards(call: _Call, path: str) -> None:
        if call.kind == "lost":
            raise StorageUnavailableError(f"The answer for {path} was lost.")
        if call.kind == "interrupt":
            raise KeyboardInterrupt

    def _draw(self, method: str, path: str) -> _Call:
        rng, trouble = self._rng, self._trouble
        took = 0.0002 * 10 ** (rng.random() * 1.5)
        if rng.random() < trouble.slow:
            took = rng.choice([0.1, 0.5, 2.0, 6.0]) * rng.uniform(0.5, 1.5)
        call = _Call(took, 0.0, "") if rng.random() < 0.5 else _Call(0.0, took, "")
        if method == "list_after" and not call.before_s:
            call = _Call(took, 0.0, "")
        chance = rng.random()
        unreachable = method == "put_if_absent" or not self._puts_only
        if unreachable and self._unreachable_until > self._scheduler.now:
            call.kind = "lost" if chance < 0.5 and method != "list_after" else "unsent"
            return call
        for kind, likely in self._kinds(method, path):
            chance -= likely
            if chance < 0:
                call.kind = kind
                break
        return call

    def _kinds(self, method: str, path: str) -> Iterator[tuple[str, float]]:
        trouble, writes = self._trouble, method in ("put", "put_if_absent", "create")
        yield "unsent", trouble.unsent
        if method != "list_after":
            yield "lost", trouble.lost
        if self._scheduler.current.interruptible:
            yield "interrupt", trouble.interrupt
        if writes:
            yield "full", trouble.full
            yield "late", trouble.late
        if method == "put_if_absent" and LOG in path:
            yield "misread", trouble.misread
            yield "conflict", trouble.conflict

    def _freeze(self, method: str, path: str) -> None:
        """Stop the whole process for a while, as SIGSTOP or a suspended machine does, or a hypervisor."""
        at_put = method == "put_if_absent"
        likely = self._trouble.freeze_at_put if at_put else self._trouble.freeze
        if likely and self._rng.random() < likely:
            seconds = self._rng.choice([5.0, 15.0, 50.0, 80.0, 120.0]) * self._rng.uniform(0.7, 1.3)
            process, began = self._process, max(self._process.frozen_until, self._scheduler.now)
            process.frozen_until = max(began, self._scheduler.now + seconds)
            paused = bool(self._trouble.paused) and self._rng.random() < self._trouble.paused
            if paused:
                process.lost_s += process.frozen_until - began
                process.paused_until = process.frozen_until
                process.wall_lost_s = self._rng.choice([0.0, process.lost_s])  # it may be set right, or not
            self._observer.called(process, "PAUSED" if paused else "FROZEN", f"{seconds:.1f}s", "")
            self._scheduler.pause(0.0)


class _NewFile(io.BytesIO):
    """A buffer that keeps its bytes when its writer closes it."""

    def close(self) -> None:
        pass

    def data(self) -> bytes:
        return self.getvalue()


def _ignore(effect: Callable[[], object]) -> None:
    """Execute the calls that no actor waits for any more."""
    effect()
