"""Leases of brokers, and failure detection: each broker overwrites a small object at every beat, which others watch.

A lease holds a counter and no time: clocks of two machines are never compared.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta import layout
from tidelog.log.storage.port import Distant, Storage

FOLDER: Final = f"{layout.CLUSTER_TABLE}/_tidelog/leases"


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """In seconds: between a broker's beats, and how long an observer sees none before the broker counts as silent."""

    beat_s: float
    silence_s: float


def times_of(storage: Storage) -> LeaseTimes:
    """The times of a store: a put on an object store takes longer, and costs."""
    return LeaseTimes(1.5, 6.0) if isinstance(storage, Distant) else LeaseTimes(0.5, 2.0)


class BrokerLeases:
    """The leases of a lake's brokers, by registration. May be called from many threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def renew(self, broker_id: int, registration: str, counter: int) -> None:
        """Write a beat: `counter` differs from the one before. Raises StorageError."""
        lease = {"id": broker_id, "registration": registration, "counter": counter}
        self._storage.put(lease_path(registration), json.dumps(lease).encode())

    def counter(self, registration: str) -> int | None:
        """The counter that the broker wrote last; None without a lease, or of a torn one. Raises StorageError."""
        try:
            return int(json.loads(self._storage.get(lease_path(registration)))["counter"])
        except (ObjectNotFoundError, ValueError, KeyError, TypeError):
            return None

    def drop(self, registration: str) -> None:
        """Delete the lease of a broker that is gone. Raises StorageError."""
        self._storage.delete(lease_path(registration))


def lease_path(registration: str) -> str:
    """The path of a lease."""
    return f"{FOLDER}/{registration}"


@dataclass(slots=True)
class _Silence:
    counter: int | None
    looked_s: float
    silent_s: float = 0.0


class BrokerTimers:
    """How long one observer has seen each broker silent. Times in seconds of the observer's elapsed clock.

    A broker is dead when its lease has not moved for `silence_s` *and* it does not answer at its address. By the
    connection alone, two brokers with a broken link between them would take each other for dead over and over; by the
    lease alone, a broker that serves its clients would go whenever its store is slow.
    Only time that the observer itself spent watching counts: after a gap of more than half of `silence_s` between two
    looks it was frozen itself, or had no store, and begins again.
    """

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._watched: dict[str, _Silence] = {}

    def answered(self, registration: str) -> None:
        """The broker answers at its address: whatever its lease says, it lives."""
        self._watched.pop(registration, None)

    def look(self, registration: str, counter: int | None, now_s: float) -> bool:
        """Note the lease of a broker that does not answer; True when it is dead."""
        seen = self._watched.get(registration)
        if seen is None or seen.counter != counter or now_s - seen.looked_s > self._silence_s / 2:
            self._watched[registration] = _Silence(counter, now_s)
            return False
        seen.silent_s += now_s - seen.looked_s
        seen.looked_s = now_s
        return seen.silent_s >= self._silence_s

    def due_s(self) -> float | None:
        """When the first of them would have been silent long enough; None while none is."""
        return min((s.looked_s + self._silence_s - s.silent_s for s in self._watched.values()), default=None)

    def keep(self, registrations: Iterable[str]) -> None:
        """Forget all others."""
        kept = set(registrations)
        self._watched = {name: seen for name, seen in self._watched.items() if name in kept}
