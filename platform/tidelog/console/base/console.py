"""A lake that is shown, and what the parts of the console keep while it runs."""

import hmac
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar

from tidelog.log.lake import Lake
from tidelog.operations.snapshots import SHARED_AGE_S, LakeSnapshot, SnapshotReader

_SECRET_BYTES: Final = 32
# How old a snapshot of a lake on a local disk may be.
AGE_S: Final = 1.0
# A page waits so long for a snapshot that is taken before it has the one before.
_SOON_S: Final = 0.05


class ConsolePart(Protocol):
    """What a part of the console keeps from request to request."""

    def close(self) -> None:
        """End its threads and processes."""


P = TypeVar("P", bound=ConsolePart)


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`read_only`: nothing may be changed. `host_names`: names by which browsers may call it, besides its address."""

    read_only: bool = False
    host_names: frozenset[str] = frozenset()


class Console:
    """The lake, one snapshot of it for all pages, and the parts. All methods may be called from many threads.

    `age_s`: how old a snapshot may be.

    Use it as a context manager, or call `close` at the end.
    """

    def __init__(self, lake: Lake, settings: ConsoleSettings | None = None, age_s: float | None = None) -> None:
        self.lake = lake
        self.settings = settings or ConsoleSettings()
        self.reader = SnapshotReader(
            lake, (SHARED_AGE_S if lake.storage.is_shared else AGE_S) if age_s is None else age_s
        )
        self.since_ms = lake.clock.now_ms()
        self._secret = lake.ids.secret(_SECRET_BYTES)
        # Whether the server ends, and what wakes the answers that have no end of their own.
        self.ends = False
        self.wakes: set[Callable[[], None]] = set()
        self._lock = threading.RLock()
        self._parts: dict[Any, Any] = {}
        self._ends = ExitStack()
        self._ends.callback(self.reader.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all parts, the newest first."""
        self._ends.close()

    def end(self) -> None:
        """Have answers that have no end of their own end."""
        self.ends = True
        for wake in list(self.wakes):
            wake()

    def part(self, kind: Callable[["Console"], P]) -> P:
        """The part of that kind, made when it is first asked for and closed with the console."""
        with self._lock:
            part = self._parts.get(kind)
            if part is None:
                part = self._parts[kind] = kind(self)
                self._ends.callback(part.close)
            return part

    def csrf_token(self, principal: str) -> str:
        """What a principal's changes must come with, as long as the console runs."""
        return hmac.new(self._secret, principal.encode("utf-8", "surrogatepass"), sha256).hexdigest()

    def snapshot(self) -> LakeSnapshot:
        """The lake as of now, or as of as long ago as the reader allows."""
        return self.reader.read()

    def latest(self) -> LakeSnapshot:
        """As `snapshot`, without waiting long for another thread's: then of the first one what it has found so far."""
        return self.reader.latest(_SOON_S)

    def invalidate(self) -> None:
        """Have the next snapshot be one of now: the console has changed the lake."""
        self.reader.invalidate()
