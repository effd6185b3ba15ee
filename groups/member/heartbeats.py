"""Heartbeat objects: each member of a group overwrites a small one, its lease; the others see it change, or not.

A member that speaks Kafka's protocol has no lease of its own. The broker that coordinates its group hears it, evicts it
when it falls silent, and vouches for it until then: an object of the group names the broker, and the broker's own lease
counts as that of all members that have none.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from tidelog.groups.model import AnyMember
from tidelog.log.delta import layout
from tidelog.log.storage.leases import Lease, SilenceTimers, read_object
from tidelog.log.storage.port import Storage

FOLDER = f"{layout.OFFSETS_TABLE}/_tidelog/leases"


class Leases:
    """The leases of a lake's groups. May be called from many threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def of_member(self, group_id: str, member_id: str) -> Lease:
        """The member's own, to be renewed at each heartbeat."""
        return Lease(self._storage, lease_path(group_id, member_id), {"group": group_id, "member": member_id})

    def of_broker(self, broker: int, count: int = 0) -> Lease:
        """A broker's, for all members that it vouches for. `count`: what it goes on from."""
        return Lease(self._storage, f"{FOLDER}/brokers/{broker}", {"broker": broker}, count=count)

    def counter(self, group_id: str, member_id: str) -> int | None:
        """The counter that the member wrote last, or that of the broker that vouches for it. Raises StorageError.

        None when it has no lease and no broker vouches.
        """
        own = self.of_member(group_id, member_id).seen()
        if own is not None:
            return own
        broker = self.voucher(group_id)
        return None if broker is None else self.of_broker(broker).seen()

    def vouch(self, group_id: str, broker: int) -> None:
        """Have a broker vouch for the members of the group that have no lease, in place of any before it.

        Raises StorageError.
        """
        self._storage.put(_voucher_path(group_id), json.dumps({"group": group_id, "broker": broker}).encode())

    def voucher(self, group_id: str) -> int | None:
        """The broker that vouches for members of the group; None where none does. Raises StorageError."""
        broker = (read_object(self._storage, _voucher_path(group_id)) or {}).get("broker")
        return broker if isinstance(broker, int) else None

    def end_vouching(self, group_id: str, broker: int) -> None:
        """Vouch no more, unless another broker does so by now. Raises StorageError."""
        if self.voucher(group_id) == broker:
            self._storage.delete(_voucher_path(group_id))


def lease_path(group_id: str, member_id: str) -> str:
    """The path of a lease. Ids may hold anything, so the names are digests; the ids themselves are inside."""
    return f"{FOLDER}/{_digest(group_id)}/{_digest(member_id)}"


def _voucher_path(group_id: str) -> str:
    return f"{FOLDER}/{_digest(group_id)}/broker"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class HeartbeatTimers:
    """How long one observer has seen each member silent. Times in seconds of the observer's elapsed clock."""

    def __init__(self) -> None:
        self._timers: SilenceTimers[tuple[int, int | None]] = SilenceTimers()

    def look(self, member: AnyMember, counter: int | None, now_s: float) -> None:
        """Note what the observer saw of a member's lease just now.

        The timer of a member begins again when its counter changed, when it joined again, and as `SilenceTimers` says.
        """
        self._timers.look(member.member_id, (member.turn, counter), member.session_timeout_ms / 1000, now_s)

    def keep(self, member_ids: Iterable[str]) -> None:
        """Forget all others: a member that is watched again later begins at zero."""
        self._timers.keep(member_ids)

    def silent(self) -> Mapping[str, int]:
        """The members that were silent for a whole session: member id -> its turn when the watch began."""
        return {name: turn for name, (turn, _) in self._timers.silent().items()}

    def due_s(self) -> float | None:
        """When the first of them would have been silent long enough; None while no member is watched."""
        return self._timers.due_s()


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
