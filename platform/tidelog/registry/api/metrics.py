"""What a registry counts, as Prometheus reads it."""

from collections.abc import Iterator

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.registry.api.app import RegistryApp
from tidelog.registry.log.registry_log import RegistryLog
from tidelog.server.connections import HttpCounts


class RegistryMetrics(Collector):
    """Reads the counts whenever they are asked for."""

    def __init__(self, app: RegistryApp, connections: HttpCounts, log: RegistryLog) -> None:
        self._app = app
        self._connections = connections
        self._log = log

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now; schemas as of the last request."""
        requests = CounterMetricFamily(
            "tidelog_registry_requests", "Requests that were answered.", labels=["request", "status"]
        )
        for (name, status), count in sorted(self._app.answered.copy().items()):
            requests.add_metric([name or "none", str(status)], count)
        yield requests
        schemas, subjects = self._log.known(lambda state: (len(state), len(state.subjects(":*:"))))
        connections = self._connections
        for name, what, value in (
            # Confluent's bean kafka.schema.registry:type=registered-count, as jmx_exporter names it.
            ("kafka_schema_registry_registered_count", "Versions of subjects, with those softly deleted.", schemas),
            ("tidelog_registry_subjects", "Subjects of all contexts.", subjects),
            ("tidelog_registry_connections", "Open connections.", connections.open.total()),
            ("tidelog_registry_request_bytes", "Bytes of requests in work.", self._app.bodies.held),
        ):
            yield GaugeMetricFamily(name, what, value=float(value))
        for name, what, value in (
            ("tidelog_registry_connections_opened", "Connections that came.", connections.opened),
            ("tidelog_registry_connections_refused", "Refused by a bound.", connections.refused),
            ("tidelog_registry_requests_slow", "Requests that did not arrive in time.", connections.slow),
            ("tidelog_registry_requests_malformed", "What was no request of HTTP.", connections.malformed),
        ):
            yield CounterMetricFamily(name, what, value=float(value))
