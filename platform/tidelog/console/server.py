"""The console as a server of HTTP: started, and stopped."""

import logging

from tidelog.console.app import ConsoleApp
from tidelog.console.base.console import Console, ConsoleSettings
from tidelog.console.metrics import ConsoleMetrics
from tidelog.log.lake import Lake
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.serving import HttpServer


class ConsoleServer(HttpServer):
    """A console over a lake at an address.

    `access`: what clients may do; None: everything. `tls`, `address`: as `HttpServer` has them, and its errors.
    """

    logger = logging.getLogger("tidelog.console")

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
            self.logger.warning("The console has no TLS: passwords and tokens come to it as they are.")
        self.about = {"lake": lake.uri}
        self.console = Console(lake, settings)
        self.app = ConsoleApp(self.console, bounds, self._logins)
        super().__init__(
            self.app,
            address,
            lake.clock,
            named="console",
            path="/",
            bounds=bounds,
            tls=tls,
            stops_within_s=2,
            host_names=settings.host_names,
            authenticates=access is not None and access.authenticates,
        )

    def metrics(self) -> ConsoleMetrics:
        """What is counted, for Prometheus."""
        return ConsoleMetrics(self.app, self.console, self.connections)

    def end(self) -> None:
        """End its parts."""
        self.console.close()
        super().end()

    def stop(self) -> None:
        """Ask the server to end, from any thread."""
        super().stop()
        self.console.end()
