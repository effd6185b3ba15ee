"""A lake's cluster: its brokers and the controller, how many brokers lead each topic, and which can't be reached.

When the last broker dies without a word, no other notes that it is gone.
"""

import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leases import seen_load
from tidelog.cluster.loads import BrokerLoad
from tidelog.cluster.model import ALL, ClusterState, RegisteredBroker, UnknownBrokerError
from tidelog.log.lake import Lake

_CONNECT_S: Final = 2.0
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class LedTopic:
    """A topic that several brokers lead, or that costs brokers something.

    `leaders`: how many lead it; `cores`: what it takes of all brokers' processes; `since_ms`: of the decision, None
    where none was needed.
    """

    name: str
    leaders: int
    cores: float
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster as its log says, and as it is reached from here.

    `cluster_id`: as Kafka writes one; None before a broker ever ran. `silent`: {registration: why no client can connect
    from here} of brokers that are said to run or drain. `loads`: what topics cost brokers, by their leases.
    """

    cluster_id: str | None
    state: ClusterState
    silent: Mapping[str, str] = field(default_factory=dict)
    loads: Sequence[BrokerLoad] = ()

    @property
    def brokers(self) -> list[RegisteredBroker]:
        """All brokers, those that are gone too, by id."""
        return [broker for _, broker in sorted(self.state.brokers.items())]

    @property
    def live(self) -> list[RegisteredBroker]:
        """The brokers that run or drain, and are reached."""
        return [broker for broker in self.state.live if broker.registration not in self.silent]

    @property
    def serving(self) -> list[RegisteredBroker]:
        """The brokers that clients are sent to, as far as they are reached."""
        return [broker for broker in self.state.serving if broker.registration not in self.silent]

    @property
    def controller(self) -> RegisteredBroker | None:
        """The broker that clients see as the controller: the one of the lowest id that serves."""
        return next(iter(self.serving), None)

    @property
    def topics(self) -> list[LedTopic]:
        """Topics that several brokers lead, or that cost them something, by name."""
        told = {topic: (one.name, 0.0) for topic, one in self.state.leaders.items() if topic}
        for one in [one for load in self.loads for one in load.topics]:
            told[one.topic] = one.name, told.get(one.topic, ("", 0.0))[1] + one.cores
        return sorted(
            (self._led(topic, name, cores) for topic, (name, cores) in told.items()), key=lambda one: one.name
        )

    def _led(self, topic: str, name: str, cores: float) -> LedTopic:
        running, leaders = len(self.state.serving), self.state.leaders_of(topic)
        decided = self.state.leaders.get(topic) or self.state.leaders.get("")
        since_ms = None if decided is None else decided.since_ms
        return LedTopic(name, running if leaders == ALL else min(leaders, running), round(cores, 2), since_ms)

    def state_of(self, broker: RegisteredBroker) -> str:
        """A broker's state; `silent`, where it is said to run and takes no connection from here."""
        return "silent" if broker.registration in self.silent else broker.state.value

    def broker(self, broker_id: int) -> RegisteredBroker:
        """One of them. Raises `UnknownBrokerError`."""
        if broker_id not in self.state.brokers:
            raise UnknownBrokerError(
                f"No broker of this lake has the id {broker_id}. 'tidelog broker list' shows them."
            )
        return self.state.brokers[broker_id]


def describe_cluster(lake: Lake) -> ClusterDescription:
    """The cluster as it is now, each broker tried. Raises `LakeNotFoundError`, `StorageError`."""
    lake.require_lake()
    log = ClusterLog(lake)
    state = log.look()
    loads = tuple(seen_load(lake.storage, one) for one in state.serving)
    return ClusterDescription(log.cluster_id(), state, silent_brokers(state.live), loads)


def silent_brokers(brokers: Iterable[RegisteredBroker]) -> dict[str, str]:
    """{registration: why no client can connect from here} of brokers that are not reached."""
    asked = list(brokers)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="tidelog-reach") as threads:
        found = zip(asked, threads.map(_silence, asked), strict=True)
        return {broker.registration: why for broker, why in found if why}


def _silence(broker: RegisteredBroker) -> str:
    """Why no client can connect to a broker; "" where one can."""
    why = ""
    for listener in broker.listeners:
        try:
            socket.create_connection((listener.host, listener.port), _CONNECT_S).close()
        except OSError as e:
            why = f"{listener.host}:{listener.port}: {e.strerror or e}"
    return why
