"""Holds, retention leases: the version of a log at which a running job reads is kept, with its files, while it runs.

A hold is an object `_tidelog/holds/<id>` that its job overwrites again and again. It limits how far the log is trimmed,
and the files that any kept version names are never deleted. Whether it is valid follows from the store's own times.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import Self

import orjson

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import ContendedLogError, ObjectNotFoundError, StorageError
from tidelog.log.delta import layout
from tidelog.log.door.commit_loop import SMALLEST_MIN_AGE_S
from tidelog.log.storage.lease_keeper import KeptLease, LeaseKeeper, process_keeper
from tidelog.log.storage.leases import Lease
from tidelog.log.storage.port import ObjectInfo, Storage

# A hold's time to live without being renewed: longer than a process is frozen when all is well.
LASTS_MS = 120_000
# How often its job renews it within that time.
RENEWALS = 4
# A hold that was not renewed for this many times its time to live is deleted: its job is gone.
ABANDONED_AFTER = 10
# Of a hold that is never renewed: a hundred years.
KEEPS_MS = 100 * 365 * 86_400_000
_MOST_TRIES = 10


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as found in storage.

    `version`: the oldest version that its job needs. `renewed_ms` on the store's clock; `lasts_ms` from there on.
    """

    path: str
    version: int
    lasts_ms: int
    renewed_ms: int
    by: str = ""

    def is_valid(self, store_now_ms: int) -> bool:
        """Whether it is valid at a time of the store's clock."""
        return store_now_ms - self.renewed_ms <= self.lasts_ms


def read_holds(storage: Storage, folder: str) -> list[Hold]:
    """The holds on a log, expired ones too.

    One that can't be decoded counts all the same: it holds everything for `LASTS_MS`.
    """
    holds = []
    for info in storage.list_after(f"{folder}/{layout.HOLDS_FOLDER}"):
        try:
            holds.append(_parse(info, storage.get(info.path)))
        except ObjectNotFoundError:  # its job ended
            continue
    return holds


def _parse(info: ObjectInfo, data: bytes) -> Hold:
    try:
        body = orjson.loads(data)
        version, lasts_ms = body["version"], body["lasts_ms"]
        if type(version) is int and type(lasts_ms) is int:
            return Hold(info.path, version, lasts_ms, info.modified_ms, str(body.get("by", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return Hold(info.path, -1, LASTS_MS, info.modified_ms, "unknown")


def held_version(holds: Iterable[Hold], store_now_ms: int) -> int | None:
    """The oldest version that a valid hold needs, None when there is none.

    >>> held_version([Hold("a", 7, 1000, 5000), Hold("b", 3, 1000, 2000)], 5500)
    7
    """
    return min((hold.version for hold in holds if hold.is_valid(store_now_ms)), default=None)


def abandoned(holds: Iterable[Hold], store_now_ms: int) -> list[str]:
    """The paths of holds whose jobs are gone."""
    return [h.path for h in holds if store_now_ms - h.renewed_ms > ABANDONED_AFTER * max(h.lasts_ms, 1)]


def keep_version(storage: Storage, folder: str, hold_id: str, version: int, by: str) -> None:
    """Hold a version of a log, durably, until the hold is deleted. The caller holds it by a `Holder` meanwhile."""
    path = f"{folder}/{layout.HOLDS_FOLDER}/{hold_id}"
    storage.put(path, orjson.dumps({"version": version, "lasts_ms": KEEPS_MS, "by": by}))
    storage.sync([path])


@dataclass(slots=True)
class _Held:
    lease: Lease
    version: int
    renewed_s: float


@dataclass
class Holder:
    """The holds of one running job, one a log. As a context manager it renews them in the background.

    `by` says whose they are, for people. All methods may be called from many threads.
    """

    storage: Storage
    clock: Clock
    ids: Ids
    by: str
    lasts_ms: int = LASTS_MS
    keeper: LeaseKeeper | None = None
    _held: dict[str, _Held] = field(default_factory=dict)
    _taking: threading.Lock = field(default_factory=threading.Lock)
    _kept: KeptLease | None = None

    def __enter__(self) -> Self:
        keeper = self.keeper or process_keeper()
        self._kept = keeper.keep(f"the holds of {self.by}", self.renew, self.lasts_ms / 1000 / RENEWALS)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._kept is not None:
            self._kept.stop()
        self.release()

    def hold(self, folder: str, look: Callable[[], int]) -> int:
        """Hold the log in `folder` at its head; the version that is held. Holding it again changes nothing.

        `look` looks for the head and returns its version. Raises `ContendedLogError` when the store is too slow.
        """
        with self._taking:
            held = self._held.get(folder)
            if held is not None:
                return held.version
            path = f"{folder}/{layout.HOLDS_FOLDER}/{self.ids.new()}"
            says = {"version": -1, "lasts_ms": self.lasts_ms, "by": self.by}
            lease = Lease(self.storage, path, says, counted_as=None)
            for _ in range(_MOST_TRIES):
                began_s = self.clock.elapsed_s()
                lease.says["version"] = version = look()
                lease.renew()
                # A trimmer that passes an entry from after our look lists the holds 10 s after it, at the earliest.
                if self.clock.elapsed_s() - began_s <= SMALLEST_MIN_AGE_S / 2:
                    self._held[folder] = _Held(lease, version, began_s)
                    return version
            lease.release()
            raise ContendedLogError(
                f"No hold on {folder} could be had: the store took more than {SMALLEST_MIN_AGE_S / 2:g} s each time,"
                " and entries may be trimmed meanwhile. Try again when it answers faster."
            )

    def path(self, folder: str) -> str | None:
        """The object that holds a log; None without one."""
        held = self._held.get(folder)
        return None if held is None else held.lease.path

    def store_ms(self, folder: str) -> int | None:
        """When the hold on a log was last renewed, by the store's clock (ms since the epoch); None without one."""
        held = self._held.get(folder)
        if held is None:
            return None
        infos = self.storage.list_after(f"{folder}/{layout.HOLDS_FOLDER}")
        return next((info.modified_ms for info in infos if info.path == held.lease.path), None)

    def is_valid(self, folder: str) -> bool:
        """Whether the hold on a log was renewed in time, by this machine's clock."""
        held = self._held.get(folder)
        return held is not None and self._in_time(held)

    def renew(self) -> None:
        """Renew every hold, first what was renewed the longest ago. Raises `StorageError` once all have been tried."""
        error: StorageError | None = None
        for held in sorted(self._held.values(), key=attrgetter("renewed_s")):
            began_s = self.clock.elapsed_s()
            if self._in_time(held):  # a late one protects nothing any more
                try:
                    held.lease.renew()
                    held.renewed_s = began_s
                except StorageError as e:
                    error = e
        if error is not None:
            raise error

    def release(self) -> None:
        """Give every hold back. Those that a failing store keeps expire."""
        for folder, held in list(self._held.items()):
            del self._held[folder]
            with suppress(StorageError):  # it is valid for `lasts_ms` at most
                held.lease.release()

    def _in_time(self, held: _Held) -> bool:
        return (self.clock.elapsed_s() - held.renewed_s) * 1000 <= self.lasts_ms


class NullHolder(Holder):
    """A dry run's holder, which holds nothing and so needs no right to write: its files may be deleted."""

    def __enter__(self) -> Self:
        return self

    def hold(self, folder: str, look: Callable[[], int]) -> int:  # noqa: ARG002 - no log is held
        """The head's version."""
        return look()

    def store_ms(self, folder: str) -> int | None:  # noqa: ARG002 - by this machine's clock
        """The time by this machine's clock (ms since the epoch)."""
        return self.clock.now_ms()
