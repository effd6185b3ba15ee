"""What a broker counts, as Prometheus reads it: under the names of jmx_exporter's example configuration for Kafka.

Source: the example for Kafka 2.0 of prometheus/jmx_exporter, over the beans of Kafka's monitoring guide.
"""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidelog.access.quotas import Quota
from tidelog.broker.base.meter import BrokerMeter, Durations
from tidelog.broker.server.connections import Connections
from tidelog.broker.wire.errors import error_name

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
# What becomes of a hand-over: three that the committer says, none from it in time, and no connection to it.
HAND_OVER_OUTCOMES = ("committed", "refused", "unknown", "no_answer", "not_asked")
# By quota: Kafka's resource, what is measured of it.
_QUOTAS = {
    Quota.PRODUCER_BYTE_RATE: ("Produce", "byte_rate", "Bytes a second."),
    Quota.CONSUMER_BYTE_RATE: ("Fetch", "byte_rate", "Bytes a second."),
    Quota.REQUEST_PERCENTAGE: ("Request", "request_time", "Processor time, percent of one processor."),
    Quota.CONTROLLER_MUTATION_RATE: (
        "ControllerMutation",
        "mutation_rate",
        "Partitions a second, created and deleted.",
    ),
}
# Of KafkaServer's states.
_RUNNING, _SHUTTING_DOWN = 3, 7


