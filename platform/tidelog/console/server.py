"""The console as a server of HTTP: started, and stopped."""

import logging
from collections.abc import Iterator
from typing import Final

from tidelog.console.app import ConsoleApp
from tidelog.console.base.console import Console, ConsoleSettings
from tidelog.console.sampler import Sampler
from tidelog.log.lake import Lake
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.process.stopping import Stop
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

    def metrics(self) -> Iterator[MetricFamily]:
        """What is counted, as of now."""
        return read_rows(_METRICS, self)

    def end(self) -> None:
        """End its parts."""
        self.console.close()
        super().end()

    def drain(self) -> None:
        """Ask the server to end, and answers that would go on, from any thread."""
        super().drain()
        self.console.end()

    def run(self, stop: Stop) -> None:
        """Serve until `stop`, with figures of the lake from the beginning: the first page need not wait for them."""
        self.console.part(Sampler)
        super().run(stop)


_METRICS: Final[tuple[MetricRow[ConsoleServer], ...]] = (
    counter("tidelog_console_requests", "Requests answered.", lambda server: server.app.answers),
    counter(
        "tidelog_console_looks",
        "Times that all of the lake was looked at.",
        lambda server: server.console.reader.reads,
    ),
    counter(
        "tidelog_console_store_requests",
        "Requests that the store was sent.",
        lambda server: server.console.part(Sampler).requests()[0],
    ),
    gauge("tidelog_console_connections", "Open connections.", lambda server: server.connections.open.total()),
)
