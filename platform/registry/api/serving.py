"""The registry as a server of HTTP: started, and stopped."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import uvicorn

from tidelog.broker.base.listener_settings import TlsSettings
from tidelog.broker.base.tls import ListenerTls
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.value_schemas import SCHEMAS_TOPIC
from tidelog.registry.api.app import RegistryApp
from tidelog.registry.api.connections import HttpBounds, HttpCounts, bounded
from tidelog.registry.api.logins import RegistryAccess, RegistryLogins
from tidelog.registry.api.metrics import RegistryMetrics
from tidelog.registry.log.registry_log import RegistryLog

logger = logging.getLogger("tidelog.registry")

BACKLOG: Final = 1024
# How long requests may take to end once the server is asked to stop.
_STOPS_WITHIN_S: Final = 10


class RegistryAddressError(TidelogError):
    """An address that a registry can't listen at."""


class RegistryServer:
    """A registry over a lake at an address. `topic`: where its records are.

    `access`: what clients may do; None: everything. `tls`: None speaks HTTP without encryption; files that change are
    read again within a second, and count for new connections.

    `address`: (host, port); port 0 takes a free one. Raises `RegistryAddressError`, `TlsError`, and what reading the
    topic raises.
    """

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        *,
        topic: str = SCHEMAS_TOPIC,
        bounds: HttpBounds | None = None,
        access: RegistryAccess | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        bounds = bounds or HttpBounds()
        self._clock = lake.clock
        self._tls = None if tls is None else ListenerTls("registry", tls, self._now())
        self.log = RegistryLog(lake, topic)
        self.schemas = self.log.look(len)
        self._logins = None if access is None else RegistryLogins(lake, access)
        if access is not None and access.authenticates and tls is None:
            logger.warning("The registry has no TLS: passwords and tokens come to it as they are.")
        self.scheme = "http" if tls is None else "https"
        self.connections = HttpCounts()
        self._app = RegistryApp(self.log, bounds, self._logins)
        config = uvicorn.Config(
            self._app,
            http=bounded(bounds, self.connections),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # ACLs go by the address that a connection comes from
            ssl_context_factory=None if self._tls is None else lambda *_: self._context(),
            timeout_keep_alive=int(bounds.idle_s) or 1,
            h11_max_incomplete_event_size=bounds.headers,
            timeout_graceful_shutdown=_STOPS_WITHIN_S,
            callback_notify=self._look,
            timeout_notify=1,
        )
        # What it says of itself, and of requests that are none, is said by the registry.
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        config.load()
        self._server = uvicorn.Server(config)
        self._socket = _bound(address)
        self.address: tuple[str, int] = self._socket.getsockname()[:2]

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`; `ready` is called once clients can connect. Requests that began, end.

        Signals are the caller's, unless it calls this in the main thread: then SIGTERM and SIGINT end the server, too,
        and are raised again.
        """
        host, port = self.address
        logger.info("Registry started: listener=%s:%d lake=%s schemas=%d", host, port, self.log.uri, self.schemas)
        ready()  # the socket takes connections already, and keeps them until the server accepts them
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()
            if self._logins is not None:
                self._logins.close()
            logger.info("Registry stopped")

    def _context(self) -> ssl.SSLContext:
        """A context whose handshakes take the certificate of the moment."""
        tls = self._tls
        assert tls is not None  # the caller looks

        def newest(handshake: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
            handshake.context = tls.server

        tls.server.sni_callback = newest
        return tls.server

    async def _look(self) -> None:
        if self._tls is not None:
            await asyncio.to_thread(self._tls.look, self._now())

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def metrics(self) -> RegistryMetrics:
        """What is counted, for Prometheus."""
        return RegistryMetrics(self._app, self.connections, self.log)

    def stop(self) -> None:
        """Ask the server to end, from any thread."""
        self._server.should_exit = True


def _bound(address: tuple[str, int]) -> socket.socket:
    host, port = address
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
    except OSError as error:
        raise RegistryAddressError(
            f"The registry can't listen at {host}:{port}: {error.strerror or error}. Give another address, or end what"
            " listens there."
        ) from error
