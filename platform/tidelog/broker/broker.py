"""A broker: its parts, put together over a lake."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Final

from tidelog.access.access_log import AccessLog
from tidelog.access.audit import Audit
from tidelog.access.broker_user import BROKER_PRINCIPAL
from tidelog.access.following import AccessFollower
from tidelog.broker.access.guard import guarded
from tidelog.broker.access.handlers import handlers as access_handlers
from tidelog.broker.access.throttling import Throttling, counted
from tidelog.broker.admin.api_versions import api_versions
from tidelog.broker.admin.handlers import handlers as admin_handlers
from tidelog.broker.base.access import BrokerAccess
from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.batch_files import batch_files
from tidelog.broker.base.calls import Handler, Handlers
from tidelog.broker.base.channels import BrokerChannels
from tidelog.broker.base.context import Context
from tidelog.broker.base.load import ProcessLoad, TopicShares, no_load
from tidelog.broker.base.meter import BrokerMeter
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.base.topic_lines import TopicLines
from tidelog.broker.base.topics import BrokerTopics
from tidelog.broker.cluster.cluster import Cluster
from tidelog.broker.cluster.topic_leaders import OwnLoad
from tidelog.broker.fetch.handlers import handlers as fetch_handlers
from tidelog.broker.groups.handlers import handlers as group_handlers
from tidelog.broker.produce.handlers import handlers as produce_handlers
from tidelog.broker.sasl.handlers import handlers as sasl_handlers
from tidelog.broker.sasl.handlers import new_logins
from tidelog.broker.sasl.logins import Logins, LoginThreads
from tidelog.broker.server.answering import LargeRequests
from tidelog.broker.server.connections import Connections
from tidelog.broker.server.metrics import broker_metrics
from tidelog.broker.server.secured_listeners import SecuredListeners
from tidelog.broker.server.tls_listening import TlsServer
from tidelog.broker.telemetry.handlers import handlers as telemetry_handlers
from tidelog.broker.transactions.handlers import handlers as transaction_handlers
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.log.base.clock import Clock, process_processor_s
from tidelog.log.lake import Lake
from tidelog.log.storage.port import PreparesObjects
from tidelog.operations.lake_metrics import Brokers
from tidelog.operations.metric_families import MetricFamily
from tidelog.server.base.blocking import Blocking, in_threads
from tidelog.server.base.listeners import listen
from tidelog.server.process.lake_metrics import LakeMetrics
from tidelog.server.telemetry.tracing import Tracing

# Calls that wait for a store or a processor, at once.
THREADS = 8
# How long requests that have come may take to be answered once the broker stops.
DRAIN_S = 5.0
# What each part of a broker answers.
PARTS: Final[list[Callable[[Context], Handlers]]] = [
    admin_handlers,
    fetch_handlers,
    produce_handlers,
    group_handlers,
    transaction_handlers,
    access_handlers,
    sasl_handlers,
    telemetry_handlers,
]


class Broker:
    """One broker of a lake, in the loop that is running. It holds nothing that the lake does not hold.

    `blocking`, and `shares`, what topics cost it, are for simulations and tests.
    Raises `TlsError` for a listener whose files TLS can't be spoken with.
    """

    def __init__(
        self,
        lake: Lake,
        settings: BrokerSettings,
        blocking: Blocking | None = None,
        shares: TopicShares | None = None,
    ) -> None:
        self.clock: Clock = lake.clock
        # {listener: (host, port)} as clients reach them, once the broker listens.
        self.addresses: dict[str, tuple[str, int]] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tidelog-broker")
        # What is large waits for others that are, not for what waits for the store.
        self._large = ThreadPoolExecutor(1, thread_name_prefix="tidelog-large")
        beside = counted(in_threads(self._large) if blocking is None else blocking)
        self._login_threads = LoginThreads(blocking)
        load = no_load  # in a simulation
        self.meter = BrokerMeter()
        if blocking is None:
            load = ProcessLoad(process_processor_s, self.clock.elapsed_s()).share
            shares = shares or TopicShares(process_processor_s, self.meter.topics, self.clock.elapsed_s())
            blocking = in_threads(self._threads)
            if isinstance(lake.storage, PreparesObjects):
                lake.storage.prepare_beside()
        blocking = counted(blocking)
        files = batch_files(settings.cache_files_bytes, settings.cache_files_dir, blocking, self.clock)
        cache = BatchCache(settings.cache_bytes, files)
        self._topics = BrokerTopics(lake, blocking, cache)
        self._secured = SecuredListeners(settings, self.clock, blocking)
        dialer = self._secured.dialer(lambda: self._context.access.state.secret)
        channels = BrokerChannels(dialer)
        own_load = None if shares is None else OwnLoad(shares, self._topics, self.meter)
        self._cluster = Cluster(lake, settings, blocking, channels, dialer, own_load)
        cluster = self._cluster
        super_users = settings.access.super_users | {BROKER_PRINCIPAL}
        topic = settings.access.audit_topic or lake.config().audit_topic or None
        self._audit_topic = None if topic is None else self._audit_lines(topic, lake, blocking)
        audit = Audit(lake.clock, None if self._audit_topic is None else self._audit_topic.add)
        access = BrokerAccess(super_users, audit, everyone=settings.everyone)
        access_log = AccessLog(lake)
        self._access = AccessFollower(access_log, access, lake.clock)
        access.look_now = self._look_at_access
        self._context = Context(
            lake, settings, blocking, self._topics, lambda: cluster.view, cluster.confirmed, cache, channels, access,
            access_log, self.meter, load=load,
        )  # fmt: skip
        software = self._context.software
        self._context.at_disconnect.append(software.forget)
        self._servers: list[asyncio.Server | TlsServer] = []
        parts: dict[ApiKey, Handler] = {}
        for part in PARTS:
            parts |= part(self._context)
        offered = [*(key for key in parts if key in OFFERED), ApiKey.API_VERSIONS]
        self.handlers: Handlers = guarded(self._context, parts | {ApiKey.API_VERSIONS: api_versions(offered, software)})
        throttling = Throttling(lambda: access.state.quotas, self.clock, settings.quotas)
        logins = Logins(settings.sasl, access, self._login_threads, self.clock, lake.ids, self.meter)
        login = new_logins(settings, logins)
        large = LargeRequests(beside)
        at_disconnect = self._context.at_disconnect
        self.connections = Connections(
            self.handlers, self.clock, settings.bounds, self.meter, throttling, login, large, at_disconnect
        )

    @property
    def id(self) -> int:
        """Its id: the one that it was given, or got when it registered."""
        return self._context.node_id

    def metrics(self) -> Iterator[MetricFamily]:
        """What it counts, and what its lake has, as of now."""
        yield from self.own_metrics()
        yield from self._lake_metrics.read()

    def own_metrics(self) -> Iterator[MetricFamily]:
        """What it counts alone, as of now."""
        return broker_metrics(self.meter, self.connections, lambda: self.is_controller)

    @property
    def is_controller(self) -> bool:
        """Whether it does what one broker of all does."""
        return self._context.cluster().controller.id == self.id

    @cached_property
    def _lake_metrics(self) -> LakeMetrics:
        return LakeMetrics(self._context.lake, brokers=self._brokers)

    def trace(self, tracing: Tracing) -> None:
        """Have requests become traces; those of one batch go the way of all others from now on, which has stages."""
        self.meter.tracing = tracing
        self.connections.single = None

    def _audit_lines(self, topic: str, lake: Lake, blocking: Blocking) -> TopicLines:
        appender = lake.appender(topic, retries=0)
        elsewhere = "The audit is in the log only"
        return TopicLines(appender, self._topics, blocking, what="the audit", elsewhere=elsewhere)

    async def _look_at_access(self) -> None:
        await self._context.blocking(self._access.look_now)

    def _brokers(self) -> Brokers:
        return {node.id: [*node.addresses.values()] for node in self._context.cluster().nodes}

    async def start(self) -> None:
        """Listen, register, and serve. Raises `ListenerError` for an address that can't be had.

        Raises `DuplicateBrokerError` where another broker that lives has the id.
        """
        settings = self._context.settings
        for name, listener in settings.listeners.items():
            at, bound = await listen(partial(self.connections.new, name), (listener.host, listener.port))
            self._servers.append(self._secured.server(name, at, self.connections))
            self.addresses[name] = settings.advertised.get(name, bound)
        await self._context.access.look_now()
        self._access.start()
        if self._secured.brokers_log_in:
            await self._context.blocking(self._context.access_log.ensure_secret)
            await self._context.access.look_now()
        await self._cluster.start(self.addresses)
        for server in self._servers:
            await server.start_serving()
        self._secured.begin()

    async def close(self, grace_s: float = DRAIN_S) -> None:
        """Send clients to the other brokers, answer what was asked, close the connections, and be gone."""
        if await self._cluster.drain():
            await self.connections.until_left(self._cluster.links, self._context.settings.drain_s)
        self._secured.close()
        for server in self._servers:
            server.close()
        for close in self._context.at_close:
            await close()
        await self.connections.drain(grace_s)
        for end in self._context.at_end:
            await end()
        await self._cluster.close()
        await self._context.blocking(self._access.close)
        self._context.access.audit.close()
        if self._audit_topic is not None:
            await self._audit_topic.close()
        await self._context.blocking(self._topics.close)
        self._login_threads.close()
        self._large.shutdown(wait=True)
        self._threads.shutdown(wait=True)
