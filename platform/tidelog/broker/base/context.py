"""What the parts of a broker share: the lake, the topics, the cluster, and how to wait beside the loop."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tidelog.access.access_log import AccessLog
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.calls import Peer
from tidelog.broker.base.channels import BrokerChannels
from tidelog.broker.base.client_software import ClientSoftware
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.load import no_load
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.base.topics import BrokerTopics
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import Blocking


@dataclass(frozen=True, slots=True)
class Context:
    """One broker's surroundings, as its parts see them.

    `cluster()`: the brokers that run, as of now. `confirmed()`: the same, by a look at the log that is a beat or two
    old at most, for worker threads: what must not be decided by a view from before the process was frozen goes by it.
    `cache`: committed batches, which Produce brings and Fetch serves.
    `channels`: requests to other brokers.
    `access`: what clients may do. `access_log`: where that is changed; `access.look_now()` after a change here.
    `meter`: what is counted. `load(now_s)`: the share of a core that this process takes, of late.
    `software`: what clients run. `at_disconnect`: what parts forget when a client's connection ends.
    `at_close`: what parts do when the broker stops, before it waits for answers; `at_end`: what they do after that.
    """

    lake: Lake
    settings: BrokerSettings
    blocking: Blocking
    topics: BrokerTopics
    cluster: Callable[[], ClusterView]
    confirmed: Callable[[], ClusterView]
    cache: BatchCache
    channels: BrokerChannels
    access: BrokerAccess
    access_log: AccessLog
    meter: BrokerMeter = field(default_factory=BrokerMeter)
    load: Callable[[float], float] = no_load
    software: ClientSoftware = field(default_factory=ClientSoftware)
    at_disconnect: list[Callable[[Peer], None]] = field(default_factory=list)
    at_close: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list)

    @property
    def node_id(self) -> int:
        """This broker's id: the one that it was given, or got when it registered."""
        return self.cluster().node_id

    @property
    def clock(self) -> Clock:
        """The lake's clock."""
        return self.lake.clock