class BrokerMetrics(Collector):
    """Reads the counts of a broker whenever they are asked for; nothing is computed before."""

    def __init__(self, meter: BrokerMeter, connections: Connections, is_controller: Callable[[], bool]) -> None:
        self._meter = meter
        self._connections = connections
        self._is_controller = is_controller

    def describe(self) -> list[Metric]:
        """Nothing: the metrics are made when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All of them, as of now."""
        yield from self._requests()
        yield from self._topics()
        yield from self._server()
        yield self._hand_overs()
        yield from self._quotas()

    def _requests(self) -> Iterator[Metric]:
        """RequestMetrics, by API."""
        name = "kafka_network_requestmetrics"
        count = CounterMetricFamily(f"{name}_requests", "Requests that were answered.", labels=["request", "version"])
        errors = CounterMetricFamily(
            f"{name}_errors", "Error codes in answers, and of requests without one.", labels=["request", "error"]
        )
        size_in = CounterMetricFamily(f"{name}_requestbytes", "Bytes of requests.", labels=["request"])
        size_out = CounterMetricFamily(f"{name}_responsebytes", "Bytes of answers.", labels=["request"])
        times = {
            stage: (
                GaugeMetricFamily(f"{name}_{stage}", f"{what}, ms, of late.", labels=["request", "quantile"]),
                GaugeMetricFamily(f"{name}_{stage}_count", f"{what}: how many.", labels=["request"]),
            )
            for stage, what in (
                ("totaltimems", "From a request's last byte to its answer"),
                ("requestqueuetimems", "From a request's last byte to its handler"),
                ("localtimems", "In a request's handler, waiting included"),
            )
        }
        for api, found in sorted(self._meter.requests.copy().items()):
            shown = "".join(word.capitalize() for word in api.split("_"))
            for version, requests in sorted(found.requests.copy().items()):
                count.add_metric([shown, str(version)], requests)
            for code, times_said in sorted(found.errors.copy().items()):
                errors.add_metric([shown, error_name(code)], times_said)
            size_in.add_metric([shown], found.bytes_in)
            size_out.add_metric([shown], found.bytes_out)
            for stage, durations in zip(times, (found.total, found.queued, found.handled), strict=True):
                _add_times(*times[stage], shown, durations)
        yield from (count, errors, size_in, size_out)
        for both in times.values():
            yield from both

    def _topics(self) -> Iterator[Metric]:
        """BrokerTopicMetrics, by topic."""
        columns = (
            ("messagesin", "Records that clients produced.", "messages_in"),
            ("bytesin", "Bytes of batches that clients produced.", "bytes_in"),
            ("bytesout", "Bytes of batches that clients fetched.", "bytes_out"),
            ("totalproducerequests", "Partitions in Produce requests.", "produce_requests"),
            ("totalfetchrequests", "Partitions in Fetch requests.", "fetch_requests"),
            ("failedproducerequests", "Of them, those refused.", "failed_produce_requests"),
            ("failedfetchrequests", "Of them, those refused.", "failed_fetch_requests"),
        )
        topics = sorted(self._meter.topics().items())
        for name, what, field in columns:
            family = CounterMetricFamily(f"kafka_server_brokertopicmetrics_{name}", what, labels=["topic"])
            for topic, counts in topics:
                family.add_metric([topic], getattr(counts, field))
            yield family

    def _server(self) -> Iterator[Metric]:
        """Connections, what they hold, and the broker's state."""
        connections, meter = self._connections, self._meter
        state = _SHUTTING_DOWN if connections.is_draining else _RUNNING
        for name, what, value in (
            ("kafka_server_kafkaserver_brokerstate", "3: running; 7: draining.", state),
            ("kafka_controller_kafkacontroller_activecontrollercount", "1 at one broker.", self._is_controller()),
            ("kafka_server_socket_server_metrics_connection_count", "Open connections.", len(connections)),
            ("kafka_network_requestchannel_requestqueuesize", "Requests in work.", connections.waiting),
            ("tidelog_broker_request_bytes", "Bytes of requests in work.", connections.requests.used),
            (
                "tidelog_broker_unsent_bytes",
                "Bytes of answers not taken yet.",
                connections.answers.used,
            ),
        ):
            yield GaugeMetricFamily(name, what, value=float(value))
        for name, what, value in (
            ("tidelog_broker_connections_opened", "Connections that came.", meter.connections_opened),
            ("tidelog_broker_connections_refused", "Refused by a bound.", meter.connections_refused),
            ("kafka_server_socket_server_metrics_successful_authentication", "Log-ins by SASL.", meter.logins),
            (
                "kafka_server_socket_server_metrics_successful_reauthentication",
                "Log-ins by SASL of clients that were logged in.",
                meter.logins_again,
            ),
            ("kafka_server_socket_server_metrics_failed_authentication", "Of wrong credentials.", meter.logins_failed),
            (
                "tidelog_broker_connections_dropped",
                "Closed for what they sent or left.",
                meter.connections_dropped,
            ),
        ):
            yield CounterMetricFamily(name, what, value=value)

    def _hand_overs(self) -> Metric:
        """Parts of entries that this broker had other brokers commit, each outcome from 0 on."""
        what = "Parts handed over to topics' committers. All but the committed ones this broker commits itself."
        family = CounterMetricFamily("tidelog_broker_handed_over_parts", what, labels=["outcome"])
        for outcome in HAND_OVER_OUTCOMES:
            family.add_metric([outcome], self._meter.hand_overs[outcome])
        return family

    def _quotas(self) -> Iterator[Metric]:
        """Rates and throttle times of entities that have quotas and were active of late."""
        throttling = self._connections.throttling
        now_s = throttling.clock.elapsed_s()
        families: dict[str, GaugeMetricFamily] = {}

        def add(name: str, what: str, labels: Mapping[str, str], value: float) -> None:
            if name not in families:
                families[name] = GaugeMetricFamily(f"kafka_server_quota_{name}", what, labels=list(labels))
            families[name].add_metric(list(labels.values()), value)

        for (quota, entity), meter in throttling.meters().items():
            if quota is Quota.CONNECTION_CREATION_RATE:
                of_ip = {"ip": entity.ip or ""}
                add("connection_creation_rate", "Connections a second.", of_ip, meter.rate.rate(now_s))
                continue
            resource, name, what = _QUOTAS[quota]
            labels = {"resource": resource, "user": entity.user or "", "clientId": entity.client_id or ""}
            add(name, what, labels, meter.rate.rate(now_s))
            add("throttle_time", "Throttle time of requests that have one, ms.", labels, meter.throttle_ms(now_s))
            if quota is Quota.CONTROLLER_MUTATION_RATE:
                add("tokens", "Changes that may be made now.", labels, meter.bucket.left(now_s, meter.limit))
        yield from families.values()


def _add_times(times: GaugeMetricFamily, count: GaugeMetricFamily, api: str, durations: Durations) -> None:
    for quantile, ms in durations.quantiles(QUANTILES).items():
        times.add_metric([api, str(quantile)], ms)
    count.add_metric([api], durations.count)
