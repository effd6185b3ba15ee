"""A broker's part in its cluster, driven by a thread: what `Context.cluster()` says comes from here."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from tidelog.broker.base.channels import BrokerChannels
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.base.dialing import BrokerDialer
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.cluster.links import BrokerLinks
from tidelog.broker.cluster.membership import ANY_ID, BrokerMembership
from tidelog.broker.cluster.topic_leaders import BEATS, TopicLeadersByLoad
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.cluster.leading import LeadersDecider
from tidelog.cluster.leases import times_of
from tidelog.cluster.loads import BrokerLoad
from tidelog.cluster.model import Listener, RegisteredBroker
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.delta import layout
from tidelog.log.follow.tailing import Tailing
from tidelog.log.lake import Lake
from tidelog.server.base.blocking import Blocking

logger = logging.getLogger(__name__)


class Cluster:
    """One broker in its cluster. Its methods are for the loop's thread.

    `own_load(now_s)`: what topics cost this process, for the thread that follows the cluster; None: it is not known.

    A thread of its own beats and watches, so that no work for clients keeps it waiting. When the loop itself is
    held up, it beats no more: a broker that does not answer is of no use.
    """

    def __init__(
        self,
        lake: Lake,
        settings: BrokerSettings,
        blocking: Blocking,
        channels: BrokerChannels,
        dialer: BrokerDialer,
        own_load: Callable[[float], BrokerLoad] | None = None,
    ) -> None:
        self._lake = lake
        self._settings = settings
        self._blocking = blocking
        self._channels = channels
        self._own_load = own_load
        self._started_ms = lake.clock.now_ms()
        self._loop = asyncio.get_running_loop()
        self._links = BrokerLinks(lake.clock, dialer, self._link_lost)
        self._membership: BrokerMembership | None = None
        self._tailing: Tailing | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._ticked_s = 0.0

    @property
    def view(self) -> ClusterView:
        """The brokers that serve, as of now."""
        if self._membership is None:
            node_id = ANY_ID if self._settings.id is None else self._settings.id
            return ClusterView("", 0, (BrokerNode(node_id, {}, self._settings.rack),), node_id)
        return self._membership.view

    def confirmed(self) -> ClusterView:
        """The brokers that serve, by a look just now or a beat ago. For worker threads. Raises StorageError."""
        return self.view if self._membership is None else self._membership.confirmed()

    @property
    def links(self) -> int:
        """How many other brokers keep a connection to this one."""
        return 0 if self._membership is None else len(self._membership.others())

    async def start(self, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Register with these addresses, and follow the cluster. Raises `DuplicateBrokerError`, StorageError."""
        settings, lake = self._settings, self._lake
        broker_id = ANY_ID if settings.id is None else settings.id
        listeners = tuple(Listener(name, host, port) for name, (host, port) in addresses.items())
        wanted = RegisteredBroker(broker_id, "", listeners, settings.rack, self._started_ms)
        leading = None if self._own_load is None else partial(self._leading, self._own_load)
        membership = BrokerMembership(lake, wanted, leading)
        await self._blocking(membership.join, self._links.reached)
        self._membership = membership
        self._tailing = Tailing(lake.storage, lake.clock)
        self._tailing.add(layout.CLUSTER_TABLE)
        self._ticked()
        self._thread = threading.Thread(target=self._run, args=(membership, self._tailing), name="tidelog-cluster")
        self._thread.daemon = True
        self._thread.start()

    def _leading(self, own_load: Callable[[float], BrokerLoad], log: ClusterLog) -> TopicLeadersByLoad:
        settings, every_s = self._settings, BEATS * times_of(self._lake.storage).beat_s
        decider = LeadersDecider(settings.most_leaders, settings.topic_leaders_interval_s)
        return TopicLeadersByLoad(self._lake, log, own_load, decider, every_s)

    async def drain(self) -> bool:
        """Send clients to the other brokers from now on; whether there are any."""
        if self._membership is None:
            return False
        try:
            await self._blocking(self._membership.drain)
        except TidelogError as e:  # the others will notice
            logger.warning("That the broker drains could not be said. %s", e)
        return not self.view.serves

    async def close(self) -> None:
        """Be gone, and follow no more."""
        self._closing = True
        if self._tailing is not None and self._thread is not None:
            self._tailing.wake()
            await self._blocking(self._thread.join)
            self._tailing.close()
        if self._membership is not None:
            try:
                await self._blocking(self._membership.leave)
            except TidelogError as e:
                logger.warning("That the broker is gone could not be said. %s", e)
        self._channels.close()
        await self._links.close()

    # --- its thread ----------------------------------------------------------------------------------------

    def _run(self, membership: BrokerMembership, tailing: Tailing) -> None:
        clock = self._lake.clock
        rounds = Rounds(logger, "Following the cluster", clock.sleep)
        while not self._closing:
            grew = bool(tailing.wait(max(0.0, membership.due_s() - clock.elapsed_s())))
            if self._closing:
                break
            with rounds.round():
                self._step(membership, tailing, grew=grew)

    def _step(self, membership: BrokerMembership, tailing: Tailing, *, grew: bool) -> None:
        clock = self._lake.clock
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._ticked)
        began_s = clock.elapsed_s()
        changed, asks = False, membership.asks
        try:
            changed = membership.step(
                self._links.reached,
                grew=grew,
                beats=began_s - self._ticked_s < times_of(self._lake.storage).silence_s,
            )
        except TidelogError as e:
            logger.warning("The cluster can't be followed for now. %s", e)
        if grew:
            tailing.looked(layout.CLUSTER_TABLE, grew=changed, took_s=clock.elapsed_s() - began_s)
        if membership.asks is not asks:
            self._links.ask(membership.asks)
        if changed:
            self._links.keep(membership.others())
            addresses = [address for node in membership.view.nodes for address in node.addresses.values()]
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._channels.keep, addresses)

    def _link_lost(self) -> None:
        if self._membership is not None and self._tailing is not None:
            self._membership.look_now()
            self._tailing.wake()

    def _ticked(self) -> None:
        """The loop goes round."""
        self._ticked_s = self._lake.clock.elapsed_s()
