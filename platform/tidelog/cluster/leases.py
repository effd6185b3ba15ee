"""Leases of brokers: each overwrites a small object at every beat, which the others watch.

A broker is dead when its lease has not moved for a while *and* it does not answer at its address. By the connection
alone, two brokers with a broken link between them would take each other for dead over and over; by the lease alone, a
broker that serves its clients would go whenever its store is slow.
"""

from dataclasses import dataclass
from typing import Final

from tidelog.cluster.loads import BrokerLoad, load_of
from tidelog.cluster.model import RegisteredBroker
from tidelog.log.delta import layout
from tidelog.log.storage.leases import Lease, read_object
from tidelog.log.storage.port import Distant, Storage

FOLDER: Final = f"{layout.CLUSTER_TABLE}/_tidelog/leases"


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """In seconds: between a broker's beats, and how long an observer sees none before the broker counts as silent.

    `refused_s`: how long, where its address refuses connections. Then no process listens there, as its machine says.
    """

    beat_s: float
    silence_s: float
    refused_s: float


def times_of(storage: Storage) -> LeaseTimes:
    """The times of a store: a put on an object store takes longer, and costs."""
    return LeaseTimes(1.5, 6.0, 3.75) if isinstance(storage, Distant) else LeaseTimes(0.5, 2.0, 1.25)


def lease_of(storage: Storage, broker: RegisteredBroker, count: int = 0) -> Lease:
    """The lease of a broker's registration; `count`: what its counter goes on from."""
    return Lease(storage, _path(broker), said(broker), count=count)


def said(broker: RegisteredBroker, load: BrokerLoad | None = None) -> dict[str, object]:
    """What a broker's lease says."""
    says: dict[str, object] = {"id": broker.id, "registration": broker.registration}
    return says if load is None else says | load.said()


def seen_load(storage: Storage, broker: RegisteredBroker) -> BrokerLoad:
    """What topics cost a broker, as its lease says. Raises StorageError."""
    return load_of(read_object(storage, _path(broker)))


def _path(broker: RegisteredBroker) -> str:
    return f"{FOLDER}/{broker.registration}"
