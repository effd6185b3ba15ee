"""What a broker counts, as Prometheus reads it: under the names of jmx_exporter's example configuration for Kafka.

Source: the example for Kafka 2.0 of prometheus/jmx_exporter, over the beans of Kafka's monitoring guide.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from tidelog.access.quotas import Quota
from tidelog.broker.access.throttling import Throttling
from tidelog.broker.base.meter import BrokerMeter, RequestMeter, TopicMeter
from tidelog.broker.server.connections import Connections
from tidelog.broker.wire.apis import title_of
from tidelog.broker.wire.errors import error_name
from tidelog.operations.metric_families import Labels, MetricFamily, MetricRow, counter, gauge, read_rows

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

# Names of Kafka's APIs, or of topics, each with what is counted of it.
_Apis = list[tuple[str, RequestMeter]]
_Topics = list[tuple[str, TopicMeter]]
_Samples = Iterable[tuple[Labels, float]]


class _Server(NamedTuple):
    meter: BrokerMeter
    connections: Connections
    is_controller: bool


def broker_metrics(
    meter: BrokerMeter, connections: Connections, is_controller: Callable[[], bool]
) -> Iterator[MetricFamily]:
    """All of them, as of now; nothing is computed before."""
    requests, topics = sorted(meter.requests.copy().items()), sorted(meter.topics().items())
    apis = [(title_of(api), counted) for api, counted in requests]
    yield from read_rows(_REQUESTS, apis)
    yield from read_rows(_TOPICS, topics)
    yield from read_rows(_SERVER, _Server(meter, connections, is_controller()))
    yield from _quotas(connections.throttling)


def _of_versions(apis: _Apis) -> _Samples:
    for api, counted in apis:
        for version, requests in sorted(counted.requests.copy().items()):
            yield {"request": api, "version": str(version)}, requests


def _of_errors(apis: _Apis) -> _Samples:
    for api, counted in apis:
        for code, times in sorted(counted.errors.copy().items()):
            yield {"request": api, "error": error_name(code)}, times


def _of_apis(field: str) -> Callable[[_Apis], _Samples]:
    return lambda apis: [({"request": api}, getattr(counted, field)) for api, counted in apis]


def _of_topics(field: str) -> Callable[[_Topics], _Samples]:
    return lambda topics: [({"topic": topic}, getattr(counted, field)) for topic, counted in topics]


def _times(stage: str, what: str, field: str) -> tuple[MetricRow[_Apis], MetricRow[_Apis]]:
    """How long a stage of requests took, and of how many that is known."""

    def quantiles(apis: _Apis) -> _Samples:
        for api, counted in apis:
            for quantile, ms in getattr(counted, field).quantiles(QUANTILES).items():
                yield {"request": api, "quantile": str(quantile)}, ms

    def counts(apis: _Apis) -> _Samples:
        return [({"request": api}, getattr(counted, field).count) for api, counted in apis]

    name = f"kafka_network_requestmetrics_{stage}"
    return gauge(name, f"{what}, ms, of late.", quantiles), gauge(f"{name}_count", f"{what}: how many.", counts)


# RequestMetrics, by API.
_REQUESTS: Final[tuple[MetricRow[_Apis], ...]] = (
    counter("kafka_network_requestmetrics_requests", "Requests that were answered.", _of_versions),
    counter("kafka_network_requestmetrics_errors", "Error codes in answers, and of requests without one.", _of_errors),
    counter("kafka_network_requestmetrics_requestbytes", "Bytes of requests.", _of_apis("bytes_in")),
    counter("kafka_network_requestmetrics_responsebytes", "Bytes of answers.", _of_apis("bytes_out")),
    *_times("totaltimems", "From a request's last byte to its answer", "total"),
    *_times("requestqueuetimems", "From a request's last byte to its handler", "queued"),
    *_times("localtimems", "In a request's handler, waiting included", "handled"),
)
# BrokerTopicMetrics, by topic.
_TOPICS: Final[tuple[MetricRow[_Topics], ...]] = tuple(
    counter(f"kafka_server_brokertopicmetrics_{name}", what, _of_topics(field))
    for name, what, field in (
        ("messagesin", "Records that clients produced.", "messages_in"),
        ("bytesin", "Bytes of batches that clients produced.", "bytes_in"),
        ("bytesout", "Bytes of batches that clients fetched.", "bytes_out"),
        ("totalproducerequests", "Partitions in Produce requests.", "produce_requests"),
        ("totalfetchrequests", "Partitions in Fetch requests.", "fetch_requests"),
        ("failedproducerequests", "Of them, those refused.", "failed_produce_requests"),
        ("failedfetchrequests", "Of them, those refused.", "failed_fetch_requests"),
    )
)
# Connections, what they hold, and the broker's state.
_SERVER: Final[tuple[MetricRow[_Server], ...]] = (
    gauge(
        "kafka_server_kafkaserver_brokerstate",
        "3: running; 7: draining.",
        lambda server: _SHUTTING_DOWN if server.connections.is_draining else _RUNNING,
    ),
    gauge(
        "kafka_controller_kafkacontroller_activecontrollercount",
        "1 at one broker.",
        lambda server: server.is_controller,
    ),
    gauge(
        "kafka_server_socket_server_metrics_connection_count",
        "Open connections.",
        lambda server: len(server.connections),
    ),
    gauge(
        "kafka_network_requestchannel_requestqueuesize",
        "Requests in work.",
        lambda server: server.connections.waiting,
    ),
    gauge(
        "tidelog_broker_request_bytes",
        "Bytes of requests in work.",
        lambda server: server.connections.requests.used,
    ),
    gauge(
        "tidelog_broker_unsent_bytes",
        "Bytes of answers not taken yet.",
        lambda server: server.connections.answers.used,
    ),
    counter(
        "tidelog_broker_connections_opened", "Connections that came.", lambda server: server.meter.connections_opened
    ),
    counter(
        "tidelog_broker_connections_refused", "Refused by a bound.", lambda server: server.meter.connections_refused
    ),
    counter(
        "kafka_server_socket_server_metrics_successful_authentication",
        "Log-ins by SASL.",
        lambda server: server.meter.logins,
    ),
    counter(
        "kafka_server_socket_server_metrics_successful_reauthentication",
        "Log-ins by SASL of clients that were logged in.",
        lambda server: server.meter.logins_again,
    ),
    counter(
        "kafka_server_socket_server_metrics_failed_authentication",
        "Of wrong credentials.",
        lambda server: server.meter.logins_failed,
    ),
    counter(
        "tidelog_broker_connections_dropped",
        "Closed for what they sent or left.",
        lambda server: server.meter.connections_dropped,
    ),
    gauge(
        "tidelog_broker_topic_cores",
        "The share of a core that a topic took of late, where several brokers serve.",
        lambda server: [({"topic": topic}, cores) for topic, cores in sorted(server.meter.topic_shares.items())],
    ),
    gauge(
        "tidelog_broker_client_metrics_instances",
        "Clients that have asked which of their metrics to push.",
        lambda server: server.meter.clients.alive(server.connections.throttling.clock.elapsed_s()),
    ),
    counter(
        "tidelog_broker_client_metrics_pushes",
        "Pushes of clients' metrics, by what became of them.",
        lambda server: [({"error": error}, times) for error, times in sorted(server.meter.clients.pushes.items())],
    ),
    counter(
        "tidelog_broker_client_metrics_points",
        "Values that were pushed, each a record of the topic __client_metrics.",
        lambda server: server.meter.clients.points,
    ),
    gauge(
        "tidelog_client_metric",
        "What a client said last of itself; of what it counts, the sum since the broker began.",
        lambda server: [
            ({"metric": one.metric, "client_id": one.client_id, "software": one.software, "of": one.attributes}, value)
            for one, value in server.meter.clients.series(server.connections.throttling.clock.elapsed_s())
        ],
    ),
    counter(
        "tidelog_broker_handed_over_parts",
        "Parts handed over to topics' committers. All but the committed ones this broker commits itself.",
        lambda server: [({"outcome": outcome}, server.meter.hand_overs[outcome]) for outcome in HAND_OVER_OUTCOMES],
    ),
)


def _quotas(throttling: Throttling) -> Iterable[MetricFamily]:
    """Rates and throttle times of entities that have quotas and were active of late."""
    now_s = throttling.clock.elapsed_s()
    families: dict[str, MetricFamily] = {}

    def add(name: str, what: str, labels: Labels, value: float) -> None:
        if name not in families:
            families[name] = MetricFamily(f"kafka_server_quota_{name}", what)
        families[name].add(labels, value)

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
    return families.values()
