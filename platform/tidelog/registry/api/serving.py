"""The registry as a server of HTTP: started, and stopped."""

import logging
from collections.abc import Iterable

from tidelog.log.lake import Lake
from tidelog.log.value_schemas import SCHEMAS_TOPIC
from tidelog.registry.api.app import V1, RegistryApp
from tidelog.registry.api.metrics import RegistryMetrics
from tidelog.registry.log.registry_log import RegistryLog
from tidelog.server.base.listener_settings import TlsSettings
from tidelog.server.connections import HttpBounds
from tidelog.server.logins import HttpAccess, HttpLogins
from tidelog.server.serving import HttpServer


class RegistryServer(HttpServer):
    """A registry over a lake at an address. `topic`: where its records are.

    `access`: what clients may do; None: everything. `tls`, `address`, `host_names`: as `HttpServer` has them, and its
    errors. Raises what reading the topic raises, too.
    """

    logger = logging.getLogger("tidelog.registry")

    def __init__(
        self,
        lake: Lake,
        address: tuple[str, int],
        *,
        topic: str = SCHEMAS_TOPIC,
        bounds: HttpBounds | None = None,
        access: HttpAccess | None = None,
        tls: TlsSettings | None = None,
        host_names: Iterable[str] = (),
    ) -> None:
        self.log = RegistryLog(lake, topic)
        self.about = {"lake": lake.uri, "schemas": self.log.look(len)}
        self._logins = None if access is None else HttpLogins(lake, access, "REGISTRY")
        if access is not None and access.authenticates and tls is None:
            self.logger.warning("The registry has no TLS: passwords and tokens come to it as they are.")
        self._app = RegistryApp(self.log, bounds, self._logins)
        super().__init__(
            self._app,
            address,
            lake.clock,
            named="registry",
            media_type=V1,
            bounds=bounds,
            tls=tls,
            host_names=host_names,
            authenticates=access is not None and access.authenticates,
        )

    def metrics(self) -> RegistryMetrics:
        """What is counted, for Prometheus."""
        return RegistryMetrics(self._app, self.connections, self.log)
