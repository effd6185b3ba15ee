"""The registry as a server of HTTP: started, and stopped."""

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from tidelog.log.delta.layout import SCHEMAS_TOPIC
from tidelog.log.lake import Lake
from tidelog.operations.metric_families import MetricFamily, MetricRow, counter, gauge, read_rows
from tidelog.operations.schemas.registry_log import RegistryLog
from tidelog.registry.api.app import V1, RegistryApp
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
        self.app = RegistryApp(self.log, bounds, self._logins)
        super().__init__(
            self.app,
            address,
            lake.clock,
            named="registry",
            media_type=V1,
            bounds=bounds,
            tls=tls,
            host_names=host_names,
            authenticates=access is not None and access.authenticates,
        )

    def metrics(self) -> Iterator[MetricFamily]:
        """What is counted, as of now; schemas as of the last request."""
        return read_rows(_METRICS, self)


# Confluent's bean kafka.schema.registry:type=registered-count is named as jmx_exporter names it.
_METRICS: Final[tuple[MetricRow[RegistryServer], ...]] = (
    counter("tidelog_registry_requests", "Requests that were answered.", lambda server: server.app.answers),
    gauge(
        "kafka_schema_registry_registered_count",
        "Versions of subjects, with those softly deleted.",
        lambda server: server.log.known(len),
    ),
    gauge(
        "tidelog_registry_subjects",
        "Subjects of all contexts.",
        lambda server: server.log.known(lambda state: len(state.subjects(":*:"))),
    ),
    gauge("tidelog_registry_connections", "Open connections.", lambda server: server.connections.open.total()),
    gauge("tidelog_registry_request_bytes", "Bytes of requests in work.", lambda server: server.app.bodies.held),
    counter("tidelog_registry_connections_opened", "Connections that came.", lambda server: server.connections.opened),
    counter("tidelog_registry_connections_refused", "Refused by a bound.", lambda server: server.connections.refused),
    counter(
        "tidelog_registry_requests_slow",
        "Requests that did not arrive in time.",
        lambda server: server.connections.slow,
    ),
    counter(
        "tidelog_registry_requests_malformed",
        "What was no request of HTTP.",
        lambda server: server.connections.malformed,
    ),
)
