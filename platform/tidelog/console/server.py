"""The console as a server of HTTP: started, and stopped."""

import logging
from collections.abc import Callable

from tidelog.console.app import ConsoleApp
from tidelog.console.base.console import Console, ConsoleSettings
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.serving import HttpServer

logger = logging.getLogger("tidelog.console")


class ConsoleServer:
    """A console over a lake at an address.

    `access`: what clients may do; None: everything. `tls`, `address`: as `HttpServer` has them, and its errors.
    """

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        *,
        settings: ConsoleSettings | None = None,
        bounds: HttpBounds | None = None,
        access: HttpAccess | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        settings = settings or ConsoleSettings()
        lake.require_lake()
        self._logins = None if access is None else HttpLogins(lake, access, "CONSOLE")
        if access is not None and access.authenticates and tls is None:
            logger.warning("The console has no TLS: passwords and tokens come to it as they are.")
        self.console = Console(lake, settings)
        self.app = ConsoleApp(self.console, bounds, self._logins)
        self._http = HttpServer(
            self.app,
            address,
            lake.clock,
            named="console",
            bounds=bounds,
            tls=tls,
            stops_within_s=2,
            host_names=settings.host_names,
            authenticates=access is not None and access.authenticates,
        )
        self.scheme, self.address, self.connections = self._http.scheme, self._http.address, self._http.connections

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until `stop`, as `HttpServer.run` does; `ready` is called once clients can connect."""
        logger.info("Console started: listener=%s:%d lake=%s", *self.address, self.console.lake.uri)
        ready()  # the socket takes connections already, and keeps them until the server accepts them
        try:
            self._http.run()
        finally:
            self.console.close()
            if self._logins is not None:
                self._logins.close()
            logger.info("Console stopped")

    def stop(self) -> None:
        """Ask the server to end, from any thread."""
        self._http.stop()
        self.console.end()
