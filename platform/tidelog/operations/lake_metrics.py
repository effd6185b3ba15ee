"""All metrics of a lake: every process reports the same of one snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.operations.group_metrics import group_metrics
from tidelog.operations.maintenance import newest_whole_run
from tidelog.operations.metric_families import MetricFamily
from tidelog.operations.snapshots import LakeSnapshot
from tidelog.operations.topic_metrics import topic_metrics

# Brokers by id, each with its addresses.
Brokers = Mapping[int, Sequence[tuple[str, int]]]
_MS: Final = 1000


def lake_metrics(
    snapshot: LakeSnapshot, cluster: str, defaults: LakeConfig, brokers: Brokers | None = None
) -> Iterator[MetricFamily]:
    """The metrics as of a snapshot. `cluster`: kafka-lag-exporter's label `cluster_name`. `defaults`: the lake's.

    `brokers`: those that serve, as a process knows them; None: as the snapshot says.
    """
    yield from _of_brokers(_serving(snapshot) if brokers is None else brokers)
    yield _of_leaders(snapshot)
    yield from topic_metrics(snapshot, cluster, defaults)
    yield from group_metrics(snapshot, cluster)
    yield from _of_the_lake(snapshot)


def _serving(snapshot: LakeSnapshot) -> Brokers:
    return {
        broker.id: [(listener.host, listener.port) for listener in broker.listeners]
        for broker in snapshot.cluster.serving
    }


def _of_brokers(brokers: Brokers) -> Iterator[MetricFamily]:
    yield MetricFamily.of("kafka_brokers", "Brokers that run.", len(brokers))
    info = MetricFamily("kafka_broker_info", "A broker, and its address.")
    for number, addresses in brokers.items():
        for host, port in addresses:
            info.add({"id": str(number), "address": f"{host}:{port}"}, 1)
    yield info


def _of_leaders(snapshot: LakeSnapshot) -> MetricFamily:
    leaders = MetricFamily("tidelog_topic_leaders", "Brokers that lead a topic, where it needs more than one.")
    for topic, told in snapshot.cluster.leaders.items():
        if topic:
            leaders.add({"topic": told.name}, told.leaders)
    return leaders


def _of_the_lake(snapshot: LakeSnapshot) -> Iterator[MetricFamily]:
    yield MetricFamily.of("tidelog_lake_topics", "Topics that can be read.", len(snapshot.topics))
    yield MetricFamily.of("tidelog_lake_broken_topics", "Topics that can't be read.", len(snapshot.broken))
    whole = newest_whole_run(snapshot.runs)
    if whole is not None:
        since_s = max(0, snapshot.at_ms - whole.at_ms) / _MS
        yield MetricFamily.of(
            "tidelog_maintenance_age_seconds", "Since maintenance of the whole lake last began.", since_s
        )
    if snapshot.runs:
        failures = len(snapshot.runs[0].failures)
        yield MetricFamily.of("tidelog_maintenance_failures", "What failed in its last run.", failures)
    if snapshot.space is not None:
        yield MetricFamily.of("tidelog_lake_disk_free_bytes", "Of the lake's disk.", snapshot.space.free)
        yield MetricFamily.of("tidelog_lake_disk_bytes", "Of the lake's disk.", snapshot.space.total)
    open_transactions = snapshot.open_transactions
    oldest_ms = min((transaction.began_ms for transaction in open_transactions), default=snapshot.at_ms)
    yield MetricFamily.of("tidelog_transactions_open", "Open transactions.", len(open_transactions))
    yield MetricFamily.of(
        "tidelog_transactions_oldest_seconds",
        "Since the oldest open transaction began; 0 without one.",
        max(0, snapshot.at_ms - oldest_ms) / _MS,
    )
    yield MetricFamily.of(
        "tidelog_transactions_undone", "Committed transactions that no topic shows yet.", snapshot.undone
    )
