"""Leases, and failure detection by them: a process overwrites a small object while it lives, and others watch it.

A lease holds a counter and no time: clocks of two machines are never compared. Only time that an observer itself spent
watching counts: an observer that was frozen, or that could not reach the store, begins again. Observers that look once
and don't watch go by the store's own times of the objects; the leases that they look at have no counter.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.storage.port import Storage


@dataclass(slots=True)
class Lease:
    """A small object of JSON that its owner overwrites while it lives.

    `says`: what it says besides its counter, which is in the field `counted_as`; None: it has none. `count`: the
    counter that was written last, by one thread at a time. All methods raise StorageError.
    """

    storage: Storage
    path: str
    says: dict[str, object] = field(default_factory=dict)
    counted_as: str | None = "counter"
    count: int = 0

    def take(self) -> bool:
        """Write it for the first time; False where there is one already."""
        return self.storage.put_if_absent(self.path, self._encoded())

    def renew(self) -> None:
        """Overwrite it, whatever is there, with the next count."""
        self.count += 1
        self.storage.put(self.path, self._encoded())

    def release(self) -> None:
        """Delete it, if it is there."""
        self.storage.delete(self.path)

    def seen(self) -> int | None:
        """The counter that its owner wrote last; None without a lease.

        None, too, for one that a power loss has torn: it is never synced, and counts as silence.
        """
        counter = (read_object(self.storage, self.path) or {}).get(self.counted_as or "")
        return counter if isinstance(counter, int) else None

    def _encoded(self) -> bytes:
        counted = {} if self.counted_as is None else {self.counted_as: self.count}
        return json.dumps(self.says | counted).encode()


def read_object(storage: Storage, path: str) -> Mapping[str, Any] | None:
    """What a small object of JSON says; None where there is none, or it is torn. Raises StorageError."""
    try:
        content = json.loads(storage.get(path))
    except (ObjectNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


S = TypeVar("S")


@dataclass(slots=True)
class _Watched(Generic[S]):
    sign: S
    silence_s: float
    looked_s: float
    silent_s: float = 0.0


class SilenceTimers(Generic[S]):
    """How long one observer has seen each of others silent. Times in seconds of the observer's elapsed clock."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched[S]] = {}

    def look(self, name: str, sign: S, silence_s: float, now_s: float, gap_s: float | None = None) -> bool:
        """Note what one shows now, its heartbeat; True when that was the same for `silence_s`.

        Its timer begins again with another sign, and after a gap of over `gap_s` between two looks (None: half of
        `silence_s`): then the observer was frozen itself, and can't tell which of them was silent meanwhile.
        """
        seen = self._watched.get(name)
        gap_s = silence_s / 2 if gap_s is None else gap_s
        if seen is None or seen.sign != sign or now_s - seen.looked_s > gap_s:
            self._watched[name] = _Watched(sign, silence_s, now_s)
            return False
        seen.silent_s += now_s - seen.looked_s
        seen.looked_s, seen.silence_s = now_s, silence_s
        return seen.silent_s >= seen.silence_s

    def forget(self, name: str) -> None:
        """It lives: when it is watched again, it begins at zero."""
        self._watched.pop(name, None)

    def keep(self, names: Iterable[str]) -> None:
        """Forget all others."""
        kept = set(names)
        self._watched = {name: seen for name, seen in self._watched.items() if name in kept}

    def silent(self) -> Mapping[str, S]:
        """Those that were silent for long enough, with the sign that they gave last."""
        return {name: seen.sign for name, seen in self._watched.items() if seen.silent_s >= seen.silence_s}

    def due_s(self) -> float | None:
        """When the first of them would have been silent long enough; None while none is watched."""
        return min((seen.looked_s + seen.silence_s - seen.silent_s for seen in self._watched.values()), default=None)
