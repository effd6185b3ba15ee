"""A broker: its parts, put together over a lake."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from tidelog.broker.admin.api_versions import api_versions
from tidelog.broker.base.batch_cache import BatchCache
from tidelog.broker.base.blocking import Blocking, in_threads
from tidelog.broker.base.calls import Handler, Handlers
from tidelog.broker.base.cluster_view import BrokerNode, ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.base.topics import BrokerTopics
from tidelog.broker.server.connection import ClientConnection
from tidelog.broker.wire.apis import ApiKey
from tidelog.log.base.clock import Clock
from tidelog.log.lake import Lake

# Calls that wait for a store or a processor, at once.
THREADS = 8
# What each part of a broker answers.
PARTS: Final[list[Callable[[Context], Handlers]]] = []


class Broker:
    """One broker of a lake, in the loop that is running. It holds nothing that the lake does not hold."""

    def __init__(self, lake: Lake, settings: BrokerSettings, blocking: Blocking | None = None) -> None:
        self.clock: Clock = lake.clock
        self.bounds = settings.bounds
        # {listener: (host, port)} as clients reach them, once the broker listens.
        self.addresses: dict[str, tuple[str, int]] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="tidelog-broker")
        blocking = blocking or in_threads(self._threads)
        self._topics = BrokerTopics(lake, blocking)
        self._context = Context(lake, settings, blocking, self._topics, self._view, BatchCache(settings.cache_bytes))
        self._connections: set[ClientConnection] = set()
        self._servers: list[asyncio.Server] = []
        parts: dict[ApiKey, Handler] = {}
        for part in PARTS:
            parts |= part(self._context)
        self.handlers: Handlers = parts | {ApiKey.API_VERSIONS: api_versions([*parts, ApiKey.API_VERSIONS])}

    def _view(self) -> ClusterView:
        settings = self._context.settings
        return ClusterView(
            "tidelog", 0, [BrokerNode(settings.id or 0, self.addresses, settings.rack)], settings.id or 0
        )

    async def start(self) -> None:
        """Listen. Raises `OSError` for an address that can't be had."""
        loop, settings = asyncio.get_running_loop(), self._context.settings
        for name, (host, port) in settings.listeners.items():
            server = await loop.create_server(partial(ClientConnection, self, name), host, port)
            self._servers.append(server)
            bound = host, server.sockets[0].getsockname()[1]
            self.addresses[name] = settings.advertised.get(name, bound)

    async def close(self) -> None:
        """Take no more connections, and close those that are open."""
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close("The broker stops.")
        await self._context.blocking(self._topics.close)
        self._threads.shutdown(wait=True)

    # --- for connections -----------------------------------------------------------------------------------

    def opened(self, connection: ClientConnection) -> bool:
        """A connection has come; False refuses it."""
        self._connections.add(connection)
        return len(self._connections) <= self.bounds.max_connections

    def closed(self, connection: ClientConnection) -> None:
        """It is gone."""
        self._connections.discard(connection)
