"""Heartbeat objects: each member of a group overwrites a small one, its lease; the others see it change, or not.

A member that speaks Kafka's protocol has no lease of its own. The broker that coordinates its group hears it, evicts it
when it falls silent, and vouches for it until then: an object of the group names the broker, and the broker's own lease
counts as that of all members that have none.

A lease holds a counter and no time: clocks of two machines are never compared. Only time that an observer itself spent
watching counts against a member: an observer that was frozen, or that could not reach the store, begins again.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidelog.groups.model import Member
from tidelog.log.base.errors import ObjectNotFoundError
from tidelog.log.delta import layout
from tidelog.log.storage.port import Storage

FOLDER = f"{layout.OFFSETS_TABLE}/_tidelog/leases"


class Leases:
    """The leases of a lake's groups. May be called from many threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def renew(self, group_id: str, member_id: str, counter: int) -> None:
        """Write a heartbeat: `counter` differs from the one before. Raises StorageError."""
        lease = {"group": group_id, "member": member_id, "counter": counter}
        self._storage.put(lease_path(group_id, member_id), json.dumps(lease).encode())

    def counter(self, group_id: str, member_id: str) -> int | None:
        """The counter that the member wrote last, or that of the broker that vouches for it. Raises StorageError.

        None when it has no lease and no broker vouches.
        """
        own = self.own_counter(group_id, member_id)
        if own is not None:
            return own
        broker = self.voucher(group_id)
        return None if broker is None else self._counter(_broker_path(broker))

    def own_counter(self, group_id: str, member_id: str) -> int | None:
        """The counter that the member wrote last; None when it has no lease. Raises StorageError.

        None, too, for one that a power loss has torn: it is never synced, and counts as silence.
        """
        return self._counter(lease_path(group_id, member_id))

    def _counter(self, path: str) -> int | None:
        found = self._read(path, "counter")
        return found if isinstance(found, int) else None

    def _read(self, path: str, field: str) -> object:
        try:
            return json.loads(self._storage.get(path))[field]
        except (ObjectNotFoundError, ValueError, KeyError, TypeError):
            return None

    # --- brokers -------------------------------------------------------------------------------------------

    def renew_broker(self, broker: int, counter: int) -> None:
        """Write a broker's heartbeat, for all members that it vouches for. Raises StorageError."""
        lease = {"broker": broker, "counter": counter}
        self._storage.put(_broker_path(broker), json.dumps(lease).encode())

    def vouch(self, group_id: str, broker: int) -> None:
        """Have a broker vouch for the members of the group that have no lease, in place of any before it.

        Raises StorageError.
        """
        self._storage.put(_voucher_path(group_id), json.dumps({"group": group_id, "broker": broker}).encode())

    def voucher(self, group_id: str) -> int | None:
        """The broker that vouches for members of the group; None where none does. Raises StorageError."""
        found = self._read(_voucher_path(group_id), "broker")
        return found if isinstance(found, int) else None

    def end_vouching(self, group_id: str, broker: int) -> None:
        """Vouch no more, unless another broker does so by now. Raises StorageError."""
        if self.voucher(group_id) == broker:
            self._storage.delete(_voucher_path(group_id))

    def drop(self, group_id: str, member_id: str) -> None:
        """Delete the lease of a former member. Raises StorageError."""
        self._storage.delete(lease_path(group_id, member_id))


def lease_path(group_id: str, member_id: str) -> str:
    """The path of a lease. Ids may hold anything, so the names are digests; the ids themselves are inside."""
    return f"{FOLDER}/{_digest(group_id)}/{_digest(member_id)}"


def _voucher_path(group_id: str) -> str:
    return f"{FOLDER}/{_digest(group_id)}/broker"


def _broker_path(broker: int) -> str:
    return f"{FOLDER}/brokers/{broker}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class _Watched:
    turn: int
    counter: int | None
    session_s: float
    looked_s: float
    silent_s: float = 0.0


class HeartbeatTimers:
    """How long one observer has seen each member silent. Times in seconds of the observer's elapsed clock."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}

    def look(self, member: Member, counter: int | None, now_s: float) -> None:
        """Note what the observer saw of a member's lease just now.

        The timer of a member begins again when its counter changed, when it joined again, and after a gap of over half
        a session between two looks: then the observer was frozen, and can't tell which members were silent meanwhile.
        """
        session_s = member.session_timeout_ms / 1000
        seen = self._watched.get(member.member_id)
        fresh = _Watched(member.turn, counter, session_s, now_s)
        if seen is None or (seen.turn, seen.counter) != (member.turn, counter):
            self._watched[member.member_id] = fresh
            return
        passed_s = now_s - seen.looked_s
        if passed_s > seen.session_s / 2:
            self._watched[member.member_id] = fresh
            return
        seen.silent_s += passed_s
        seen.looked_s = now_s

    def keep(self, member_ids: Iterable[str]) -> None:
        """Forget all others: a member that is watched again later begins at zero."""
        kept = set(member_ids)
        self._watched = {name: seen for name, seen in self._watched.items() if name in kept}

    def silent(self) -> Mapping[str, int]:
        """The members that were silent for a whole session: member id -> its turn when the watch began."""
        return {name: seen.turn for name, seen in self._watched.items() if seen.silent_s >= seen.session_s}

    def due_s(self) -> float | None:
        """When the first of them would have been silent long enough; None while no member is watched."""
        return min((seen.looked_s + seen.session_s - seen.silent_s for seen in self._watched.values()), default=None)


class RebalanceTimer:
    """How long one observer has waited in one phase of a rebalance, its key; gaps in its watching begin it again."""

    def __init__(self, gap_s: float) -> None:
        self._gap_s = gap_s
        self._key: object = None
        self._looked_s = 0.0
        self._waited_s = 0.0

    def look(self, key: object, now_s: float) -> float:
        """Seconds waited for `key` until now; another key, or a gap, begins at zero."""
        if key != self._key or now_s - self._looked_s > self._gap_s:
            self._key, self._waited_s = key, 0.0
        else:
            self._waited_s += now_s - self._looked_s
        self._looked_s = now_s
        return self._waited_s
